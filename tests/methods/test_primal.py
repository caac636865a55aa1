"""The primal methods: what holds along a run, that the defaults converge, how a bad run ends."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from dlag_lab.simulate import engines_of
from dlag_node.errors import ConvergenceError
from dlag_node.methods.admm import Admm
from dlag_node.methods.diging import Diging
from dlag_node.methods.extra import Extra
from dlag_node.problems import Array
from dlag_node.rounds import Engine
from tests.methods.matrix_form import shards_of
from tests.methods.plans import heart_plan, simulate, small_plan
from tests.methods.primal_forms import gradients

METHODS = ["extra", "exact-diffusion", "diging", "admm"]
STEPPED = ["extra", "exact-diffusion", "diging"]


class Kept:
    """Attributes of every worker's method after every round, each as (rounds, n, d)."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._kept: dict[str, dict[int, list[Array]]] = defaultdict(lambda: defaultdict(list))

    def keep(self, engine: Engine) -> None:
        for name in self._names:
            self._kept[name][engine.node].append(getattr(engine.method, name).copy())

    def __getitem__(self, name: str) -> Array:
        kept = self._kept[name]
        return np.array([kept[node] for node in sorted(kept)]).transpose(1, 0, 2)


def test_digings_y_sums_up_to_the_sum_of_the_gradients() -> None:
    plan, kept = heart_plan("diging"), Kept("x", "y")
    simulate(plan, 60, finished=kept.keep)
    shards = shards_of(plan)
    for X, Y in zip(kept["x"], kept["y"], strict=True):
        total = gradients(shards, X).sum(axis=0)
        np.testing.assert_allclose(Y.sum(axis=0), total, rtol=0, atol=1e-14)


def test_admms_p_sums_up_to_0() -> None:
    kept = Kept("p")
    simulate(heart_plan("admm"), 60, finished=kept.keep)
    p = kept["p"]
    size = np.linalg.norm(p, axis=2).sum(axis=1)
    assert (np.linalg.norm(p.sum(axis=1), axis=1) <= 1e-14 * size).all()
    assert size[-1] > 0.1


@pytest.mark.parametrize("method", METHODS)
def test_at_the_minimiser_all_agree_and_stay(method: str) -> None:
    run = simulate(heart_plan(method), 4000, target=1e-10)
    x = run.Theta[-1]
    # by strong convexity ||x - x*|| <= sqrt(2 1e-10 / 0.02) = 1e-4
    assert np.abs(x - x.mean(axis=0)).max() < 2e-4  # all agree
    steps = np.array([[record.step for record in row] for row in run.records])
    assert steps[-1].max() < 1e-4 * steps[0].max()  # and stay


def test_at_extras_fixed_point_the_gradients_are_what_the_past_differences_balance() -> None:
    # summed up, x^{k+1} = W x^k - alpha grad f_i(x^k) + sum_{t<k} (W - Wt) x^t: at the end the last
    # sum is alpha grad f_i(x*), worker by worker
    plan = heart_plan("extra")
    run = simulate(plan, 500)
    [method, *_] = [engine.method for engine in run.engines]
    assert isinstance(method, Extra)
    W = np.eye(plan.nodes) - plan.U * (1.25 / plan.spectrum.sigma_1)
    past = ((W - np.eye(plan.nodes)) / 2) @ run.Theta[:-1].sum(axis=0)
    np.testing.assert_allclose(
        past, method.alpha * gradients(shards_of(plan), run.Theta[-1]), rtol=0, atol=1e-5
    )


@pytest.mark.grid
@pytest.mark.parametrize("weights", ["metropolis", "max-degree", "laplacian"])
@pytest.mark.parametrize(
    "topology", ["ring:6", "path:6", "star:8", "complete:6", "erdos:8,0.4", "grid:4x4"]
)
@pytest.mark.parametrize("method", METHODS)
def test_the_defaults_converge_on_every_graph_with_every_rule(
    method: str, topology: str, weights: str, tmp_path: Path
) -> None:
    plan = small_plan(tmp_path, method, topology=topology, weights=weights, problem="logistic")
    run = simulate(plan, 4000, target=1e-9)
    assert run.measured[-1].suboptimality <= 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_the_defaults_converge_where_all_workers_have_equal_curvature(
    method: str, tmp_path: Path
) -> None:
    # one sample each, of the same length: the case in which a step is too large the soonest
    samples = "".join(f"{j % 7 - 3} 1:1\n" for j in range(36))
    plan = small_plan(tmp_path, method, topology="grid:6x6", shards="even", samples=samples)
    assert simulate(plan, 2000, target=1e-12).measured[-1].suboptimality <= 1e-12


