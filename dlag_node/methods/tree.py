"""Quasi-Newton descent of the pooled objective: one sum up a spanning tree, one step down.

All workers hold theta, the same bits, and a trial point; both are 0 at first. Round k, worker i:

    up    S_i = (f_i, grad f_i)(trial) + sum of what the children sent; send S_i to the parent
    root  has (f, grad f)(trial): takes the trial or not, and says where to try next (`lbfgs`)
    down  theta = trial if it was taken;  trial = theta + step;  pass (taken, step) on

The tree (`graphs.tree`) is breadth first from a centre of the graph: each level speaks in an
exchange of its own, `depth` of them up and as many down, in which nobody else sends anything or
waits for anybody. That is 2 (n - 1) messages a round of d + 1 floats, whatever the graph. Sums
travel as deltas against what the parent has; `Copy` keeps both ends alike. A step is a delta as it
is. Both are rounded to float32 (form=f4), which changes no count: what a delta lacks the next one
brings, and a step is what all of them read.

Before the first round's sum another one goes up: the diagonal of the Hessians at 0, from which,
with its own samples, the root makes its first guess of the pooled Hessian (`curvature`; up to dim
1000, or not at all with curvature=none). By the house's count the curvature of a sample where its
gradient is taken is free.

theta is the last point taken, so that f(theta) never increases; with output=trial it is the trial,
which is a round ahead and seldom not taken. A step of 0 is the root's word for rest: no worker
computes anything from then on, and what is passed on is a token that says so. The weights of U play
no part. Both presets are one.

L-BFGS over a sum up and down a spanning tree is the terascale learner's: Agarwal, Chapelle, Dudik
and Langford, "A Reliable Effective Terascale Linear Learning System" (JMLR 15, 2014).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite

import numpy as np

from dlag_node.errors import ConfigError, ConvergenceError, LocalProtocolError
from dlag_node.graphs.tree import spanning_tree
from dlag_node.methods.channel import Copy
from dlag_node.methods.channel_parameters import form_named
from dlag_node.methods.curvature import ShardCurvature
from dlag_node.methods.flow import Array, Exchange, Flow, Inbox, RoundReport, Schedule
from dlag_node.methods.lbfgs import Guess, Lbfgs
from dlag_node.methods.spec import MethodSpec
from dlag_node.methods.worker import Everyone, Worker
from dlag_node.problems import FACTORED_DIM, norm
from dlag_node.rounding import WHOLE, rounded

CURVATURES = ("shard", "none")
_FINE = (WHOLE, "f4")
OUTPUTS = ("taken", "trial")
# The trace of the Hessian bounds its largest eigenvalue and is up to d times as large; a quarter
# of it is a first step that is seldom too long.
_FIRST_STEP = 4.0
_NOBODY: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class TreeParameters:
    """Pairs kept by the root; f - f* at which it rests, proven; its first guess; what theta is.

    And how vectors travel.
    """

    memory: int = 50
    gap: float = 0.0
    curvature: str = "shard"
    output: str = "taken"
    form: str = "f4"

    def __post_init__(self) -> None:
        if self.memory < 1:
            raise ConfigError(f"memory = {self.memory}: expected a whole number of at least 1")
        if not (isfinite(self.gap) and self.gap >= 0):
            raise ConfigError(f"gap = {self.gap}: expected a number of at least 0")
        if self.curvature not in CURVATURES:
            raise ConfigError(
                f"curvature = {self.curvature!r}: expected one of {', '.join(CURVATURES)}"
            )
        if self.output not in OUTPUTS:
            raise ConfigError(f"output = {self.output!r}: expected one of {', '.join(OUTPUTS)}")
        if self.form not in _FINE:
            raise ConfigError(
                f"form = {self.form!r}: expected one of {', '.join(_FINE)}; "
                "fewer digits would hide whether f decreased"
            )


def build(spec: MethodSpec, worker: Worker) -> TreeDescent:
    """The tree method for this worker."""
    everyone = worker.all_about_everyone(spec.name)
    return TreeDescent(worker, everyone, spec.parameters(TreeParameters()))


class TreeDescent:
    """Worker i's side of the descent; only the root's `descent` is ever used."""

    STATE = ("k", "taken", "trial", "resting", "told", "heard", "diagonal", "descent")

    def __init__(self, worker: Worker, everyone: Everyone, wanted: TreeParameters) -> None:
        f = worker.problem
        tree = spanning_tree(worker.nodes, everyone.edges)
        self._problem = f
        self._level, self._depth = tree.level[worker.node], tree.depth
        self._children = tree.children[worker.node]
        self._parent = tree.parent[worker.node]
        self._down = frozenset(self._children)
        self._up = frozenset(() if self._parent is None else (self._parent,))
        self._curved = wanted.curvature == "shard" and f.dim <= FACTORED_DIM
        self._curvature = ShardCurvature(f)
        self._first_step = _first_step(everyone)
        self._output = wanted.output
        self._form = form_named(wanted.form)
        self.advice = f"scale the features or raise lambda = {f.lam:g}"
        self.width = f.dim + 1
        self.schedule = _schedule(tree.depth, self._up | self._down)
        self.k = 0
        self.taken: Array = np.zeros(f.dim)  # the last point taken
        self.trial: Array = np.zeros(f.dim)
        self.resting = False
        self.told = Copy(self.width)  # S_i as the parent has it
        self.heard = [Copy(self.width) for _ in self._children]
        self.diagonal: Array = np.zeros(0)  # of the pooled Hessian at 0, at the root
        self.descent = Lbfgs(
            f.dim,
            guess=self._guess,
            mu=sum(everyone.mu),
            memory=wanted.memory,
            gap=wanted.gap,
        )
        self.parameters: dict[str, float | int | str] = {
            "root": tree.root,
            "depth": tree.depth,
            "memory": wanted.memory,
            "gap": wanted.gap,
            "curvature": "shard" if self._curved else "none",
            "output": wanted.output,
            "form": wanted.form,
        }

    @property
    def theta(self) -> Array:
        """The last point taken, or the trial."""
        return self.taken if self._output == "taken" else self.trial

    def begin_at(self, theta: Array, g: Array) -> None:  # noqa: ARG002
        """The first trial is theta: it has no other state to begin with."""
        self.taken, self.trial = theta, theta

    def round(self) -> Flow[RoundReport]:
        """One evaluation of f and its gradient by all workers, and what follows from it."""
        if self.resting:
            for to, expects in (*self._turns_up(), *self._turns_down()):
                yield Exchange(None, to, expects=expects)
            self.k += 1
            return RoundReport(gradients=0, step=0.0, age=0)
        f, before = self._problem, self.theta
        if self.k == 0 and self._curved:
            fresh = [Copy(self.width) for _ in self._children]
            own = np.concatenate(([0.0], f.hessian(self.trial).diagonal()))
            self.diagonal = (yield from self._sum(own, Copy(self.width), fresh))[1:]
        own = np.concatenate(([f.value(self.trial)], f.gradient(self.trial)))
        total = yield from self._sum(own, self.told, self.heard)
        word = yield from self._spread(total)
        if word[0]:
            self.taken = self.trial
        step = word[1:]
        self.resting = not step.any()
        self.trial = self.taken + step
        self.k += 1
        moved = norm(self.theta - before)
        return RoundReport(gradients=f.samples, step=moved, age=0)

    def _turns_up(self) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
        """To whom worker i speaks and from whom it hears on the way up, deepest level first."""
        for level in range(self._depth, 0, -1):
            mine, next_to_mine = level == self._level, level == self._level + 1
            yield self._up if mine else _NOBODY, self._down if next_to_mine else _NOBODY

    def _turns_down(self) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
        """The same on the way down, the root first."""
        for level in range(self._depth):
            mine, next_to_mine = level == self._level, level + 1 == self._level
            yield self._down if mine else _NOBODY, self._up if next_to_mine else _NOBODY

    def _sum(self, own: Array, told: Copy, heard: list[Copy]) -> Flow[Array]:
        """The way up; returns the sum over worker i's subtree."""
        total = own
        for to, expects in self._turns_up():
            if to:
                self._check(total)
                exchange = self._exchange(total - told.value, to)
                told.change(exchange.payload)
                yield exchange
                continue
            inbox = yield Exchange(None, to, expects=expects)
            if expects:
                for child, copy in zip(self._children, heard, strict=True):
                    copy.change(_from(child, inbox))
                    total = total + copy.value
        self._check(total)
        return total

    def _spread(self, total: Array) -> Flow[Array]:
        """The way down; returns the root's word (taken or not, step)."""
        passing = self._exchange(self._verdict(total), self._down) if self._parent is None else None
        for to, expects in self._turns_down():
            inbox = yield passing if to and passing else Exchange(None, _NOBODY, expects=expects)
            if expects:
                assert self._parent is not None
                passing = self._exchange(_from(self._parent, inbox), self._down)
        assert passing is not None
        assert passing.payload is not None
        return passing.payload  # the root, too, reads its word as all others do

    def _exchange(self, vector: Array, to: frozenset[int]) -> Exchange:
        """The vector on its way, in fewer bytes where they were asked for; nothing is due then."""
        if self._form is None:
            return Exchange(vector, to, expects=_NOBODY)
        body = rounded(vector, self._form)
        return Exchange(body.values, to, body, _NOBODY)

    def _verdict(self, total: Array) -> Array:
        """The root's word on the trial."""
        taken, step = self.descent.judge(self.trial, float(total[0]), total[1:])
        word = np.concatenate(([float(taken)], step))
        self._check(word)
        return word

    def _guess(self, theta: Array) -> Guess:
        """H_0 at theta."""
        if self._curved:
            return self._curvature.guess(theta, self.diagonal)
        return lambda v: v * self._first_step

    def _check(self, numbers: Array) -> None:
        if not np.isfinite(numbers).all():
            raise ConvergenceError(
                f"round {self.k}: f, its gradient or a step at ||trial|| = "
                f"{norm(self.trial):.3g} is not finite; {self.advice}"
            )


