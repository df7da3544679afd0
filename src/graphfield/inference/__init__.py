"""Which edges there are, which of them move, and how sure that is."""
