"""What a node tells a laboratory that watches the run, and what it hears back.

The laboratory knows all the data and measures suboptimality; the node does not. It answers with a
`Horizon`: how far the node may go. A node that nobody watches has the horizon of its assignment.
A laboratory whose own plan has another configuration would measure another problem: it answers with
a `Refuse`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dlag_node.wire.frames import Refuse
from dlag_node.wire.limits import MAX_TEXT, require


@dataclass(frozen=True, slots=True)
class Ready:
    """The node has all of its links; rounds finished, CPU seconds and resident bytes so far."""

    CODE: ClassVar[int] = 40
    node: int
    rounds: int  # more than 0: it comes from a checkpoint
    cpu: float
    resident: int
    config: str  # the configuration's hash, of its assignment

    def __post_init__(self) -> None:
        require(len(self.config) <= MAX_TEXT, "the configuration is too long")


@dataclass(frozen=True, slots=True)
class Snapshots:
    """theta_i after the rounds before `rounds`, one vector each, and the counts of those rounds."""

    CODE: ClassVar[int] = 41
    node: int
    rounds: int  # finished
    age: int
    deltas: int
    tokens: int
    quiet: int
    thetas: bytes  # little-endian float64, one row a round


@dataclass(frozen=True, slots=True)
class Farewell:
    """The node is done: what it cost."""

    CODE: ClassVar[int] = 42
    node: int
    rounds: int
    control_bytes: int  # frames that open, repair and end links
    cpu: float
    resident: int
    seconds: float  # from the first round's begin to the last one's end
    refused: int  # frames that were dropped, from neighbors and strangers
    ended: str  # why: "rounds", the horizon, or what all agreed to stop for


@dataclass(frozen=True, slots=True)
class Horizon:
    """Go on until `rounds` rounds are finished; `final`: and then end."""

    CODE: ClassVar[int] = 43
    rounds: int
    final: bool


@dataclass(frozen=True, slots=True)
class Halted:
    """The node has gone as far as it may, and says so again: the laboratory may be a new one.

    What it has finished lies in its files. Fields are those of `Ready`: a new laboratory has heard
    none of that.
    """

    CODE: ClassVar[int] = 44
    node: int
    rounds: int
    cpu: float
    resident: int
    config: str

    def __post_init__(self) -> None:
        require(len(self.config) <= MAX_TEXT, "the configuration is too long")


@dataclass(frozen=True, slots=True)
class Fallen:
    """The node gave up, for this reason; if somebody starts it again, it may come back."""

    CODE: ClassVar[int] = 45
    node: int
    reason: str

    def __post_init__(self) -> None:
        require(len(self.reason) <= MAX_TEXT, "the reason is too long")


FromNode = Ready | Snapshots | Farewell | Halted | Fallen

FROM_NODE: dict[int, type[FromNode]] = {
    kind.CODE: kind for kind in (Ready, Snapshots, Farewell, Halted, Fallen)
}
FROM_LABORATORY: dict[int, type[Horizon | Refuse]] = {Horizon.CODE: Horizon, Refuse.CODE: Refuse}
