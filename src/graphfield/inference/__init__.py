"""What the data support: does the graph depend on z, which edges are there, which of them move."""
