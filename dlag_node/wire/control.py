"""What a node and the coordinator say to each other, before round 1.

node                      coordinator
Join         ->                            if it holds its samples itself: what they look like
             <-           Enrol            an id, what is done alike to all samples, and what the
                                           shard looks like; where nodes hold their own, once all
                                           have joined
                          (Full            or that nobody is needed any more)
Fetch (k)    ->
             <-           Chunk (k)        the shard's bytes, piece by piece, if there is one
Report       ->                            sample count and constants of f_i: never a sample
             <-           Survey           --topology measured:N: addresses of all
Measured     ->                            who can be reached, and in which time
             <-           Assignment       once all have reported: neighbors, row of U, constants
Waiting      ->                            now and then: no answer, unless
             <-           Who              the coordinator has begun anew and does not know the node
Started, Unopened, Finished or Failed  ->  for the operator's eyes; nobody waits for them
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from dlag_node.data import Agreement, Summary
from dlag_node.problems import Problem
from dlag_node.wire.frames import Abort, Refuse, Who
from dlag_node.wire.limits import (
    CHUNK_BYTES,
    FLOAT_BYTES,
    KEY_BYTES,
    MAX_DIM,
    MAX_NODES,
    MAX_TEXT,
    require,
)
from dlag_node.wire.samples import check_agreement, check_summary


@dataclass(frozen=True, slots=True)
class Join:
    """A node asks for a place, and for a shard, unless it holds samples of its own."""

    CODE: ClassVar[int] = 20
    version: int
    wanted: int | None  # an id of the operator's choice
    token: str | None = field(default=None, repr=False)  # lets a key in that is on no list, once
    held: Summary | None = None

    def __post_init__(self) -> None:
        require(self.token is None or len(self.token) <= MAX_TEXT, "the token is too long")
        if self.held is not None:
            check_summary(self.held)


@dataclass(frozen=True, slots=True)
class Enrol:
    """The node's id, what is done to all samples alike, and the node's shard.

    A shard is labels and rows, `entries` stored values (None: dense); one of `size` 0 is not sent:
    the node holds its samples itself.
    """

    CODE: ClassVar[int] = 21
    run: str
    node: int
    problem: str
    lam: float
    n0: int
    samples: int
    dim: int
    entries: int | None
    size: int  # bytes of the shard
    sha256: str
    agreement: Agreement

    def __post_init__(self) -> None:
        require(0 <= self.node < MAX_NODES, f"node is {self.node}")
        require(1 <= self.dim <= MAX_DIM, f"dim is {self.dim}")
        require(1 <= self.samples <= self.n0, f"samples is {self.samples} of n0 = {self.n0}")
        require(self.entries is None or self.entries >= 0, f"entries is {self.entries}")
        # what problems.shard lays out: labels, then a dense matrix, or values, columns and starts
        m, entries = self.samples, self.entries
        numbers = m + (m * self.dim if entries is None else 2 * entries + m + 1)
        require(self.size in (0, FLOAT_BYTES * numbers), f"size is {self.size}")
        check_agreement(self.agreement, self.dim)

    @property
    def held(self) -> bool:
        """Whether the node holds its samples itself."""
        return self.size == 0

    @property
    def chunks(self) -> int:
        """How many pieces the shard comes in."""
        return -(-self.size // CHUNK_BYTES)


@dataclass(frozen=True, slots=True)
class Fetch:
    """Ask for one piece of the shard."""

    CODE: ClassVar[int] = 22
    chunk: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of the shard."""

    CODE: ClassVar[int] = 23
    chunk: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Report:
    """Where the neighbors can reach a node, and the constants of its f_i.

    The last three, which few methods need, are not told of samples that the node holds itself.
    """

    CODE: ClassVar[int] = 24
    address: str
    samples: int
    mu: float
    L: float
    L_sample: float | None = None  # of the sample with the steepest loss, weighted as one of m_i
    L_sum: float | None = None  # sum over own samples j of L_ij = sup l'' ||a_j||^2 / n0
    root_sum: float | None = None  # sum over own samples j of sqrt(1 + L_ij / mu_i)

    @classmethod
    def of(cls, address: str, problem: Problem, *, held: bool = False) -> Report:
        """What is told of an f_i."""
        f = problem
        few = () if held else (f.L_sample, f.L_sum, f.root_sum)
        return cls(address, f.samples, f.mu, f.L, *few)

    def __post_init__(self) -> None:
        require(len(self.address) <= MAX_TEXT, "the address is too long")
        require(self.samples >= 1, f"samples is {self.samples}")
        require(math.isfinite(self.mu) and self.mu > 0, f"mu is {self.mu}")
        require(math.isfinite(self.L) and self.mu <= self.L, f"L is {self.L}, mu is {self.mu}")
        for name, least in (("L_sample", 0.0), ("L_sum", 0.0), ("root_sum", 1.0)):
            value = getattr(self, name)
            fits = value is None or (math.isfinite(value) and value >= least)
            require(fits, f"{name} is {value}")


@dataclass(frozen=True, slots=True)
class Peer:
    """A neighbor: its id, where it can be reached, U_ij, and the key that only it holds."""

    node: int
    address: str
    weight: float
    key: bytes | None = None  # None: a run without keys

    def __post_init__(self) -> None:
        require(self.key is None or len(self.key) == KEY_BYTES, "the key is not of 32 bytes")


