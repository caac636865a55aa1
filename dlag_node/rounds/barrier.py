"""The barrier between neighbors: exchange `seq` opens when all of their frames for it are here."""

from __future__ import annotations

from dlag_node.rounds.window import LEAD, Window
from dlag_node.wire.frames import Array, Delta, RoundFrame


class Barrier:
    """Holds the frames of exchange `seq` and of those after it that fit, each neighbor's once.

    What fits is the window's to say.
    """

    def __init__(self, window: Window) -> None:
        self.window = window
        self.neighbors = window.neighbors
        self.latest = -1  # who sent the last frame that was not ahead: who was waited for
        self.begin_at(0)

    def begin_at(self, seq: int) -> None:
        """Go on at exchange `seq`, as after a crash: of its frames none is here."""
        self.seq = seq
        self._held: dict[int, dict[int, RoundFrame]] = {q: {} for q in self.window.wanted(seq)}
        self._now = self._held[seq]
        self.lacking = len(self.window.due(seq))  # frames of exchange `seq` that are not here yet

    def missing(self) -> list[int]:
        """The neighbors whose frame for exchange `seq` is not here yet."""
        return [j for j in self.window.due(self.seq) if j not in self._now]

    def put(self, neighbor: int, frame: RoundFrame) -> bool:
        """Take a neighbor's frame; False for a harmless repeat."""
        slot = self._held.get(frame.seq)
        if slot is None or neighbor not in self.window.known:
            self.window.refuse(neighbor, frame.seq, self.seq)
            return False
        if neighbor in slot:
            return False
        slot[neighbor] = frame
        if slot is self._now:
            self.lacking -= 1
            self.latest = neighbor
        return True

    def words(self) -> list[int]:
        """What the neighbors tell of stopping in exchange `seq`."""
        return [frame.word for frame in self._now.values()]

    def open(self) -> dict[int, Array | None]:
        """The inbox of exchange `seq`, in ascending node id; the barrier moves on to the next."""
        assert not self.lacking
        now = self._held.pop(self.seq)
        inbox = {
            j: frame.vector if type(frame := now[j]) is Delta else None for j in self.neighbors
        }
        self.seq += 1
        self._held[self.seq + LEAD] = {}
        self._now = self._held[self.seq]
        self.lacking = len(self.window.due(self.seq)) - len(self._now)
        return inbox
