"""What a node says of itself when a link opens, and what the other end must say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dlag_node.errors import RemoteProtocolError
from dlag_node.wire.frames import Hello
from dlag_node.wire.limits import PROTOCOL


class Refused(RemoteProtocolError):
    """A peer that does not belong to this run."""


@dataclass(frozen=True, slots=True)
class Introduction:
    """One node in one run: where it is, how far, and by how many rounds it may fall back."""

    node: int
    run: str
    config: str
    position: Callable[[], int]  # the exchange it is at
    back: int
    address: str  # where others reach it

    def words(self, kind: type[Hello]) -> Hello:
        """Our Hello, or our Welcome."""
        known = (PROTOCOL, self.run, self.config, self.node)
        return kind(*known, self.position(), self.back, self.address)

    def check(self, words: Hello) -> None:
        """Refused, with the difference, where the other end is in another run than we are."""
        if words.version != PROTOCOL:
            raise Refused(f"protocol version {words.version}, ours is {PROTOCOL}")
        if words.run != self.run:
            raise Refused(f"run id {words.run[:40]!r}, ours is {self.run}")
        if words.config != self.config:
            raise Refused(f"configuration hash {words.config[:12]!r}, ours is {self.config:.12}")