@dataclass(frozen=True, slots=True)
class Census:
    """The whole graph and what every node reported, in id order."""

    edges: tuple[tuple[int, int], ...]
    weights: tuple[float, ...]  # U_ij of every edge
    mu: tuple[float, ...]
    L: tuple[float, ...]
    L_sum: tuple[float, ...] | None  # None: somebody did not report it
    root_sum: tuple[float, ...] | None

    def __post_init__(self) -> None:
        nodes = len(self.mu)
        sums = [each for each in (self.L_sum, self.root_sum) if each is not None]
        lengths = [len(each) for each in (self.L, *sums)]
        require(lengths == [nodes] * len(lengths), f"{nodes} mu, others are {lengths}")
        require(
            len(self.weights) == len(self.edges),
            f"{len(self.edges)} edges, {len(self.weights)} weights",
        )
        ends = [end for edge in self.edges for end in edge]
        require(all(0 <= end < nodes for end in ends), f"an edge leaves the {nodes} nodes")
        numbers = (*self.weights, *self.mu, *self.L, *(x for each in sums for x in each))
        require(all(map(math.isfinite, numbers)), "a number is not finite")


@dataclass(frozen=True, slots=True)
class Assignment:
    """Everything a node needs from the coordinator for the whole run."""

    CODE: ClassVar[int] = 25
    config: str  # hash of what all nodes must agree on
    method: str
    preset: str
    rounds: int
    tol: float | None  # all stop once every theta_i has come to rest within this
    max_seconds: float | None  # all stop once somebody has been at it for so long
    diameter: int  # of the graph
    seed: int
    own_weight: float  # U_ii
    peers: tuple[Peer, ...]  # ascending id
    spectrum: tuple[float, ...]  # of U, descending
    mu_min: float
    L_max: float
    L_sample: float | None  # the largest that a node reported; None: somebody did not
    census: Census | None  # None on meshes above its limits

    def __post_init__(self) -> None:
        ids = [peer.node for peer in self.peers]
        require(ids == sorted(set(ids)), f"peers are {ids}, not in ascending id")
        require(self.rounds >= 1, f"rounds is {self.rounds}")
        require(self.tol is None or self.tol > 0, f"tol is {self.tol}")
        require(self.max_seconds is None or self.max_seconds > 0, f"seconds: {self.max_seconds}")
        require(1 <= self.diameter < MAX_NODES, f"diameter is {self.diameter}")
        require(self.seed >= 0, f"seed is {self.seed}")
        numbers = (self.own_weight, self.mu_min, self.L_max, self.L_sample or 0.0, *self.spectrum)
        weights = [peer.weight for peer in self.peers]
        require(all(map(math.isfinite, (*numbers, *weights))), "a number is not finite")


@dataclass(frozen=True, slots=True)
class Started:
    """The node has its assignment and calls its neighbors: it needs the coordinator no more."""

    CODE: ClassVar[int] = 26


@dataclass(frozen=True, slots=True)
class Finished:
    """The node has done all of its rounds."""

    CODE: ClassVar[int] = 27
    rounds: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The node gave up, for this reason."""

    CODE: ClassVar[int] = 28
    reason: str

    def __post_init__(self) -> None:
        require(len(self.reason) <= MAX_TEXT, "the reason is too long")


@dataclass(frozen=True, slots=True)
class Waiting:
    """The node has been waiting for the coordinator's next word for a while."""

    CODE: ClassVar[int] = 29


@dataclass(frozen=True, slots=True)
class Full:
    """Every one of the run's places is taken: this node is one too many."""

    CODE: ClassVar[int] = 33
    nodes: int

    def __post_init__(self) -> None:
        require(1 <= self.nodes <= MAX_NODES, f"nodes is {self.nodes}")


@dataclass(frozen=True, slots=True)
class Survey:
    """Measure how long a connection to each of these takes; in id order, own address included."""

    CODE: ClassVar[int] = 30
    number: int  # of this survey: a node that comes back may have another address
    addresses: tuple[str, ...]

    def __post_init__(self) -> None:
        require(2 <= len(self.addresses) <= MAX_NODES, f"{len(self.addresses)} addresses")


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds to each node in id order, 0 to ourselves; -errno where no connection opened."""

    CODE: ClassVar[int] = 31
    number: int
    body: bytes  # little-endian float64

    def __post_init__(self) -> None:
        whole = len(self.body) % FLOAT_BYTES == 0
        require(whole and len(self.body) <= FLOAT_BYTES * MAX_NODES, "not a row of times")
        require(all(map(math.isfinite, self.times)), "a time is not finite")

    @property
    def times(self) -> tuple[float, ...]:
        """The numbers in `body`."""
        return struct.unpack(f"<{len(self.body) // FLOAT_BYTES}d", self.body)

    @classmethod
    def of(cls, number: int, times: Sequence[float]) -> Measured:
        """The answer to a survey."""
        return cls(number, struct.pack(f"<{len(times)}d", *times))


@dataclass(frozen=True, slots=True)
class Unopened:
    """A link that is not open yet, before round 1: which address was tried from where."""

    CODE: ClassVar[int] = 32
    neighbor: int
    address: str
    origin: str
    error: str

    def __post_init__(self) -> None:
        require(0 <= self.neighbor < MAX_NODES, f"neighbor is {self.neighbor}")
        longest = max(map(len, (self.address, self.origin, self.error)))
        require(longest <= MAX_TEXT, "a text is too long")


FromNode = Join | Fetch | Report | Measured | Started | Unopened | Finished | Failed | Waiting
FromCoordinator = Enrol | Chunk | Survey | Assignment | Full | Refuse | Abort | Who

FROM_NODE: dict[int, type[FromNode]] = {
    kind.CODE: kind
    for kind in (Join, Fetch, Report, Measured, Started, Unopened, Finished, Failed, Waiting)
}
FROM_COORDINATOR: dict[int, type[FromCoordinator]] = {
    kind.CODE: kind for kind in (Enrol, Chunk, Survey, Assignment, Full, Refuse, Abort, Who)
}
