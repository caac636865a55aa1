"""What a node's state wants done: orders for the shell around it, in the order of their giving.

What the engine came to is an order, too: an `Outgoing` is to be sent to the neighbors, and a
`RoundEnded` to be written down.
"""

from __future__ import annotations

from dataclasses import dataclass

from dlag_node.errors import DlagError
from dlag_node.rounds import Outgoing, Record, RoundEnded
from dlag_node.wire.frames import Frame


@dataclass(frozen=True, slots=True)
class Compute:
    """Advance the engine, here or in a thread, and hand back what came of it."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send a frame that is none of a round's."""

    neighbor: int
    frame: Frame


@dataclass(frozen=True, slots=True)
class Resend:
    """Send a round frame again."""

    neighbor: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask for what we lack from exchange `seq` on; where the link is down, by hello."""

    neighbor: int
    seq: int


@dataclass(frozen=True, slots=True)
class Meet:
    """A neighbor has said hello: remember where it is."""

    neighbor: int


@dataclass(frozen=True, slots=True)
class Save:
    """Write a checkpoint, whole, before any later order is carried out."""

    finished: bool  # all rounds are made
    done: frozenset[int]  # neighbors that have said goodbye


@dataclass(frozen=True, slots=True)
class Reckon:
    """Read what the kernel counted: who has heard our goodbye may close its connection."""


@dataclass(slots=True)
class Show:
    """Tell the laboratory of a round; at once, and not in a batch, if `flush`."""

    record: Record
    flush: bool


@dataclass(frozen=True, slots=True)
class ShowReady:
    """Tell the laboratory that all links are up."""

    rounds: int


@dataclass(frozen=True, slots=True)
class ShowHalted:
    """Tell the laboratory that we wait; it may be a new one that has not heard of us."""

    rounds: int


@dataclass(frozen=True, slots=True)
class Mention:
    """Tell the log for whom we have been waiting so many seconds."""

    waited: float
    missing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """Find out why these links have not opened before the first round."""

    waited: float
    missing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Call `wake` at this time, and not before."""

    at: float


@dataclass(frozen=True, slots=True)
class Leave:
    """All is done and said."""


@dataclass(frozen=True, slots=True)
class Fail:
    """End with this error."""

    error: DlagError


@dataclass(frozen=True, slots=True)
class GiveUp:
    """End with a NeighborTimeout: these neighbors kept us waiting for too long."""

    waited: float
    missing: tuple[int, ...]


Order = (
    Compute
    | Outgoing
    | RoundEnded
    | Send
    | Resend
    | Ask
    | Meet
    | Save
    | Reckon
    | Show
    | ShowReady
    | ShowHalted
    | Mention
    | Search
    | WakeAt
    | Leave
    | Fail
    | GiveUp
)
