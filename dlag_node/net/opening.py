"""Why links do not open before round 1: found out once, and said as a table."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from dlag_node.columns import columns
from dlag_node.net.links import Links
from dlag_node.net.survey import probe
from dlag_node.wire.control import Unopened
from dlag_node.wire.limits import MAX_TEXT

log = logging.getLogger(__name__)

_SAY_AFTER = 5.0  # seconds; or half of the neighbor timeout, if that is shorter


class Opening:
    """Watches links that are to open; `tell` gets what was found out about those that do not."""

    def __init__(
        self, node: int, links: Links, timeout: float, tell: Callable[[Unopened], None]
    ) -> None:
        self._node = node
        self._links = links
        self._after = min(_SAY_AFTER, timeout / 2)
        self._tell = tell
        self._search: asyncio.Task[None] | None = None

    def look(self, waited: float, missing: Sequence[int]) -> None:
        """So long we have been waiting for these."""
        if self._search is None and waited >= self._after:
            loop = asyncio.get_running_loop()
            self._search = loop.create_task(self._find_out(tuple(missing)))

    async def settle(self) -> None:
        """Let a search that is under way come to its end."""
        if self._search is not None:
            await self._search

    async def _find_out(self, missing: tuple[int, ...]) -> None:
        found = await asyncio.gather(*map(self._why, missing))
        rows = [
            ("node", "neighbor", "address tried", "from", "error"),
            *((str(self._node), str(f.neighbor), f.address, f.origin, f.error) for f in found),
        ]
        log.warning("links that are not open before round 1:\n%s", columns(rows))
        for each in found:
            self._tell(each)

    async def _why(self, neighbor: int) -> Unopened:
        address, origin, ours = self._links.attempt(neighbor)
        error = "it has not called"
        if ours:
            try:
                await probe(address)
                error = "somebody listens there who does not answer as a node of this run"
            except OSError as exc:
                error = exc.strerror or str(exc)
        return Unopened(neighbor, address, origin, error[:MAX_TEXT])
