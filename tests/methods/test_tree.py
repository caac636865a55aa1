"""The tree: a quasi-Newton method written with matrices, exact counts, rest, and odd data."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from dlag_lab.simulate import engines_of
from dlag_node.errors import ConvergenceError, LocalProtocolError
from dlag_node.graphs import spanning_tree
from dlag_node.methods.tree import TreeDescent
from tests.methods.matrix_form import Shards, shards_of
from tests.methods.plans import DIM, heart_plan, simulate, small_plan
from tests.methods.tree_form import centralised, guessed, pooled

GRAPHS = ["path:2", "path:6", "star:7", "complete:6", "ring:7", "erdos:9,0.4", "grid:3x4"]


def random_tree(folder: Path, nodes: int, seed: int) -> str:
    rng = random.Random(seed)
    path = folder / "tree.txt"
    path.write_text("".join(f"{rng.randrange(j)} {j}\n" for j in range(1, nodes)))
    return str(path)


@pytest.mark.parametrize(
    "method", ["tree:form=f8", "tree:curvature=none,form=f8", "tree:memory=3,form=f8"]
)
@pytest.mark.parametrize("problem", ["ridge", "logistic"])
@pytest.mark.parametrize("topology", ["grid:3x3", "path:2", "star:5"])
def test_it_is_bfgs_on_the_pooled_objective(
    topology: str, problem: str, method: str, tmp_path: Path
) -> None:
    plan = small_plan(tmp_path, method, topology=topology, problem=problem)
    memory = 3 if "memory" in method else 50
    expected = centralised(plan, 7, curved="none" not in method, memory=memory)
    Theta = simulate(plan, 7).Theta
    for i in range(plan.nodes):
        # pairs are differences: the closer to the minimiser, the larger an ulp's part of them
        np.testing.assert_allclose(Theta[:, i], expected, rtol=0, atol=1e-9)


def test_on_heart_too_with_a_step_that_is_not_taken() -> None:
    plan = heart_plan("tree:form=f8", lam=1e-4, seed=6)
    expected = centralised(plan, 12, curved=True)
    run = simulate(plan, 12)
    np.testing.assert_allclose(run.Theta[:, 0], expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("problem", ["ridge", "logistic"])
@pytest.mark.parametrize("topology", [*GRAPHS, "a tree"])
def test_all_workers_end_at_the_minimiser_with_the_same_bits_and_rest(
    topology: str, problem: str, tmp_path: Path
) -> None:
    spec = random_tree(tmp_path, 11, 4) if topology == "a tree" else topology
    plan = small_plan(tmp_path, "tree", topology=spec, problem=problem)
    run = simulate(plan, 40)
    assert run.measured[-1].suboptimality <= 1e-14
    assert (run.Theta == run.Theta[:, :1]).all()
    assert run.messages() == run.messages(30)
    errors = [each.suboptimality for each in run.measured]
    assert (np.diff(errors) <= 1e-15).all()


@pytest.mark.parametrize("seed", range(5))
def test_random_trees_are_as_good(seed: int, tmp_path: Path) -> None:
    plan = small_plan(
        tmp_path, "tree", topology=random_tree(tmp_path, 5 + 3 * seed, seed), problem="logistic"
    )
    assert simulate(plan, 40).measured[-1].suboptimality <= 1e-14


@pytest.mark.parametrize("method", ["tree", "tree:curvature=none,form=f8"])
@pytest.mark.parametrize("topology", [*GRAPHS, "grid:5x5"])
def test_every_message_is_counted(topology: str, method: str) -> None:
    plan = heart_plan(method, topology=topology)
    tree = spanning_tree(plan.nodes, plan.graph.edges)
    run = simulate(plan, 40)
    resting = [all(r.deltas == 0 for r in row) for row in run.records]
    last = resting.index(True)
    assert resting[last:] == [True] * (40 - last)
    for k, row in enumerate(run.records):
        passes = 3 if k == 0 and method == "tree" else 2
        for i, record in enumerate(row):
            tokens = (passes - 1) * (i != tree.root) + len(tree.children[i])
            deltas = 0 if k >= last else tokens
            assert record.deltas == deltas
            assert record.skips == (tokens if k >= last else 0)
            silent = passes * tree.depth * plan.graph.degree(i) - tokens
            assert record.quiet == silent
            assert record.payload_bytes == (4 if method == "tree" else 8) * 14 * deltas
            assert record.gradients == (0 if k >= last else len(plan.parts[i]))
            assert record.age == 0
        assert sum(record.deltas + record.skips for record in row) == passes * (plan.nodes - 1)
    assert {engine.codec.width for engine in run.engines} == {14}


@pytest.mark.parametrize(
    ("form", "delta"),
    [("f8", 5 + 8 * 14), ("f4", 6 + 4 * 14)],  # [1, seq, bin] and [10, seq, 1, bin]
)
def test_the_bytes_are_those_of_deltas_alone(form: str, delta: int) -> None:
    plan = heart_plan(f"tree:form={form}", topology="star:4")
    row = simulate(plan, 1).records[0]
    assert [record.sent_bytes for record in row] == [3 * delta, *[2 * delta] * 3]


def test_the_reference_run_takes_456_messages() -> None:
    run = simulate(heart_plan("tree"), 30, target=1e-7)
    k = next(k for k, each in enumerate(run.measured) if each.suboptimality <= 1e-7)
    assert (k + 1, run.messages(k + 1)) == (9, 456)


def test_the_trial_is_a_round_ahead() -> None:
    taken = simulate(heart_plan("tree"), 9).Theta
    trial = simulate(heart_plan("tree:output=trial"), 8).Theta
    np.testing.assert_array_equal(trial, taken[1:])  # each of them was taken here


def test_the_step_is_that_of_theta() -> None:
    run = simulate(heart_plan("tree"), 8)
    steps = np.array([[record.step for record in row] for row in run.records])
    moved = np.linalg.norm(np.diff(run.Theta, axis=0, prepend=0), axis=2)
    np.testing.assert_allclose(steps, moved, rtol=1e-12)


@pytest.mark.parametrize("gap", [1e-3, 1e-7])
def test_it_rests_once_the_gap_is_proven(gap: float) -> None:
    run = simulate(heart_plan(f"tree:gap={gap!r}"), 40)
    silent = next(k for k, row in enumerate(run.records) if not any(r.deltas for r in row))
    assert run.measured[silent - 1].suboptimality <= gap
    assert run.measured[silent - 1].suboptimality > 1e-15  # it did not go on to the floor
    assert silent < 16


def test_the_order_of_events_changes_no_bit(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, "tree", problem="logistic")
    ordered, shuffled = simulate(plan, 30), simulate(plan, 30, shuffle=3)
    assert np.array_equal(ordered.Theta, shuffled.Theta)
    assert ordered.timeless == shuffled.timeless


@pytest.mark.parametrize("curvature", ["shard", "none"])
@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("problem", ["ridge", "logistic"])
def test_badly_scaled_features_end_at_the_floor_without_a_warning(
    problem: str, scale: float, curvature: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    A = rng.normal(size=(40, DIM)) * scale ** np.arange(DIM)
    b = np.sign(rng.normal(size=40))
    samples = "".join(
        f"{label:g} " + " ".join(f"{t}:{a!r}" for t, a in enumerate(row, 1)) + "\n"
        for label, row in zip(b, A.tolist(), strict=True)
    )
    plan = small_plan(
        tmp_path,
        f"tree:curvature={curvature},form=f8",
        samples=samples,
        problem=problem,
        shards="even",
    )
    run = simulate(plan, 200)
    if curvature == "shard":
        assert run.measured[-1].suboptimality <= 1e-13
    assert np.isfinite(run.Theta).all()
    assert np.diff([each.suboptimality for each in run.measured]).max() <= 1e-13


@pytest.mark.parametrize("curvature", ["shard", "none"])
@pytest.mark.parametrize("problem", ["ridge", "logistic"])
def test_features_that_are_all_zero_leave_nothing_to_do(
    problem: str, curvature: str, tmp_path: Path
) -> None:
    plan = small_plan(
        tmp_path,
        f"tree:curvature={curvature}",
        samples="1 1:0\n" * 9 + "-1 1:0\n" * 9,
        problem=problem,
    )
    run = simulate(plan, 5)
    assert not run.Theta.any()
    assert run.messages() == run.messages(1) > 0


def test_beyond_1000_features_the_first_guess_is_plain(tmp_path: Path) -> None:
    samples = "".join(
        f"{1 - 2 * (j % 2)} {1 + j % 7}:1 {900 + 30 * j}:{1 + j / 9}\n" for j in range(24)
    )
    plan = small_plan(tmp_path, "tree", samples=samples, problem="logistic")
    run = simulate(plan, 40)
    assert run.engines[0].method.parameters["curvature"] == "none"
    assert run.measured[-1].suboptimality <= 1e-14
    assert len(run.records[0][0].exchanges) == 4  # of depth 2, and no diagonal went up


def test_sparse_and_dense_shards_make_the_same_guess(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    samples = "".join(
        f"{1 - 2 * (j % 2)} "
        + " ".join(f"{t}:{rng.normal()!r}" for t in (1 + j % 9, 12 + j % 17))
        + "\n"
        for j in range(60)
    )
    plan = small_plan(tmp_path, "tree", samples=samples, problem="logistic", topology="path:3")
    assert "Sparse" in type(plan.shard(0)[0]).__name__
    shards = shards_of(plan)
    shards = Shards(
        [A.toarray() for A in (plan.shard(i)[0].matrix() for i in range(3))],
        shards.b,
        shards.lam,
        shards.logistic,
    )
    root = engines_of(plan)[1].method
    assert isinstance(root, TreeDescent)
    theta, v = rng.normal(size=28), rng.normal(size=28)
    D = np.diag(pooled(shards)(np.zeros(28))[2].sum(axis=0))
    guess = root._curvature.guess(theta, D)
    np.testing.assert_allclose(
        guess(v), np.linalg.solve(guessed(shards, 1, theta), v), rtol=1e-10, atol=1e-12
    )


def test_a_shard_without_a_gradient_takes_part(tmp_path: Path) -> None:
    samples = "".join(f"{j % 5 - 2} 1:{0 if j % 2 else j}\n" for j in range(18))
    plan = small_plan(tmp_path, "tree", samples=samples, topology="path:9", shards="even")
    assert simulate(plan, 30).measured[-1].suboptimality <= 1e-14


def test_numbers_beyond_a_float_end_the_run_with_advice(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, "tree", samples="1e200 1:1\n-1e200 1:2\n", topology="path:2")
    leaf = engines_of(plan)[1]
    flow = leaf.method.round()
    assert next(flow).payload is not None  # the curvature does not depend on the labels
    with pytest.raises(ConvergenceError, match=r"round 0: .* not finite; .* lambda = 0.05"):
        flow.send({0: None})


def test_a_child_that_is_silent_in_its_turn_has_another_tree(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, "tree", topology="path:3")
    root = engines_of(plan)[1].method
    assert isinstance(root, TreeDescent)
    flow = root.round()
    assert next(flow).payload is None
    with pytest.raises(LocalProtocolError, match="worker 0 was silent when it was its turn"):
        flow.send({0: None, 2: None})
