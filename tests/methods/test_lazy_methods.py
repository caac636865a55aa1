"""The lazy primal methods: matrix forms, reductions, what they keep and what they save."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from coordinator.plan import Plan
from dlag_node.methods.admm import Admm, balanced_penalty
from dlag_node.methods.exact_diffusion import ExactDiffusion
from dlag_node.methods.lazy import StepRule
from dlag_node.methods.worker import Everyone
from dlag_node.rounding import FORMS
from dlag_node.rounds import Engine
from dlag_node.rounds.record import SENT
from tests.methods import lazy_forms, primal_forms
from tests.methods.lazy_forms import Copies
from tests.methods.matrix_form import shards_of
from tests.methods.plans import Run, heart_plan, simulate, small_plan

LAZY = ("lazy-extra", "lazy-exact-diffusion", "lazy-admm")
ROUNDS = 60


def to_target(method: str, target: float = 1e-7, rounds: int = 1_500, **settings: object) -> Run:
    """A run on heart that must reach its target, cut off where it does."""
    run = simulate(heart_plan(method, **settings), rounds, target=target)
    hit = next(k for k, each in enumerate(run.measured) if each.suboptimality <= target)
    return Run(run.engines, run.Theta[: hit + 1], run.records[: hit + 1], run.measured[: hit + 1])


@pytest.mark.grid
@pytest.mark.parametrize("problem", ["ridge", "logistic"])
@pytest.mark.parametrize("predict", ["none", "linear"])
@pytest.mark.parametrize("topology", ["grid:3x3", "star:5", "erdos:8,0.4"])
@pytest.mark.parametrize("name", LAZY)
def test_the_matrix_form_says_the_same_and_is_silent_at_the_same_time(
    name: str, topology: str, predict: str, problem: str, tmp_path: Path
) -> None:
    setting = f"tau=1.2,D=7,predict={predict},promise=off"
    step = "c=0.05,tol=1e-13" if name == "lazy-admm" else "alpha_L=0.9,sigma=1.25"
    plan = small_plan(tmp_path, f"{name}:{setting},{step}", topology=topology, problem=problem)
    shards = shards_of(plan)
    copies = Copies((plan.nodes, shards.A[0].shape[1]), tau=1.2, D=7, linear=predict == "linear")
    if name == "lazy-admm":
        form = lazy_forms.admm(shards, (plan.U < 0).astype(float), 0.05, copies)
    else:
        W = primal_forms.averaging_matrix(plan.U, 1.25)
        make = lazy_forms.extra if name == "lazy-extra" else lazy_forms.exact_diffusion
        form = make(shards, W, 0.9 / shards.L.max(), copies)
    expected = list(islice(form, ROUNDS))
    run = simulate(plan, ROUNDS)
    X = np.array([X for X, _ in expected])
    np.testing.assert_allclose(run.Theta, X, rtol=0, atol=1e-10 * np.abs(X).max())
    said = [[letters == SENT for letters in row] for row in run.sent]
    spoke = [spoke for _, spoke in expected]
    # rounding decides who speaks once the steps are of its size
    settled = next((k for k, row in enumerate(run.records) if min(r.step for r in row) < 1e-8), 99)
    assert said[:settled] == spoke[:settled]
    assert settled > 15
    assert 0 < sum(map(sum, said)) < ROUNDS * plan.nodes


def alarms(engines: list[Engine]) -> int:
    rules = [engine.method.channel.rule for engine in engines]  # type: ignore[attr-defined]
    assert all(isinstance(rule, StepRule) for rule in rules)
    return sum(rule.alarms for rule in rules)


@pytest.mark.parametrize("name", LAZY)
def test_with_tau_0_it_is_the_plain_method_bit_for_bit(name: str, tmp_path: Path) -> None:
    same = {"lazy-extra": "", "lazy-exact-diffusion": "alpha_L=1", "lazy-admm": "c=0"}[name]
    lazy = small_plan(tmp_path, f"{name}:tau=0,predict=none" + (same and f",{same}"))
    plain = small_plan(tmp_path, name.removeprefix("lazy-"))
    there, here = simulate(lazy, 30), simulate(plain, 30)
    assert there.Theta.tobytes() == here.Theta.tobytes()
    assert there.timeless == here.timeless


@pytest.mark.parametrize("name", LAZY)
def test_what_the_mixing_adds_sums_to_zero_whoever_is_silent(name: str) -> None:
    run = simulate(heart_plan(name), 40)
    methods = [engine.method for engine in run.engines]
    if name == "lazy-admm":
        kept = np.array([m.p for m in methods if isinstance(m, Admm)])
    elif name == "lazy-exact-diffusion":
        kept = np.array([m.y for m in methods if isinstance(m, ExactDiffusion)])
    else:
        kept = np.array([m.channel.mixed for m in methods])  # type: ignore[attr-defined]
    assert np.abs(kept.sum(axis=0)).max() <= 1e-13 * np.abs(kept).sum()
    assert any("s" in said for row in run.sent for said in row)


@pytest.mark.parametrize(("name", "most"), [("lazy-admm", 0.15), ("lazy-exact-diffusion", 0.2)])
def test_on_the_reference_instance_it_needs_a_fraction_of_ssdas_messages(
    name: str, most: float
) -> None:
    run = to_target(name)
    assert run.messages() <= most * 42_960
    assert sum(record.gradients for row in run.records for record in row) <= 0.05 * 5_500_000


@pytest.mark.parametrize("name", LAZY)
@pytest.mark.parametrize("tau", [3, 30])
def test_a_tau_that_is_far_too_large_costs_messages_and_not_the_answer(
    name: str, tau: float
) -> None:
    run = to_target(f"{name}:tau={tau}")
    assert alarms(run.engines) > 0


@pytest.mark.parametrize("method", ["dlag:tau=30", "dlag:tau=5,form=i1,predict=linear"])
def test_the_same_for_the_dual_methods(method: str) -> None:
    to_target(method, preset="auto", rounds=3_000)


def test_where_the_papers_setting_never_converges_the_step_rule_does() -> None:
    inner = "solver=newton,stop=exact:1e-10"
    uneven = {"shards": "uneven:1,100"}
    paper = simulate(heart_plan(f"dlag:{inner}", **uneven), 1_200, target=1e-7)
    assert paper.measured[-1].suboptimality > 1e-7
    to_target(f"dlag:rule=steps,{inner}", rounds=1_200, **uneven)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", LAZY)
def test_rounded_deltas_reach_the_same_accuracy_in_fewer_bytes(name: str, form: str) -> None:
    run = to_target(f"{name}:form={form}", target=1e-10, rounds=1_500)
    for row in run.records:
        for record in row:
            assert record.payload_bytes == record.deltas * FORMS[form].size(13)


def test_the_balanced_penalty_by_hand() -> None:
    """Two workers: mean degree 1, lambda_2 = 2."""
    two = Everyone(((0, 1),), (-1.0,), (0.1, 0.3), (1.0, 3.0), (1.0, 3.0), (1.0, 1.0))
    assert balanced_penalty(two) == pytest.approx(0.75 * (0.4 * 4.0) ** 0.5 / 2 / 2**0.5)


def test_local_steps_are_counted_and_end_at_the_same_place(tmp_path: Path) -> None:
    plan: Plan = small_plan(tmp_path, "exact-diffusion:local=3,alpha_L=0.3")
    run = simulate(plan, 400, target=1e-10)
    assert run.measured[-1].suboptimality <= 1e-10
    assert all(
        record.gradients == 3 * len(plan.parts[i]) for i, record in enumerate(run.records[0])
    )
