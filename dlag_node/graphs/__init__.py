"""Topologies, gossip weights, U and its spectrum, Chebyshev P_K(U)."""

from dlag_node.graphs.chebyshev import Chebyshev, chebyshev_for
from dlag_node.graphs.spectrum import Spectrum, spectrum_of
from dlag_node.graphs.topology import Graph, parse_topology
from dlag_node.graphs.tree import SpanningTree, spanning_tree
from dlag_node.graphs.weights import gossip_matrix

__all__ = [
    "Chebyshev",
    "Graph",
    "SpanningTree",
    "Spectrum",
    "chebyshev_for",
    "gossip_matrix",
    "parse_topology",
    "spanning_tree",
    "spectrum_of",
]
