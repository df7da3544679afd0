"""The report page; and, by their earlier names, the pictures of :mod:`graphfield.plots`."""

import graphfield.plots as plots
from graphfield.plots import plot_graph, plot_graphs
from graphfield.report.html import write_report

__all__ = ["plot_graph", "plot_graphs", "plots", "write_report"]