def test_equal_curvature_is_too_much_for_digings_quarter_with_W_as_it_is(tmp_path: Path) -> None:
    samples = "".join(f"{j % 7 - 3} 1:1\n" for j in range(36))
    plan = small_plan(
        tmp_path, "diging:sigma=1.9", topology="grid:6x6", shards="even", samples=samples
    )
    with pytest.raises(ConvergenceError, match=r"lower alpha_L \(alpha_L = 0.25\) or sigma \(1.5"):
        simulate(plan, 2000)


@pytest.mark.parametrize("method", STEPPED)
@pytest.mark.parametrize("alpha_L", ["30", "1e60", "1e155", "1e200", "1e307"])
def test_a_step_far_too_large_ends_with_alpha_L_to_lower(
    method: str, alpha_L: str, tmp_path: Path
) -> None:
    plan = small_plan(tmp_path, f"{method}:alpha_L={alpha_L}")
    with pytest.raises(ConvergenceError, match=r"is usual .*; lower alpha_L \(alpha_L = "):
        simulate(plan, 200)


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_events_changes_no_bit(method: str) -> None:
    plan = heart_plan(method)
    one, other = simulate(plan, 20), simulate(plan, 20, shuffle=11)
    np.testing.assert_array_equal(one.Theta, other.Theta)
    assert one.timeless == other.timeless


@pytest.mark.parametrize(
    ("method", "vectors"), [*((name, 1) for name in METHODS if name != "diging"), ("diging", 2)]
)
def test_every_round_every_worker_tells_its_vectors_in_full(method: str, vectors: int) -> None:
    plan = heart_plan(method)
    run = simulate(plan, 5)
    for row in run.records:
        for node, record in enumerate(row):
            assert (record.exchanges, record.skips, record.age) == ("D", 0, 0)
            assert record.deltas == plan.graph.degree(node)
            assert record.payload_bytes == record.deltas * 8 * 13 * vectors
    assert {engine.codec.width for engine in run.engines} == {13 * vectors}


@pytest.mark.parametrize("method", STEPPED)
def test_a_round_costs_one_gradient_of_the_shard(method: str) -> None:
    plan = heart_plan(method)
    run = simulate(plan, 3)
    sizes = [len(part) for part in plan.parts]
    first = 2 if method == "diging" else 1  # y^0 = grad f_i(0)
    for k, row in enumerate(run.records):
        spent = first if k == 0 else 1
        assert [record.gradients for record in row] == [spent * m for m in sizes]


@pytest.mark.parametrize("method", METHODS)
def test_the_step_is_that_of_theta(method: str) -> None:
    run = simulate(heart_plan(method), 5)
    steps = np.array([[record.step for record in row] for row in run.records])
    moved = np.linalg.norm(np.diff(run.Theta, axis=0, prepend=0), axis=2)
    np.testing.assert_allclose(steps, moved, rtol=1e-12)


def test_the_theorys_step_of_extra_is_half_of_the_proven_bound() -> None:
    # lmin(Wt) = 0.256872 and L_max = 0.0652756 of the reference instance
    [engine, *_] = engines_of(heart_plan("extra", preset="theory"))
    assert engine.method.parameters["alpha"] == pytest.approx(0.256872 / 0.0652756, rel=1e-5)


def test_the_penalty_of_admm_is_by_default_the_root_of_mu_min_times_L_max() -> None:
    [engine, *_] = engines_of(heart_plan("admm"))
    assert isinstance(engine.method, Admm)
    assert engine.method.c == pytest.approx((1.48148e-4 * 0.0652756) ** 0.5, rel=1e-5)


def test_digings_neighbors_are_told_x_and_y_one_behind_the_other() -> None:
    [engine, *_] = engines_of(heart_plan("diging"))
    method = engine.method
    assert isinstance(method, Diging)
    payload = next(method.round()).payload
    assert payload is not None
    np.testing.assert_array_equal(payload[:13], np.zeros(13))
    np.testing.assert_array_equal(payload[13:], method.problem.gradient(np.zeros(13)))
