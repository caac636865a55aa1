"""The oracle: every solver finds the dual gradient, counts its work and stops when it should."""

from __future__ import annotations

import numpy as np
import pytest

from dlag_node.errors import ConfigError, ConvergenceError
from dlag_node.methods.state import capture, restore
from dlag_node.problems import LOGISTIC, SQUARED, Array, Loss, Problem, rows_of
from dlag_node.solvers import SOLVERS, Oracle, parse_stop
from tests.solvers import shards

ITERATIVE = ("katyusha", "svrg", "agd", "newton", "chord")
STOCHASTIC = ("katyusha", "svrg")
LOSSES = pytest.mark.parametrize("loss", [LOGISTIC, SQUARED], ids=lambda loss: loss.name)
LAYOUTS = pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])


def gradient_norm(f: Problem, x: Array, theta: Array) -> float:
    return float(np.linalg.norm(f.gradient(theta) - x))


@LAYOUTS
@LOSSES
class TestTheDualGradient:
    @pytest.mark.parametrize("solver", ITERATIVE)
    def test_every_solver_reaches_the_minimiser(
        self, solver: str, loss: Loss, sparse: bool
    ) -> None:
        f = shards.shard(loss, sparse=sparse)
        x, start = shards.some_x(f), np.ones(f.dim)
        found = shards.oracle(f, solver, "exact:1e-12")(x, start)
        best = shards.oracle(f, "newton", "exact:1e-14")(x, start)
        # ||theta - theta*|| <= ||gradient|| / mu, mu = 0.01
        np.testing.assert_allclose(found.theta, best.theta, atol=1e-9, rtol=0)
        assert gradient_norm(f, x, found.theta) <= 1.1e-12

    @pytest.mark.parametrize("solver", ITERATIVE)
    def test_exact_means_a_gradient_norm_of_1e_10(
        self, solver: str, loss: Loss, sparse: bool
    ) -> None:
        f = shards.shard(loss, sparse=sparse)
        oracle = shards.oracle(f, solver, "epochs:1")
        found = oracle.exact(np.zeros(f.dim), np.zeros(f.dim))
        assert gradient_norm(f, np.zeros(f.dim), found.theta) <= 1.001e-10


@LAYOUTS
def test_the_closed_form_of_ridge_agrees_with_newton(sparse: bool) -> None:
    f = shards.shard(SQUARED, sparse=sparse)
    x = shards.some_x(f)
    closed = shards.oracle(f, "closed", "epochs:30")(x, np.ones(f.dim))
    newton = shards.oracle(f, "newton", "exact:1e-14")(x, np.ones(f.dim))
    np.testing.assert_allclose(closed.theta, newton.theta, rtol=1e-12)
    assert closed.sample_gradients == 0


@LAYOUTS
def test_newton_converges_from_far_away(sparse: bool) -> None:
    # at this start every margin is saturated: an undamped step would fly off
    f = shards.shard(LOGISTIC, sparse=sparse, lam=1e-6)
    found = shards.oracle(f, "newton", "exact:1e-12")(np.zeros(f.dim), np.full(f.dim, 100.0))
    assert gradient_norm(f, np.zeros(f.dim), found.theta) <= 1.1e-12


@LOSSES
def test_newton_by_conjugate_gradients_beyond_a_thousand_features(loss: Loss) -> None:
    f = shards.shard(loss, sparse=True, m=60, dim=1001, fill=0.05)
    x = 1e-3 * shards.some_x(f)
    newton = shards.oracle(f, "newton", "exact:1e-12")(x, np.zeros(f.dim))
    katyusha = shards.oracle(f, "katyusha", "exact:1e-12")(x, np.zeros(f.dim))
    np.testing.assert_allclose(newton.theta, katyusha.theta, atol=1e-9, rtol=0)
    # a multiple of m, and more than the gradients alone: the products are counted
    assert newton.sample_gradients % f.samples == 0
    assert newton.sample_gradients > (newton.epochs + 1) * f.samples


@LAYOUTS
class TestCounting:
    @pytest.mark.parametrize(
        ("solver", "passes"), [("katyusha", 15), ("svrg", 15), ("agd", 5), ("closed", 0)]
    )
    def test_five_epochs_cost_so_many_passes(self, solver: str, passes: int, sparse: bool) -> None:
        f = shards.shard(SQUARED, sparse=sparse)
        found = shards.oracle(f, solver, "epochs:5")(shards.some_x(f), np.zeros(f.dim))
        assert found.sample_gradients == passes * f.samples
        assert found.epochs == (0 if solver == "closed" else 5)

    def test_a_newton_step_costs_a_gradient_and_the_first_one_another(self, sparse: bool) -> None:
        f = shards.shard(sparse=sparse)
        found = shards.oracle(f, "newton", "epochs:2")(shards.some_x(f), np.zeros(f.dim))
        assert found.sample_gradients == 3 * f.samples

    @pytest.mark.parametrize("solver", ITERATIVE)
    def test_a_call_that_is_done_at_the_start_costs_one_gradient(
        self, solver: str, sparse: bool
    ) -> None:
        f = shards.shard(sparse=sparse)
        oracle = shards.oracle(f, solver, "exact:1e-6")
        x = shards.some_x(f)
        again = oracle(x, oracle(x, np.zeros(f.dim)).theta)
        assert (again.sample_gradients, again.epochs) == (f.samples, 0)

    @pytest.mark.parametrize("solver", STOCHASTIC)
    def test_a_norm_rule_pays_one_gradient_more_than_its_epochs(
        self, solver: str, sparse: bool
    ) -> None:
        f = shards.shard(sparse=sparse)
        found = shards.oracle(f, solver, "relative:0.01")(shards.some_x(f), np.zeros(f.dim))
        assert found.epochs > 0
        assert found.sample_gradients == (3 * found.epochs + 1) * f.samples


