"""Promised silence against its matrix forms: the same thetas, and the same silences."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from dlag_node.rounds.record import SENT
from tests.methods import lazy_forms, primal_forms
from tests.methods.matrix_form import Lazy, chebyshev_matrix, shards_of
from tests.methods.plans import simulate, small_plan
from tests.methods.promised_forms import Promised, PromisedCopies, global_form

ROUNDS = 40
# the last has promises that are safe without a forecast: 3 (gamma + c) (mu_i / mu_min)^2 >= 1
CONDITIONS = [Lazy(gamma=0.001, c=0.001, D=6), Lazy(gamma=0.02, c=1e-4, D=9), Lazy(0.1, 0.05, 5)]


def text(lazy: Lazy, R: int, *, linear: bool) -> str:
    predict = "linear" if linear else "none"
    return f"gamma={lazy.gamma},c={lazy.c},D={lazy.D},promise={R},predict={predict},solver=closed"


@pytest.mark.parametrize("linear", [False, True], ids=["none", "linear"])
@pytest.mark.parametrize("lazy", CONDITIONS, ids=str)
@pytest.mark.parametrize("R", [1, 2, 5])
@pytest.mark.parametrize("topology", ["grid:3x3", "ring:6", "star:5"])
def test_dlag(topology: str, R: int, lazy: Lazy, linear: bool, tmp_path: Path) -> None:
    plan = small_plan(tmp_path, f"dlag:{text(lazy, R, linear=linear)}", topology=topology)
    run = simulate(plan, ROUNDS)
    promised = Promised(lazy, R, linear)
    Theta, sent = global_form(shards_of(plan), plan.U, promised, rounds=ROUNDS)
    assert [[said == SENT for said in row] for row in run.sent] == sent
    np.testing.assert_allclose(run.Theta, Theta, rtol=0, atol=1e-11 * np.abs(Theta).max())
    silent = sum(not spoke for row in sent for spoke in row)
    assert silent > 0.1 * ROUNDS * plan.nodes


def test_mdlag_is_silent_in_the_first_exchange_of_its_rounds_alone(tmp_path: Path) -> None:
    lazy, K = CONDITIONS[0], 3
    plan = small_plan(tmp_path, f"mdlag:K={K},{text(lazy, 2, linear=False)}")
    run = simulate(plan, ROUNDS)
    mixing = chebyshev_matrix(plan.U, K)
    Theta, sent = global_form(shards_of(plan), mixing, Promised(lazy, 2), rounds=ROUNDS)
    assert [[said[0] == SENT for said in row] for row in run.sent] == sent
    assert {said[1:] for row in run.sent for said in row} == {SENT * (K - 1)}
    np.testing.assert_allclose(run.Theta, Theta, rtol=0, atol=1e-11 * np.abs(Theta).max())
    assert not all(map(all, sent))


@pytest.mark.parametrize("problem", ["ridge", "logistic"])
@pytest.mark.parametrize("predict", ["none", "linear"])
@pytest.mark.parametrize("R", [1, 2, 5])
@pytest.mark.parametrize("name", ["lazy-admm", "lazy-exact-diffusion", "lazy-extra"])
def test_the_primal_methods(name: str, R: int, predict: str, problem: str, tmp_path: Path) -> None:
    step = "c=0.05,tol=1e-13" if name == "lazy-admm" else "alpha_L=0.9,sigma=1.25"
    given = f"tau=2.5,D=7,predict={predict},promise={R}"
    plan = small_plan(tmp_path, f"{name}:{given},{step}", problem=problem)
    shards = shards_of(plan)
    shape = (plan.nodes, shards.A[0].shape[1])
    copies = PromisedCopies(shape, tau=2.5, D=7, R=R, linear=predict == "linear")
    if name == "lazy-admm":
        form = lazy_forms.admm(shards, (plan.U < 0).astype(float), 0.05, copies)
    else:
        W = primal_forms.averaging_matrix(plan.U, 1.25)
        make = lazy_forms.extra if name == "lazy-extra" else lazy_forms.exact_diffusion
        form = make(shards, W, 0.9 / shards.L.max(), copies)
    expected = list(islice(form, ROUNDS))
    run = simulate(plan, ROUNDS)
    # rounding decides who speaks once the steps are of its size
    settled = next((k for k, row in enumerate(run.records) if min(r.step for r in row) < 1e-7), 99)
    assert settled > 15
    said = [[letters == SENT for letters in row] for row in run.sent][:settled]
    assert said == [spoke for _, spoke in expected][:settled]
    X = np.array([X for X, _ in expected])
    np.testing.assert_allclose(
        run.Theta[:settled], X[:settled], rtol=0, atol=1e-10 * np.abs(X).max()
    )
    assert 0 < sum(map(sum, said)) < len(said) * plan.nodes
