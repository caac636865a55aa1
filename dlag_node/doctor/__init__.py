"""Is this device fit to be a node? Every check is one line: how it is, and what would help."""

from dlag_node.doctor.finding import Finding, Level

__all__ = ["Finding", "Level"]
