"""A run whose numbers go bad ends with an error that says what to change; a slow one does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlag_node.errors import ConvergenceError
from tests.methods.plans import heart_plan, simulate, small_plan


def test_dlag_that_is_too_lazy_ends_with_the_parameters_to_lower() -> None:
    # Ten times the paper's gamma and c: the worst f(theta_i) - f* grows tenfold in 100 rounds, and
    # the steps pass 10^8 times the first ones in round 1559. With 10^-2, as here, in round 276.
    too_lazy = r"round \d+ .* lower gamma = 0\.01, c = 0\.01, D = 50 or eta_beta"
    with pytest.raises(ConvergenceError, match=too_lazy):
        simulate(heart_plan("dlag:gamma=1e-2,c=1e-2,D=50"), 1000)


def test_ten_times_the_papers_laziness_does_not_converge() -> None:
    measured = simulate(heart_plan("dlag:gamma=1e-3,c=1e-3,D=50"), 300).measured
    assert measured[-1].suboptimality > 10 * measured[0].suboptimality


@pytest.mark.parametrize("method", ["ssda", "dlag"])
def test_too_few_epochs_end_with_the_stop_rule_to_tighten(method: str) -> None:
    with pytest.raises(ConvergenceError, match="solve the subproblem further than stop=epochs:2"):
        simulate(heart_plan(f"{method}:solver=katyusha,stop=epochs:2"), 1000)


@pytest.mark.parametrize("method", ["ssda", "msda", "dlag", "mdlag"])
def test_a_step_size_far_too_large_ends_with_eta_beta_to_lower(method: str, tmp_path: Path) -> None:
    plan = small_plan(tmp_path, f"{method}:solver=closed,eta_beta=100")
    with pytest.raises(ConvergenceError, match=r"lower .*eta_beta \(eta = "):
        simulate(plan, 200)


# 1e155 and its like: x is still finite, its square is not
@pytest.mark.parametrize("eta_beta", ["1e60", "1e155", "1e200", "1e308"])
@pytest.mark.parametrize("method", ["ssda", "msda", "dlag", "mdlag"])
def test_an_iterate_that_is_not_finite_ends_with_an_error_and_no_warning(
    method: str, eta_beta: str, tmp_path: Path
) -> None:
    plan = small_plan(tmp_path, f"{method}:solver=closed,eta_beta={eta_beta}")
    with pytest.raises(ConvergenceError, match=r"\|\| = (inf|nan), where [0-9.e+-]+ is usual"):
        simulate(plan, 50)


def test_a_vector_that_its_form_cannot_hold_ends_with_what_to_change(tmp_path: Path) -> None:
    # the third of ten local steps a hundred times too long passes float32's largest number while
    # the guard still learns what is usual
    plan = small_plan(
        tmp_path,
        "lazy-exact-diffusion:alpha_L=100,local=3,form=f4",
        topology="path:2",
        shards="even",
        samples="1 1:1.257302210933933\n-1 1:-1.3210486329130189\n",
    )
    with pytest.raises(ConvergenceError, match=r"exchange \d+: .* f4 .* lower"):
        simulate(plan, 50)


@pytest.mark.parametrize("method", ["ssda", "dlag"])
def test_a_worker_that_waits_long_for_the_first_news_is_not_taken_for_diverging(
    method: str, tmp_path: Path
) -> None:
    # one worker of 30 on a ring knows a target other than 0: the farthest stands still for 15
    # rounds, and then moves by far more than never
    samples = "1 1:1\n" + "0 1:1\n" * 29
    plan = small_plan(
        tmp_path, f"{method}:solver=closed", topology="ring:30", shards="even", samples=samples
    )
    run = simulate(plan, 120)
    steps = [[record.step for record in row] for row in run.records]
    assert any(all(steps[k][i] == 0 for k in range(10)) for i in range(30))
    assert run.measured[-1].suboptimality < 0.5 * run.measured[0].suboptimality
