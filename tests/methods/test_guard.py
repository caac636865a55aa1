"""A node tells by its own steps that a run leads nowhere, and takes no slow run for one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from math import cos, inf
from pathlib import Path

import numpy as np
import pytest

from dlag_node.errors import ConfigError, ConvergenceError
from dlag_node.methods.guard import Guard, Pace
from tests.methods.plans import simulate, small_plan

EFOLD = 50.0  # windows of 200 rounds
PACE = Pace(EFOLD)


def watched(steps: Iterable[float], pace: Pace | None = PACE) -> None:
    guard = Guard(usual=1.0, advice="lower something", pace=pace)
    for k, step in enumerate(steps):
        guard.check(k, step)


@pytest.mark.parametrize(
    ("step", "window"),
    [
        (lambda _: 1.0, 1),
        (lambda k: 2.0 if k % 7 == 3 else 1.0, 1),
        (lambda k: 1.0 + k / 100, 1),  # no exponential growth: the other rule never speaks
        (lambda k: 3.0 if k < 10 else 2.0, 2),  # the transient is over after the first window
        (lambda k: 0.0 if k < 30 else 1.0, 1),
    ],
)
def test_steps_that_do_not_shrink_end_the_run(step: Callable[[int], float], window: int) -> None:
    said = rf"does not converge: up to round {200 * (window + 1) - 1}, .* 200 rounds .*; lower some"
    with pytest.raises(ConvergenceError, match=said):
        watched(map(step, range(2_000)))


@pytest.mark.parametrize(
    "step",
    [
        lambda k: 0.5 ** (k / EFOLD),
        lambda k: 0.999 ** (k / EFOLD),  # a thousand times slower than theory has it
        lambda k: max(0.4, 0.9**k),  # stalls at the accuracy of its subproblems
        lambda k: max(1e-16, 0.9**k) * (1 + 0.5 * cos(k)),  # as good as it gets
        lambda k: 1e-10 * (1 + 0.5 * cos(k)),  # nothing but noise from the start
        lambda _: 0.0,
    ],
)
def test_steps_that_shrink_however_slowly_or_mean_nothing_pass(
    step: Callable[[int], float],
) -> None:
    watched(map(step, range(2_000)))


def test_without_a_pace_only_growth_ends_a_run() -> None:
    watched((1.0 for _ in range(5_000)), pace=None)
    watched((1.0 for _ in range(5_000)), pace=Pace(efold=inf))
    with pytest.raises(ConvergenceError, match="the run diverges: in round 11 "):
        watched([1.0] * 11 + [1.1e6], pace=None)


def test_windows_are_never_shorter_than_a_hundred_rounds() -> None:
    with pytest.raises(ConvergenceError, match=r"up to round 199, .* in the last 100 rounds"):
        watched((1.0 for _ in range(1_000)), pace=Pace(efold=1.0))


@pytest.mark.parametrize("method", ["extra:alpha_L=8", "exact-diffusion:alpha_L=10"])
def test_a_logistic_run_in_circles_ends_with_the_step_to_lower(method: str, tmp_path: Path) -> None:
    # slopes of the logistic loss are bounded: with too large a step the run cannot blow up
    plan = small_plan(tmp_path, method, problem="logistic", topology="complete:4", lam=0.01)
    with pytest.raises(ConvergenceError, match=r"does not converge: .*lower alpha_L"):
        simulate(plan, 3_000)


@pytest.mark.parametrize("method", ["ssda:stop=exact:1e-4", "fgm:eps=1e-3,solver=svrg", "dlag"])
def test_workers_that_agree_from_the_start_are_not_taken_for_stuck(
    method: str, tmp_path: Path
) -> None:
    # everybody has the same two samples: all that ever moves is what the solvers leave over
    plan = small_plan(
        tmp_path,
        method,
        problem="logistic",
        topology="ring:4",
        shards="even",
        lam=0.01,
        samples="1 1:1 2:0.3\n-1 1:0.2 2:-1\n" * 4,
    )
    run = simulate(plan.dealt_as(np.split(np.arange(8), 4)), 700)
    assert run.measured[-1].suboptimality < 1e-3


def test_a_certified_stop_rule_needs_a_c_to_certify(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"stop = theorem with c = 0: .*expected a larger c"):
        simulate(small_plan(tmp_path, "dlag:c=0,stop=theorem"), 1)


@pytest.mark.parametrize(
    "method",
    [
        "ssda:eta_beta=1e-320,solver=closed",
        "ssda:s=1e308,solver=closed",
        "dlag:eta_beta=1e308,solver=closed",
        "diging:sigma=1e-200",
        "extra:alpha_L=1e-320",
        "exact-diffusion:sigma=1e-320",
    ],
)
def test_parameters_at_the_ends_of_the_range_have_a_pace(method: str, tmp_path: Path) -> None:
    with suppress(ConvergenceError):
        simulate(small_plan(tmp_path, method), 3)
