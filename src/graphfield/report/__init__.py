"""Pictures of graphs and the report page. ``plot_*`` take an optional ``ax`` and return the Axes drawn on."""

from graphfield.report.html import write_report
from graphfield.report.plots import plot_graph, plot_graphs

__all__ = ["plot_graph", "plot_graphs", "write_report"]
