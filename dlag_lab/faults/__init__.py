"""Trying to break a mesh of real processes: faults by a seed, on wires that can be cut."""
