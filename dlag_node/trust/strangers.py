"""Frames that make no sense, and peers that do not belong: dropped, counted, mentioned once."""

from __future__ import annotations

import logging
from time import monotonic

log = logging.getLogger(__name__)

_REMEMBERED = 1_000  # peers; beyond that they are dropped without a word each
_ANSWER_EVERY = 0.25  # seconds


class Strangers:
    """Keeps a node calm under nonsense: bounded memory, one line a peer, few answers."""

    def __init__(self, mentioned: int = _REMEMBERED) -> None:
        """Mentions so many peers at most."""
        self.dropped = 0
        self._most = mentioned
        self._mentioned: set[str] = set()
        self._answered: dict[bytes, float] = {}

    def drop(self, peer: str, why: object) -> None:
        """Count a dropped frame; say so the first time that this peer sends one."""
        self.dropped += 1
        if peer not in self._mentioned and len(self._mentioned) < self._most:
            self._mentioned.add(peer)
            log.warning("dropped: %s (said once a peer)", why)

    def may_answer(self, route: bytes) -> bool:
        """Whether this connection may be answered now: an honest one needs one answer at a time."""
        now = monotonic()
        if now - self._answered.get(route, float("-inf")) < _ANSWER_EVERY:
            return False
        if len(self._answered) >= _REMEMBERED:
            self._answered.clear()
        self._answered[route] = now
        return True
