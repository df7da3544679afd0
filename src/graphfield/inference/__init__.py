"""What the data support: does the graph depend on z, does the fitted model beat one graph."""
