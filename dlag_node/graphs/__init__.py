"""Topologies, gossip weights, U and its spectrum, Chebyshev P_K(U)."""
