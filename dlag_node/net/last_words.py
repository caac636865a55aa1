"""How a node that must end tells the others why, so that the whole mesh ends with the reason."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import perf_counter

from dlag_node.net.links import Links
from dlag_node.wire.frames import Abort, Frame
from dlag_node.wire.limits import MAX_TEXT

_WAIT_SECONDS = 3.0
_LISTEN_EVERY = 0.02  # seconds


class LastWords:
    """The Abort that a node leaves behind; once it is said, nothing else matters to the node."""

    def __init__(self, links: Links, neighbors: Sequence[int]) -> None:
        self._links = links
        self._neighbors = neighbors
        self._gone: set[int] = set()  # who ended before us, and told us so
        self._words: Abort | None = None

    @property
    def said(self) -> bool:
        """Whether the node is ending."""
        return self._words is not None

    def hear(self, neighbor: int, frame: Frame) -> None:
        """A frame that came after our end: only who else has ended is of interest."""
        if isinstance(frame, Abort):
            self._gone.add(neighbor)

    def repeat(self, neighbor: int) -> None:
        """A neighbor has said hello after our end: it is told at once."""
        assert self._words is not None
        self._links.send(neighbor, self._words)

    async def say(self, reason: str, *, begun: bool) -> None:
        """Tell every neighbor.

        Before the first round (not `begun`) some may be about to call us: we stay for them a few
        seconds, since they would wait for us as long as for one that comes back.
        """
        self._words = Abort(reason[:MAX_TEXT])
        for neighbor in self._neighbors:
            self._links.send(neighbor, self._words)
        until = perf_counter() + (0.0 if begun else _WAIT_SECONDS)
        while perf_counter() < until and not self._gone.issuperset(self._links.unreachable):
            if not self._links.drain():
                await asyncio.sleep(_LISTEN_EVERY)
