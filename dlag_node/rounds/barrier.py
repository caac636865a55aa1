"""The barrier between neighbors: exchange `seq` opens when all of their frames for it are here."""

from __future__ import annotations

from collections.abc import Sequence

from dlag_node.errors import RemoteProtocolError
from dlag_node.wire.frames import Array, Delta, RoundFrame


class Barrier:
    """Holds the frames of exchanges `seq` and `seq + 1`, drops repeats, refuses anything else.

    A neighbor can be one exchange ahead, never two: to go further it needs our frame.
    """

    def __init__(self, neighbors: Sequence[int]) -> None:
        self.neighbors = tuple(sorted(neighbors))
        self.seq = 0
        self._now: dict[int, RoundFrame] = {}
        self._next: dict[int, RoundFrame] = {}
        self._known = frozenset(self.neighbors)
        self.lacking = len(self.neighbors)  # frames of exchange `seq` that are not here yet
        self.latest = -1  # who sent the last frame that was not ahead: who was waited for

    def begin_at(self, seq: int) -> None:
        """Go on at exchange `seq`, as after a crash: of its frames none is here."""
        self.seq = seq
        self._now, self._next = {}, {}
        self.lacking = len(self.neighbors)

    def missing(self) -> list[int]:
        """The neighbors whose frame for exchange `seq` is not here yet."""
        return [j for j in self.neighbors if j not in self._now]

    def put(self, neighbor: int, frame: RoundFrame) -> bool:
        """Take a neighbor's frame; False for a harmless repeat."""
        if neighbor not in self._known:
            raise RemoteProtocolError(
                f"node {neighbor} sent exchange {frame.seq}, but is no neighbor: "
                f"expected one of {self.neighbors}"
            )
        ahead = frame.seq - self.seq
        if ahead > 1:
            raise RemoteProtocolError(
                f"neighbor {neighbor} sent exchange {frame.seq}, we are at {self.seq}: "
                "a neighbor can be one ahead, never two"
            )
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
        self.lacking = len(self.neighbors) - len(self._now)
        return inbox
