"""Pictures of graphs. Functions take an optional ``ax`` and return the Axes they drew on."""

from graphfield.report.plots import plot_graph, plot_graphs

__all__ = ["plot_graph", "plot_graphs"]
