"""Topology, data shards and the roster: what a mesh needs once, before round 1."""
