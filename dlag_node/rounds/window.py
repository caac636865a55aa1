"""How far apart neighbors can be: what fits, what must be kept, and what a promise covers."""

from __future__ import annotations

from collections.abc import Sequence

from dlag_node.errors import RemoteProtocolError
from dlag_node.methods.flow import EVERYBODY_SPEAKS, Schedule
from dlag_node.wire.frames import RoundFrame


class Window:
    """The one rule that barrier, replay and announcements obey.

    Each edge carries at most one frame an exchange in each direction. A frame of exchange q with a
    promise r *covers* q and the r next exchanges of its vector, and nobody leaves exchange q before
    every neighbor that is due in it has covered q. So a neighbor is at most `lead` exchanges ahead
    of us, as the method's schedule says, and one that we know to be at exchange e

    - takes our frames that cover e, and those of up to e + lead (`wanted`);
    - has covered at most what we need to get to e + lead, so that no frame of ours from beyond that
      exists (`unheard_from`),

    and once we have come to exchange q it may lack those that cover q - lead or what follows
    (`in_doubt`). Crashes widen that: how far back one may fall is the engine's to know.

    Why `lead` is longest + 1 where everybody speaks, but for promises, in rounds of one exchange: a
    neighbor leaves exchange q only when we have covered q, and from exchange e we have covered
    e + longest at most; so it is at e + longest + 1 at most.
    """

    def __init__(self, neighbors: Sequence[int], schedule: Schedule = EVERYBODY_SPEAKS) -> None:
        self.neighbors = tuple(sorted(neighbors))
        self.known = frozenset(self.neighbors)
        self.lead = schedule.lead
        self.rounds_behind = -(-schedule.lead // schedule.stride)  # of a neighbor, at most
        self._longest = schedule.longest
        self._stride = schedule.stride

    def refuse(self, neighbor: int, frame: RoundFrame, ours: int) -> None:
        """Say why a frame does not fit who is at exchange `ours`; not of a repeat."""
        if neighbor not in self.known:
            raise RemoteProtocolError(
                f"node {neighbor} sent exchange {frame.seq}, but is no neighbor: "
                f"expected one of {self.neighbors}"
            )
        if frame.seq > ours + self.lead:
            raise RemoteProtocolError(
                f"neighbor {neighbor} sent exchange {frame.seq}, we are at {ours}: "
                f"a neighbor can be {self.lead} ahead, never more"
            )

    def covered(self, frame: RoundFrame) -> range:
        """The exchanges after that of the frame in which its sender has promised to be silent."""
        if frame.promise > self._longest:
            raise RemoteProtocolError(
                f"exchange {frame.seq} with a promise of {frame.promise}, "
                f"expected {self._longest} at most"
            )
        return range(frame.seq + self._stride, self.last_covered(frame) + 1, self._stride)

    def last_covered(self, frame: RoundFrame) -> int:
        """The last exchange that the frame covers: its own, if it promises nothing."""
        return frame.seq + frame.promise * self._stride

    def wanted(self, need: int) -> range:
        """The exchanges of which a neighbor at `need` takes our frames, beside the covering one."""
        return range(need, need + self.lead + 1)

    def in_doubt(self, ours: int) -> int:
        """The oldest exchange that a living neighbor may be at when we are at `ours`."""
        return ours - self.lead

    def unheard_from(self, need: int) -> int:
        """The exchange from which on a neighbor at `need` can have no frame of ours.

        Even before a crash we were at need + lead at most.
        """
        return need + self.lead + 1
