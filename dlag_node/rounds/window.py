"""How far apart neighbors can be: who is due in an exchange, what fits, and what must be kept."""

from __future__ import annotations

from collections.abc import Sequence

from dlag_node.errors import RemoteProtocolError

# Exchanges that a neighbor can be ahead of us: to go further it needs our frame.
LEAD = 1


class Window:
    """The one rule that barrier, replay and announcements obey.

    Each edge carries one frame an exchange in each direction, and nobody leaves exchange q without
    the frames of q. So a neighbor that we know to be at exchange e

    - takes our frames of e to e + LEAD, and no others (`wanted`);
    - has sent none beyond e, so that no frame of ours beyond e + LEAD exists (`unheard_from`),

    and once we have sent our frame of exchange q it may lack those from q - LEAD on (`in_doubt`).
    Crashes widen that: how far back one may fall is the engine's to know.
    """

    def __init__(self, neighbors: Sequence[int]) -> None:
        self.neighbors = tuple(sorted(neighbors))
        self.known = frozenset(self.neighbors)

    def due(self, seq: int) -> tuple[int, ...]:  # noqa: ARG002
        """Whose frames exchange `seq` waits for, in ascending id: everybody's, in every one."""
        return self.neighbors

    def refuse(self, neighbor: int, theirs: int, ours: int) -> None:
        """Say why a frame of exchange `theirs` does not fit who is at `ours`; not of a repeat."""
        if neighbor not in self.known:
            raise RemoteProtocolError(
                f"node {neighbor} sent exchange {theirs}, but is no neighbor: "
                f"expected one of {self.neighbors}"
            )
        if theirs not in self.wanted(ours) and theirs > ours:
            raise RemoteProtocolError(
                f"neighbor {neighbor} sent exchange {theirs}, we are at {ours}: "
                "a neighbor can be one ahead, never two"
            )

    @staticmethod
    def wanted(need: int) -> range:
        """The exchanges of which a neighbor at `need` takes our frames."""
        return range(need, need + LEAD + 1)

    @staticmethod
    def in_doubt(sent: int) -> int:
        """The oldest exchange of which a living neighbor may lack our frame, `sent` the newest."""
        return sent - LEAD

    @staticmethod
    def unheard_from(need: int) -> int:
        """The exchange from which on a neighbor at `need` can have no frame of ours.

        It has sent none beyond `need`: even before a crash we were at need + LEAD at most.
        """
        return need + LEAD + 1