@LAYOUTS
@pytest.mark.parametrize("solver", ITERATIVE)
class TestStopping:
    def test_relative_is_measured_against_the_warm_start(self, solver: str, sparse: bool) -> None:
        f = shards.shard(sparse=sparse)
        x, start = shards.some_x(f), np.ones(f.dim)
        found = shards.oracle(f, solver, "relative:0.01")(x, start)
        assert gradient_norm(f, x, found.theta) <= 0.01 * gradient_norm(f, x, start) * (1 + 1e-12)

    def test_at_the_rounding_floor_a_call_ends(self, solver: str, sparse: bool) -> None:
        f = shards.shard(sparse=sparse)
        x = shards.some_x(f)
        oracle = shards.oracle(f, solver, "relative:0.001", max_epochs=500)
        theta = np.zeros(f.dim)
        for _ in range(12):  # to 1e-36 of the first gradient, if numbers had no end
            theta = oracle(x, theta).theta
        assert gradient_norm(f, x, theta) < 1e-13

    def test_out_of_epochs_is_an_error_that_says_what_to_change(
        self, solver: str, sparse: bool
    ) -> None:
        f = shards.shard(sparse=sparse)
        oracle = shards.oracle(f, solver, "exact:1e-12", max_epochs=1)
        said = rf"{solver}: gradient norm .* after 1 epochs, wanted 1e-12 .*max_epochs \(now 1\)"
        with pytest.raises(ConvergenceError, match=said):
            oracle(shards.some_x(f), np.full(f.dim, 3.0))

    def test_what_is_not_finite_is_an_error(self, solver: str, sparse: bool) -> None:
        f = shards.shard(sparse=sparse)
        for stop in ("epochs:2", "relative:0.1"):
            with pytest.raises(ConvergenceError, match=f"{solver}: theta is not finite"):
                shards.oracle(f, solver, stop)(np.zeros(f.dim), np.full(f.dim, np.nan))


@LAYOUTS
@pytest.mark.parametrize("solver", SOLVERS)
class TestManners:
    def test_the_same_seed_gives_the_same_bits(self, solver: str, sparse: bool) -> None:
        f = shards.shard(SQUARED, sparse=sparse)
        one, two = (shards.oracle(f, solver, "epochs:4") for _ in range(2))
        theta = np.zeros(f.dim)
        for _ in range(3):
            here, there = (each(shards.some_x(f), theta) for each in (one, two))
            assert here.theta.tobytes() == there.theta.tobytes()
            theta = here.theta

    def test_x_and_start_are_only_read_and_the_result_is_new(
        self, solver: str, sparse: bool
    ) -> None:
        f = shards.shard(SQUARED, sparse=sparse)
        x, start = shards.some_x(f), np.ones(f.dim)
        x.flags.writeable = start.flags.writeable = False
        for stop in ("epochs:1", "exact:1e-8"):
            oracle = shards.oracle(f, solver, stop)
            first = oracle(x, start)
            kept = first.theta.copy()
            assert not np.shares_memory(first.theta, start)
            oracle(-x, first.theta)
            np.testing.assert_array_equal(first.theta, kept)
        np.testing.assert_array_equal(start, np.ones(f.dim))


@pytest.mark.parametrize("solver", STOCHASTIC)
def test_a_restored_generator_repeats_the_call(solver: str) -> None:
    f = shards.shard()
    oracle = shards.oracle(f, solver, "epochs:3")
    before = oracle.rng.bit_generator.state
    first = oracle(shards.some_x(f), np.zeros(f.dim))
    later = shards.oracle(f, solver, "epochs:3", seed=99)
    later.rng = np.random.default_rng()
    later.rng.bit_generator.state = before
    again = later(shards.some_x(f), np.zeros(f.dim))
    assert first.theta.tobytes() == again.theta.tobytes()


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_shard_of_one_sample_or_of_empty_samples_is_solved(solver: str) -> None:
    for A in ([[2.0, 0.0, -1.0]], [[0.0, 0.0, 0.0]]):
        f = Problem(rows_of(A), np.array([1.0]), SQUARED, n0=5, lam=0.1)
        x = np.array([0.1, -0.2, 0.3])
        found = shards.oracle(f, solver, "epochs:30").exact(x, np.zeros(3))
        assert gradient_norm(f, x, found.theta) <= 1.001e-10


def test_an_unknown_solver_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(
        ConfigError, match="'adam': expected one of katyusha, svrg, agd, newton, chord"
    ):
        shards.oracle(shards.shard(), "adam", "epochs:1")


def test_the_closed_form_is_refused_for_the_logistic_loss() -> None:
    with pytest.raises(ConfigError, match="logistic has no closed-form dual gradient"):
        shards.oracle(shards.shard(LOGISTIC), "closed", "epochs:1")


def test_a_budget_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_epochs = 0"):
        Oracle(
            shards.shard(),
            solver="agd",
            stop=parse_stop("epochs:1"),
            rng=np.random.default_rng(0),
            max_epochs=0,
        )


@pytest.mark.parametrize("solver", ITERATIVE)
def test_an_oracle_taken_from_its_state_counts_what_the_undisturbed_one_counts(solver: str) -> None:
    f = shards.shard(LOGISTIC, sparse=False)
    one, other = (shards.oracle(f, solver, "exact:1e-6") for _ in range(2))
    x = shards.some_x(f)
    first = one(x, np.zeros(f.dim))
    restore(other, capture(one))
    for factor in (0.5, -1.0):
        expected, found = one(factor * x, first.theta), other(factor * x, first.theta)
        assert found.sample_gradients == expected.sample_gradients
        assert np.array_equal(found.theta, expected.theta)
