"""Topologies, gossip weights, U and its spectrum, Chebyshev P_K(U)."""

from dlag_node.graphs.topology import Graph, parse_topology

__all__ = ["Graph", "parse_topology"]
