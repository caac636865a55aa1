"""The barrier between neighbors: exchange `seq` opens when all of their frames for it are here."""

from __future__ import annotations

from dlag_node.rounds.window import Window
from dlag_node.wire.frames import Array, Delta, RoundFrame


class Barrier:
    """Holds the frames of exchange `seq` and of the one after it, each neighbor's once.

    What fits is the window's to say.
    """

    def __init__(self, window: Window) -> None:
        self.window = window
        self.neighbors = window.neighbors
        self.seq = 0
        self._now: dict[int, RoundFrame] = {}
        self._next: dict[int, RoundFrame] = {}
        self.lacking = len(window.due(0))  # frames of exchange `seq` that are not here yet
        self.latest = -1  # who sent the last frame that was not ahead: who was waited for

    def begin_at(self, seq: int) -> None:
        """Go on at exchange `seq`, as after a crash: of its frames none is here."""
        self.seq = seq
        self._now, self._next = {}, {}
        self.lacking = len(self.window.due(seq))

    def missing(self) -> list[int]:
        """The neighbors whose frame for exchange `seq` is not here yet."""
        return [j for j in self.window.due(self.seq) if j not in self._now]

    def put(self, neighbor: int, frame: RoundFrame) -> bool:
        """Take a neighbor's frame; False for a harmless repeat."""
        ahead = self.window.ahead(neighbor, frame.seq, self.seq)
        slot = self._next if ahead else self._now
        if ahead < 0 or neighbor in slot:
            return False
        slot[neighbor] = frame
        if not ahead:
            self.lacking -= 1
            self.latest = neighbor
        return True

    def words(self) -> list[int]:
        """What the neighbors tell of stopping in exchange `seq`."""
        return [frame.word for frame in self._now.values()]

    def open(self) -> dict[int, Array | None]:
        """The inbox of exchange `seq`, in ascending node id; the barrier moves on to the next."""
        assert not self.lacking
        now = self._now
        inbox = {
            j: frame.vector if type(frame := now[j]) is Delta else None for j in self.neighbors
        }
        self.seq += 1
        self._now, self._next = self._next, {}
        self.lacking = len(self.window.due(self.seq)) - len(self._now)
        return inbox
