"""The fitted thing itself: a field of graphs, z -> graph, as a value that everything else asks."""

from graphfield.fields.base import Conditionals, Draws, GraphField
from graphfield.fields.schema import Rows, Schema

__all__ = ["Conditionals", "Draws", "GraphField", "Rows", "Schema"]
