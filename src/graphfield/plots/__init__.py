"""Pictures: heatmaps, networks, curves, drivers, connectivity, stability. matplotlib is imported when needed.

Functions that draw one picture take an optional ``ax`` and return the Axes; those that draw several beside
each other return a flat array with one Axes per picture, so ``axes[0].figure`` is the figure.
"""

from graphfield.plots.archetypes import plot_archetypes
from graphfield.plots.connectivity import plot_connectivity
from graphfield.plots.curves import plot_edge_curves, plot_training
from graphfield.plots.edges import plot_drivers, plot_varying_edges
from graphfield.plots.heatmaps import plot_bands, plot_difference, plot_graph, plot_graphs, plot_heatmaps
from graphfield.plots.methods import plot_methods
from graphfield.plots.moving import save_moving_network
from graphfield.plots.network import network_positions, plot_network
from graphfield.plots.stability import plot_sample_plan, plot_selection, plot_stability
from graphfield.plots.style import draw_to_files, png_bytes, pyplot

__all__ = [
    "draw_to_files",
    "network_positions",
    "plot_archetypes",
    "plot_bands",
    "plot_connectivity",
    "plot_difference",
    "plot_drivers",
    "plot_edge_curves",
    "plot_graph",
    "plot_graphs",
    "plot_heatmaps",
    "plot_methods",
    "plot_network",
    "plot_sample_plan",
    "plot_selection",
    "plot_stability",
    "plot_training",
    "plot_varying_edges",
    "png_bytes",
    "pyplot",
    "save_moving_network",
]
