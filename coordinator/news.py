"""What the coordinator's log is told beside stages: the graph chosen, links that do not open."""

from __future__ import annotations

import logging

from coordinator.roster import Roster

log = logging.getLogger(__name__)

_ROW = "{:>5}  {:>8}  {:<30}  {:<30}  {}"


class News:
    """Says each thing once."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._choosing = roster.layout is None
        self._told = 0  # rows of the table of links

    def tell(self) -> None:
        """Log what is new."""
        layout = self._roster.layout
        if self._choosing and layout is not None:
            self._choosing = False
            graph = layout.graph
            edges = ", ".join(f"{i} {j}" for i, j in graph.edges)
            log.info("%d nodes, %d edges chosen: %s", graph.nodes, len(graph.edges), edges)
        for node, link in self._roster.unopened[self._told :]:
            if not self._told:
                log.warning("links that are not open before round 1:")
                log.warning(_ROW.format("node", "neighbor", "address tried", "from", "error"))
            words = (node, link.neighbor, link.address, link.origin, link.error)
            log.warning(_ROW.format(*words))
            self._told += 1
