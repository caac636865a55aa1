"""Saying once, and not again and again, that somebody keeps us waiting, and when that is over."""

from __future__ import annotations

import logging
from time import perf_counter

log = logging.getLogger(__name__)

_SAY_AFTER = 2.0  # seconds


class Waits:
    """What the log is told of waiting for neighbors."""

    def __init__(self) -> None:
        self.said: tuple[float, str] | None = None  # since when, and for whom

    def say(self, waited: float, seq: int, where: str) -> None:
        """We have been waiting for so many seconds; once they are many, the log hears of it."""
        if waited < _SAY_AFTER or (self.said is not None and self.said[1] == where):
            return
        self.said = (perf_counter() - waited, where)
        log.warning(
            "waiting for neighbors [%s] at exchange %d, silent for %.1f s", where, seq, waited
        )

    def over(self) -> None:
        """The frame that we waited for is here."""
        assert self.said is not None
        since, where = self.said
        log.warning("going on: waited %.1f s for neighbors [%s]", perf_counter() - since, where)
        self.said = None
