"""ADFS (Hendrikx, Bach, Massoulie 2019): one edge of an augmented graph a draw, pair by pair.

An accelerated decentralized stochastic proximal algorithm for finite sums: accelerated proximal
coordinate descent on the dual, whose coordinates are the edges between workers and, of worker i,
one virtual edge to each own sample (`augmented` has the graph and its constants). Worker i keeps v
and y in R^d, and v_j, y_j, the factors of a_j, for each sample; all 0. Draw t, the same for all:

    edge e = {i, l}: both tell g = y/sigma, D = -(rho / (sigma_A p_e)) (g_i - g_l),
        v^+ = (1 - rho) v + rho y + D,  x^+ = y + (rho R_e / p_e) D,
        y^+ = (x^+ + rho v^+)/(1 + rho)
    sample j of i: eta = rho mu_ij^2 / (sigma_A p_ij),
        w = (1 - rho) v_j + rho y_j + eta (<a_j, y> / (||a_j||^2 sigma) - y_j / L_ij),
        v_j^+ = l'(s)/n0,  s + ||a_j||^2 (1/eta - 1/L_ij) l'(s)/n0 = ||a_j||^2 w / eta,
        D_j = v_j^+ - (1 - rho) v_j - rho y_j,   D = -D_j a_j for the centre,
        x^+ = y + (rho/p_ij) D and y^+ = (x^+ + rho v^+)/(1 + rho) for both
    neither: v^+ = (1 - rho) v + rho y,  y^+ = (y + rho v^+)/(1 + rho)

The steps of the last line are made up for when they are needed, any number of them at once. A round
is all draws up to and including the next edge: its two ends exchange g, nobody else sends anything
or waits for anybody, and no message is needed for a sample. With `edges=N` a round has N such
edges, in as few exchanges as their order allows: pairs that have no worker in common exchange at
once. Every so many rounds all workers meet: each sends a token to every neighbor, a tenth of the
messages at most, so that nobody runs away from the others and words on stopping get around.
sum_i v_i + sum_ij v_ij a_j = 0 always, for y too.

theta_i = y_i/sigma_i as in the authors' code (`output=y`) or v_i/sigma_i as in their paper. Draws
come from the stream that all workers share; which sample a worker's draw means only that worker
knows. A proximal step counts as one sample gradient. Both presets are one.

Deviation: probabilities are the best for the authors' weights, which takes a third fewer draws than
theirs on the reference run. Deviation: the meetings, which the authors' workers do without.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple, TypeVar

import numpy as np

from dlag_node.errors import ConfigError, LocalProtocolError
from dlag_node.methods.augmented import Law, law_of
from dlag_node.methods.flow import Array, Exchange, Flow, RoundReport, Schedule
from dlag_node.methods.guard import Guard
from dlag_node.methods.spec import MethodSpec
from dlag_node.methods.worker import Worker
from dlag_node.problems import total
from dlag_node.solvers.compiled import loss_slope
from dlag_node.solvers.prox import margin_of

Moved = TypeVar("Moved", float, Array)  # a sample's factor, or a centre

OUTPUTS = ("y", "v")
_DRAWS = 1024  # numbers taken from the shared stream at a time
_MESSAGES_A_TOKEN = 10  # between two meetings
_NOBODY: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Parameters:
    """What can be set of ADFS."""

    output: str = "y"
    edges: int = 1  # in a round

    def __post_init__(self) -> None:
        if self.output not in OUTPUTS:
            raise ConfigError(f"output = {self.output!r}: expected one of {', '.join(OUTPUTS)}")
        if self.edges < 1:
            raise ConfigError(f"edges = {self.edges}: expected a whole number of at least 1")


def build(spec: MethodSpec, worker: Worker) -> Adfs:
    """ADFS for this worker."""
    law = law_of(worker.all_about_everyone(spec.name))
    return Adfs(worker, law, spec.parameters(Parameters()))


@dataclass(frozen=True, slots=True)
class _Idle:
    """v <- (1 - rho) v + rho y, y <- (y + rho v)/(1 + rho), any number of times at once.

    Both tend to (delta v + rho y)/(rho + delta), delta = rho (1 - rho)/(1 + rho), and v - y shrinks
    by 1 - rho - delta a step.
    """

    rho: float

    def __call__(self, v: Moved, y: Moved, steps: int) -> tuple[Moved, Moved]:
        """v and y after `steps` such steps."""
        if steps == 0:
            return v, y
        delta = self.rho * (1.0 - self.rho) / (1.0 + self.rho)
        both = self.rho + delta
        middle = (delta * v + self.rho * y) / both
        apart = (v - y) * ((1.0 - both) ** steps / both)
        return middle + self.rho * apart, middle - delta * apart


class _Drawn(NamedTuple):
    """One draw: its number, its interval by `Law.drawn`, where in it, and whether it is an edge."""

    draw: int
    at: int
    where: float
    edge: bool


class _Ahead:
    """The draws to come that are an edge, or a sample of worker i's own.

    `draws(n)` takes the next n numbers in [0, 1) from the stream. What of a `block` of them is
    still to come follows from the block and from `next`, the first draw that was not taken yet.
    """

    STATE = ("rng", "block", "seen", "next")

    def __init__(self, rng: np.random.Generator, law: Law, node: int) -> None:
        self.rng = rng
        self.draws: Callable[[int], Array] = rng.random
        self.block = np.zeros(0)
        self.seen = 0  # draws taken from the stream
        self.next = 0
        self._law = law
        self._node = node
        self._coming: deque[_Drawn] = deque()
        self._sorted = 0  # `seen` when `_coming` was made

    def first(self) -> _Drawn:
        """The next draw."""
        if self._sorted != self.seen:
            self._sort()  # a checkpoint was restored
        while not self._coming:
            self.block = self.draws(_DRAWS)
            self.seen += len(self.block)
            self._sort()
        return self._coming[0]

    def take(self) -> _Drawn:
        """The next draw, which is then done with."""
        drawn = self.first()
        self.next = drawn.draw + 1
        return self._coming.popleft()

    def _sort(self) -> None:
        """Find what is to come in the block."""
        edges, begin = len(self._law.edges), self.seen - len(self.block)
        at, where = self._law.drawn(self.block)
        ours = np.flatnonzero((at < edges) | (at == edges + self._node))
        ours = ours[ours >= self.next - begin]
        columns = (begin + ours, at[ours], where[ours], at[ours] < edges)
        each = zip(*(column.tolist() for column in columns), strict=True)
        self._coming = deque(itertools.starmap(_Drawn, each))
        self._sorted = self.seen


class Adfs:
    """Worker i's side of ADFS; what is `ahead` are the draws that all workers share."""

    STATE = (
        "t", "v", "y", "_at", "v_of", "y_of", "_at_of", "_margins",
        "theta", "_k", "ahead", "_guard",
    )  # fmt: skip

    def __init__(self, worker: Worker, law: Law, wanted: Parameters) -> None:
        f = worker.problem
        self._problem = f
        self._node = worker.node
        self._law = law
        self._idle = _Idle(law.rho)
        self._alone = {j: frozenset({j}) for j in worker.hood.weights}
        self._output = wanted.output
        costs = np.sqrt(law.tau[worker.node] * (1.0 + f.L_of_samples / f.mu))  # c_ij
        self._p = costs / law.total
        self._intervals = np.cumsum(costs / total(costs))
        self._square_norms = f.rows.square_norms()
        self.ahead = _Ahead(worker.shared_stream(), law, worker.node)
        self.t = 0  # draws so far
        self._edges = wanted.edges
        self.v, self.y, self._at = np.zeros(f.dim), np.zeros(f.dim), 0
        self.v_of = np.zeros(f.samples)  # as of draw `_at_of[j]`
        self.y_of = np.zeros(f.samples)
        self._at_of = np.zeros(f.samples, dtype=np.int64)
        self._margins = np.zeros(f.samples)  # of each sample's last step, where the next begins
        self.theta = np.zeros(f.dim)
        self.width = f.dim
        # a round of N edges has 2 N messages, and a meeting a token each way on every edge
        self._meet_every = ceil(_MESSAGES_A_TOKEN * len(law.edges) / wanted.edges)
        self.schedule = Schedule(lead=self._meet_every * wanted.edges + 1)
        self._guard = Guard(usual=1.0, advice="scale the features or raise lambda")
        self.advice = self._guard.advice
        self._k = 0
        self.parameters: dict[str, float | int | str] = {
            "rho": law.rho,
            "sigma_A": law.sigma_A,
            "p_comm": float(law.p_edge.sum()),
            "output": wanted.output,
            "edges": wanted.edges,
        }

    def round(self) -> Flow[RoundReport]:
        """All draws up to and including the next edge between two workers, or the next `edges`."""
        steps, left = 0, self._edges
        while left:
            block = self._block(left)
            edges = [each for each in block if each.edge]
            left -= len(edges)
            own = [each for each in block if self._concerns(each)]
            if not any(each.edge for each in own):
                yield Exchange(None, _NOBODY, expects=_NOBODY)
            for drawn in own:
                self.t = drawn.draw + 1
                if drawn.edge:
                    yield from self._exchange(drawn.at)
                else:
                    self._step_of_sample(drawn.where)
                    steps += 1
            self.t = edges[-1].draw + 1
        if (self._k + 1) % self._meet_every == 0:
            yield Exchange(None)
        self._catch_up(self.t)
        theta = (self.y if self._output == "y" else self.v) / self._problem.mu
        step = self._guard.step(self._k, self.theta, theta)
        self.theta = theta
        self._k += 1
        return RoundReport(gradients=steps, step=step, age=0)

    def _block(self, edges: int) -> list[_Drawn]:
        """The next draws with `edges` edges, or up to one that meets a worker for the second time.

        Their pairs do not wait for each other: one exchange serves them all.
        """
        block: list[_Drawn] = []
        busy: set[int] = set()
        while edges:
            ahead = self.ahead.first()
            if ahead.edge:
                ends = self._law.edges[ahead.at]
                if not busy.isdisjoint(ends):
                    break
                busy.update(ends)
                edges -= 1
            block.append(self.ahead.take())
        return block

    def _concerns(self, drawn: _Drawn) -> bool:
        return not drawn.edge or self._node in self._law.edges[drawn.at]

    def _exchange(self, e: int) -> Flow[None]:
        """The step of an edge of ours."""
        law, ends = self._law, self._law.edges[e]
        partner = ends[1] if ends[0] == self._node else ends[0]
        self._catch_up(self.t - 1)
        g = self.y / self._problem.mu
        alone = self._alone[partner]
        inbox = yield Exchange(g, alone, expects=alone)
        other = inbox[partner]
        if other is None:
            raise LocalProtocolError(
                f"draw {self.t - 1}: we drew the edge to worker {partner}, which drew another"
            )
        p = float(law.p_edge[e])
        D = (-law.rho / (law.sigma_A * p)) * (g - other)
        self._move(D, law.rho * float(law.resistance[e]) / p)

    def _step_of_sample(self, where: float) -> None:
        """The proximal step of the own sample that the draw means."""
        f, law, rho = self._problem, self._law, self._law.rho
        j = min(int(np.searchsorted(self._intervals, where, side="right")), f.samples - 1)
        if self._square_norms[j] == 0.0:
            return  # its a_j is 0: nothing that it does moves anything
        self._catch_up(self.t - 1)
        idle = self.t - 1 - int(self._at_of[j])
        v, y = self._idle(float(self.v_of[j]), float(self.y_of[j]), idle)
        p, L, square = float(self._p[j]), float(f.L_of_samples[j]), float(self._square_norms[j])
        b = f.labels[j]
        eta = rho * law.tau[self._node] * L / (law.sigma_A * p)
        kept = (1.0 - rho) * v + rho * y
        w = kept + eta * (f.rows.dot(j, self.y) / (square * f.mu) - y / L)
        C = square * (1.0 / eta - 1.0 / L) / f.n0
        code, curvature = f.loss.code, f.loss.curvature
        s = margin_of(code, b, curvature, C, square * w / eta, self._margins[j])
        v_new = loss_slope(code, s, b) / f.n0
        change = v_new - kept
        self._margins[j] = s
        self.v_of[j] = v_new
        self.y_of[j] = (y + (rho / p) * change + rho * v_new) / (1.0 + rho)
        self._at_of[j] = self.t
        D = np.zeros(f.dim)
        f.rows.add_row(j, -change, D)
        self._move(D, rho / p)

    def _move(self, D: Array, factor: float) -> None:
        """The centre's step by D in draw t - 1, up to which it was caught up."""
        rho = self._law.rho
        self.v = (1.0 - rho) * self.v + rho * self.y + D
        self.y = (self.y + factor * D + rho * self.v) / (1.0 + rho)
        self._at = self.t

    def _catch_up(self, t: int) -> None:
        """Make up for the draws before draw t that did not touch the centre."""
        self.v, self.y = self._idle(self.v, self.y, t - self._at)
        self._at = t
