"""A round is a generator: it yields an Exchange, receives an Inbox, and returns what it did.

A method performs no IO, reads no clock and logs nothing. Zero, one or K exchanges in a round are
all natural; shared steps are shared with `yield from`; a test is `next` and `send`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dlag_node.rounding import Rounded

Array = NDArray[np.float64]
Inbox = Mapping[int, Array | None]  # neighbor id -> its vector, or None where it was silent

T = TypeVar("T")
Flow = Generator["Exchange", Inbox, T]


# Not frozen, like everything that is made for each exchange: freezing doubles the cost of making.
@dataclass(slots=True, eq=False)
class Exchange:
    """One crossing of the barrier: the same vector for every neighbor, or None for silence.

    With `to`, the vector, or the silence, is told to those neighbors alone. A vector whose values
    were `rounded` travels in fewer bytes. A yielded vector is given away: the method never
    writes into it again.

    With `expects`, something is due from those neighbors alone, and nobody waits for the others;
    both ends of an edge must know from the method who speaks in which exchange. Where `to` leaves
    somebody out, nothing is sent to it.

    A delta may come with a `promise` r: in the next r exchanges of this vector there will be
    silence, which is then `promised`. A promise is a plan of the method's, and changes none of its
    numbers: whether it is published, so that nothing at all need be sent, is the engine's to say.
    """

    payload: Array | None
    to: frozenset[int] | None = None
    rounded: Rounded | None = None
    expects: frozenset[int] | None = None
    promise: int = 0
    promised: bool = False


@dataclass(frozen=True, slots=True)
class Schedule:
    """What both ends of an edge know of who speaks when; the same for all workers of a run.

    A neighbor is silent unannounced for `longest` exchanges of a vector at most, and the vector's
    exchanges are `stride` apart: as many as a round has, at least. `partners` are those neighbors
    with whom worker i exchanges something, both ways, in every round in which it does with any of
    them, and over whom words on stopping travel: None, all of them, in the rounds in which there is
    an exchange where everybody is due. They cross an edge within `hop` such rounds, and the graph
    that partners make has this `diameter` (None: it is the whole graph).
    """

    longest: int = 0  # R: the longest promise
    stride: int = 1
    lead: int = 1  # exchanges that a neighbor can be ahead of us
    hop: int = 1
    partners: frozenset[int] | None = None
    diameter: int | None = None


EVERYBODY_SPEAKS = Schedule()


@dataclass(slots=True)
class RoundReport:
    """What worker i did in one round.

    `gap` and `bound` are the two sides of the paper's lazy condition, for who is silent by it:
    ||theta_hat_i - theta_i||^2 (0 of who told its theta) and B_i, the right-hand side.
    """

    gradients: int  # sample gradients
    step: float  # ||x^{k+1} - x^k||
    age: int  # d_i^k, rounds since the neighbors last heard the lazy vector
    overdue: int = 0  # promised silences in this round that the lazy condition did not allow
    gap: float | None = None
    bound: float | None = None


class Method(Protocol):
    """One worker's side of an optimisation method, whole between two rounds."""

    @property
    def STATE(self) -> tuple[str, ...]:
        """The names of the attributes that last from round to round (`state`)."""

    @property
    def theta(self) -> Array:
        """Worker i's estimate of the minimiser after the last finished round."""

    @property
    def parameters(self) -> dict[str, float | int | str]:
        """The effective parameters, by the paper's letters."""

    @property
    def width(self) -> int:
        """The length of every vector that the method sends: that of theta, or a multiple of it."""

    @property
    def schedule(self) -> Schedule:
        """Who speaks when, as far as both ends of an edge know it beforehand."""

    @property
    def advice(self) -> str:
        """What to change of the parameters should a run not converge."""

    def round(self) -> Flow[RoundReport]:
        """One iteration k."""
