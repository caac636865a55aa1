"""What neighbors say to each other.

Each edge carries at most one round frame an exchange, a `Delta` or a `Skip`; none where silence was
promised or is the method's own. The rest opens, repairs and ends a link: `Hello` and `Welcome`
prove that both ends belong to the same run, `Need` asks for everything from an exchange on, `Done`
and `Abort` say goodbye.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dlag_node.rounding import Rounded
from dlag_node.wire.limits import MAX_BACK, MAX_NODES, MAX_SEQ, MAX_TEXT, require

Array = NDArray[np.float64]


# The two frames of a round are made for each message: not frozen, which would double their cost.
@dataclass(slots=True, eq=False)
class Delta:
    """A vector for exchange `seq`: little-endian float64 on the wire, all finite.

    Where it was rounded, `rounded` holds the shorter body that travels in its place. `word` is what
    the sender knows of stopping (`rounds.agreement`), `promise` for how many further exchanges of
    this vector it will be silent; 0 is not sent.
    """

    CODE: ClassVar[int] = 1
    ROUNDED_CODE: ClassVar[int] = 10
    PROMISING_CODE: ClassVar[int] = 11
    ROUNDED_PROMISING_CODE: ClassVar[int] = 12
    seq: int
    vector: Array
    rounded: Rounded | None = None
    word: int = 0
    promise: int = 0

    @property
    def payload_bytes(self) -> int:
        """The bytes of the vector alone, as it travels."""
        return self.vector.nbytes if self.rounded is None else len(self.rounded.body)


@dataclass(slots=True)
class Skip:
    """Silence in exchange `seq`, said aloud: a few bytes that tell silent from slow."""

    CODE: ClassVar[int] = 2
    promise: ClassVar[int] = 0  # only a delta promises
    seq: int
    word: int = 0


@dataclass(frozen=True, slots=True)
class Hello:
    """First words on a link, from the side that connected.

    `need` is the exchange it is at, `back` how many rounds it may fall back by should it crash, and
    `address` where it can be called: not where it was, perhaps.
    """

    CODE: ClassVar[int] = 3
    version: int
    run: str
    config: str
    node: int
    need: int
    back: int
    address: str

    def __post_init__(self) -> None:
        require(0 <= self.node < MAX_NODES, f"node is {self.node}")
        require(0 <= self.back <= MAX_BACK, f"back is {self.back}")
        _check_seq(self.need)
        _check_text(self.run)
        _check_text(self.config)
        _check_text(self.address)


@dataclass(frozen=True, slots=True)
class Welcome(Hello):
    """The answer to a Hello that was accepted, with the same words about ourselves."""

    CODE: ClassVar[int] = 4


@dataclass(frozen=True, slots=True)
class Need:
    """ "Send me everything from exchange `seq` on": for start-up, gaps and recovery."""

    CODE: ClassVar[int] = 5
    seq: int

    def __post_init__(self) -> None:
        _check_seq(self.seq)


@dataclass(frozen=True, slots=True)
class Who:
    """ "I do not know this connection: say Hello"; a link was re-made behind the sockets."""

    CODE: ClassVar[int] = 6


@dataclass(frozen=True, slots=True)
class Refuse:
    """The peer does not belong to this run, for this reason."""

    CODE: ClassVar[int] = 7
    reason: str

    def __post_init__(self) -> None:
        _check_text(self.reason)


@dataclass(frozen=True, slots=True)
class Done:
    """The sender has finished and holds every frame before exchange `seq`."""

    CODE: ClassVar[int] = 8
    seq: int

    def __post_init__(self) -> None:
        _check_seq(self.seq)


@dataclass(frozen=True, slots=True)
class Abort:
    """Somebody in the run failed for this reason: pass it on and stop."""

    CODE: ClassVar[int] = 9
    reason: str

    def __post_init__(self) -> None:
        _check_text(self.reason)


RoundFrame = Delta | Skip
Frame = Delta | Skip | Hello | Welcome | Need | Who | Refuse | Done | Abort


def all_finite(vector: Array) -> bool:
    """Whether every entry is finite.

    One product in the usual case; a look at each entry only where its square overflows. By vdot,
    which, unlike dot, does not warn of an overflow, and takes a third of the time of isfinite. The
    order in which BLAS adds up cannot change the answer: an entry that is not finite makes any sum
    of squares so, and where a sum overflows by its order alone the entries themselves are asked.
    """
    return math.isfinite(np.vdot(vector, vector)) or bool(np.isfinite(vector).all())


def _check_seq(seq: int) -> None:
    require(0 <= seq < MAX_SEQ, f"exchange {seq} is out of range")


def _check_text(text: str) -> None:
    require(len(text) <= MAX_TEXT, f"a text of {len(text)} characters, the limit is {MAX_TEXT}")
