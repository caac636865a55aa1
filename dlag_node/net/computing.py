"""Where an engine computes: on the event loop, or in a thread once that takes long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dlag_node.rounds import Advance, Engine

_HEAVY_SECONDS = 0.05  # an advance that took longer goes to a thread the next time

Result = Callable[[], Advance]  # what `advance` returned, or raises what it raised


class Computing:
    """Advances an engine, one step at a time."""

    def __init__(self, engine: Engine) -> None:
        self.busy = False  # a thread is at it
        self._engine = engine
        self._heavy = {True: False, False: False}  # at a round's begin, inside it

    @property
    def heavy(self) -> bool:
        """Whether the next step is likely to take long."""
        return self._heavy[self._engine.between_rounds]

    def here(self) -> Advance:
        """The next step, now."""
        at_begin = self._engine.between_rounds
        outgoing = self._engine.advance()
        self._heavy[at_begin] = self._engine.advance_seconds > _HEAVY_SECONDS
        return outgoing

    def elsewhere(self, loop: asyncio.AbstractEventLoop, done: Callable[[Result], None]) -> None:
        """The next step in a thread, so that signals and timers are answered meanwhile."""
        self.busy = True

        def back(future: asyncio.Future[Advance]) -> None:
            self.busy = False
            if not future.cancelled():
                done(future.result)

        loop.run_in_executor(None, self.here).add_done_callback(back)
