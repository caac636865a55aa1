"""How far a node may go, and how it tells all to stop: the same in the simulator and the mesh."""

from __future__ import annotations

from dlag_node.rounds.engine import Engine
from dlag_node.wire.observing import Horizon


class Course:
    """The rounds that are granted to one engine, and the round that all have agreed to end with."""

    def __init__(self, engine: Engine, horizon: Horizon) -> None:
        self.horizon = horizon  # may be set anew at any time: it is a bound, and only grows
        self._engine = engine
        self._agreement = engine.stopping.agreement
        self._news_from = 0  # the exchange from which on no neighbor can have a frame of ours

    @property
    def reached(self) -> bool:
        """Whether the engine has made all rounds that it may make now."""
        return self._engine.rounds >= self.horizon.rounds or self._agreement.over

    @property
    def may_advance(self) -> bool:
        """Whether the engine can go on: inside a round always, once its frames are here."""
        engine = self._engine
        return not self.reached if engine.between_rounds else not engine.barrier.lacking

    @property
    def over(self) -> bool:
        """Whether there will be no further round."""
        if not (self._engine.between_rounds and self.reached):
            return False
        return self.horizon.final or self._agreement.over

    @property
    def ended(self) -> str:
        """Why there was no further round."""
        return self._agreement.why or "rounds"

    def meet(self, need: int) -> None:
        """A neighbor says that it is at exchange `need`, perhaps of frames from before a crash."""
        self._news_from = max(self._news_from, self._engine.window.unheard_from(need))

    def stop(self, why: str) -> bool:
        """Between two rounds: tell all to stop; False if they know, or cannot be told yet.

        A word must not stand in a frame that a neighbor may have from us without it, from before a
        crash.
        """
        if self._agreement.known or self._engine.seq < self._news_from:
            return False
        self._agreement.announce(why)
        return True
