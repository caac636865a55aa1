"""The runs to the target on heart that several tests read; each is made once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import accumulate

import numpy as np

from coordinator.plan import Plan
from dlag_node.problems import Array
from tests.methods.plans import heart_plan, simulate

TARGET = 1e-7
ROUNDS = 2_000  # more than any of them needs

# The inner solve of SSDA and MSDA: what solves it to 1e-10 does not matter, AGD is fastest here.
EXACT = "solver=agd,stop=exact:1e-10"


@dataclass(frozen=True, slots=True, eq=False)
class ToTarget:
    """A run to the target, counted as the reference figures are.

    `k` is the number of iterations after which the target is first met: theta^k of the paper,
    computed in round k, where round 0 computes theta^0. `messages` are those sent before theta^k
    was known, in the rounds 0 to k - 1. (A summary counts k + 1 rounds, and their messages.)
    `errors` are max_i f(theta_i^k) - f*, from k = 0 on.
    """

    k: int
    messages: int
    errors: list[float]
    Theta: Array  # theta_i^k of the round that met the target


@cache
def to_target(method: str, seed: int = 0) -> ToTarget:
    """The run on instance S, the reference instance, with shards drawn from `seed`."""
    return _run(heart_plan(method, seed=seed))


@cache
def to_target_on_R(method: str, weights: str = "metropolis") -> ToTarget:
    """The run on instance R."""
    return _run(instance_R(method, weights))


def instance_R(method: str, weights: str = "metropolis") -> Plan:
    """The sizes of instance S, blocks of the file in its order."""
    plan = heart_plan(method, weights=weights)
    ends = np.cumsum([len(part) for part in plan.parts])
    return plan.dealt_as(np.split(np.arange(plan.n0), ends[:-1]))


def _run(plan: Plan) -> ToTarget:
    run = simulate(plan, ROUNDS, target=TARGET)
    errors = [each.suboptimality for each in run.measured]
    k = next(k for k, error in enumerate(errors) if error <= TARGET)
    sent = [0, *accumulate(sum(record.deltas for record in row) for row in run.records)]
    return ToTarget(k, sent[k], errors, run.Theta[k])