def _schedule(depth: int, partners: frozenset[int]) -> Schedule:
    """A parent and a child wait for each other in every round, once each way.

    So one is less than 3 depth exchanges ahead of the other. Neighbors in the graph that exchange
    nothing are further apart, and must be answered, too, when they say where they are: worker i
    leaves a round when the root has heard of all, so that worker j is past its turn up in it, in
    exchange depth - level_j of the two last ways; and i waits for its parent's word in exchange
    depth + level_i - 1 of the next 2 depth. That is at most 4 depth - 1 further on. Words on
    stopping travel over the tree, which is 2 depth wide at most.
    """
    return Schedule(stride=2 * depth, lead=4 * depth - 1, partners=partners, diameter=2 * depth)


def _first_step(everyone: Everyone) -> float:
    """The first guess of H_0 where there is no curvature; without the trace, by sum_i L_i >= L."""
    if everyone.L_sum is None:
        return 1.0 / sum(everyone.L)
    return _FIRST_STEP / (sum(everyone.L_sum) + sum(everyone.mu))


def _from(neighbor: int, inbox: Inbox) -> Array:
    vector = inbox[neighbor]
    if vector is None:
        raise LocalProtocolError(
            f"worker {neighbor} was silent when it was its turn: it has another tree than we"
        )
    return vector
