"""The wish, from outside, that the whole run stop: a signal to any one node, or time that is up."""

from __future__ import annotations

import asyncio
import logging
import signal
from math import inf

log = logging.getLogger(__name__)

STOP_SIGNAL = signal.SIGUSR1


class Wish:
    """What one node has heard; the nodes agree on the round (`rounds.agreement`)."""

    def __init__(self) -> None:
        self.asked = False
        self.max_seconds = inf

    def listen(self) -> None:
        """Take the signal from now on: unheard, it would end the process."""
        asyncio.get_running_loop().add_signal_handler(STOP_SIGNAL, self.ask)

    def ask(self) -> None:
        """Somebody wants the run to stop."""
        if not self.asked:
            self.asked = True
            log.info("asked to stop: all nodes will, after the same round")

    def why(self, seconds: float) -> str | None:
        """Why to stop, after so many seconds of rounds; None: there is no reason."""
        if self.asked:
            return "asked"
        return "max-seconds" if seconds >= self.max_seconds else None
