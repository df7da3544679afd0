"""Questions asked of a fitted model or of the data."""
