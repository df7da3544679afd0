"""The report page; and, by their earlier names, the pictures of :mod:`graphfield.plots`."""

import graphfield.plots as plots
from graphfield.plots import plot_graph, plot_graphs
from graphfield.report.html import write_report
from graphfield.report.notebook import explore

__all__ = ["explore", "plot_graph", "plot_graphs", "plots", "write_report"]
