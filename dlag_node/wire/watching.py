"""What a node tells whoever watches: where it stands, in sums, so that any message may be lost.

It is told, and hears nothing back: a watcher cannot influence the run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dlag_node.wire.limits import MAX_NODES, MAX_TEXT, require

MAX_STATUS_BYTES = 1 << 20
MAX_FAULTS = 8  # the latest ones; the others are in the logs


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that should not have happened."""

    at: float  # seconds since 1970
    rounds: int  # that the node had finished by then
    life: int  # processes of this node before the one that says so
    text: str

    def __post_init__(self) -> None:
        require(math.isfinite(self.at), f"at = {self.at}")
        require(self.rounds >= 0, f"rounds = {self.rounds}")
        require(self.life >= 0, f"life = {self.life}")
        require(len(self.text) <= MAX_TEXT, f"a text of {len(self.text)} characters")


@dataclass(frozen=True, slots=True)
class Sums:
    """What the process has counted since it started."""

    exchanges: int
    deltas: int  # over directed edges, as are tokens and quiet
    tokens: int
    quiet: int
    payload_bytes: int
    sent_bytes: int
    gradients: int
    refused: int  # frames that were dropped
    compute: float  # seconds
    wait: float

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            require(math.isfinite(value) and value >= 0, f"{name} = {value}")


@dataclass(frozen=True, slots=True)
class Near:
    """A neighbor: the deltas and tokens that it was sent, and how long we waited for it."""

    node: int
    deltas: int
    tokens: int
    wait: float  # seconds

    def __post_init__(self) -> None:
        require(0 <= self.node < MAX_NODES, f"neighbor {self.node}")
        for name in ("deltas", "tokens"):
            require(getattr(self, name) >= 0, f"{name} = {getattr(self, name)}")
        require(math.isfinite(self.wait) and self.wait >= 0, f"wait = {self.wait}")


@dataclass(frozen=True, slots=True)
class Status:
    """Where one node stands."""

    CODE: ClassVar[int] = 50
    run: str
    node: int
    restarts: int  # of the node, by its state folder: sums begin anew with each process
    rounds: int  # finished, by earlier processes too
    finished: bool
    age: int
    residual: (
        float | None
    )  # ||x^{k+1} - x^k|| of the last round; None: there was none, or no number
    sums: Sums
    near: tuple[Near, ...]
    faults: int  # so far, of this process
    latest: tuple[Fault, ...]

    def __post_init__(self) -> None:
        require(len(self.run) <= MAX_TEXT, f"a run id of {len(self.run)} characters")
        require(0 <= self.node < MAX_NODES, f"node {self.node}")
        for name in ("restarts", "rounds", "age", "faults"):
            require(getattr(self, name) >= 0, f"{name} = {getattr(self, name)}")
        require(self.residual is None or math.isfinite(self.residual), f"{self.residual}")
        require(len(self.latest) <= MAX_FAULTS, f"{len(self.latest)} faults")


FROM_WATCHED: dict[int, type[Status]] = {Status.CODE: Status}
