"""Questions asked of a fitted model or of the data."""

from graphfield.analysis.averages import Bands, average_graph, average_graphs, bands
from graphfield.analysis.curves import connectivity_curves, edge_curves
from graphfield.analysis.drivers import driver_summary, edge_drivers, varying_edges
from graphfield.analysis.network import block_means, connectivity, node_connectivity, subnetwork
from graphfield.analysis.one_value import average_intervals, compare, graph_at, intervals_at

__all__ = [
    "Bands",
    "average_graph",
    "average_graphs",
    "average_intervals",
    "bands",
    "block_means",
    "compare",
    "connectivity",
    "connectivity_curves",
    "driver_summary",
    "edge_curves",
    "edge_drivers",
    "graph_at",
    "intervals_at",
    "node_connectivity",
    "subnetwork",
    "varying_edges",
]
