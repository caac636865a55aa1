"""One worker's rounds, driven by hand with `next` and `send`."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from dlag_node.graphs import Spectrum
from dlag_node.methods import Inbox, Neighborhood, RoundReport, Worker, build_method, parse_method
from dlag_node.methods.dual import DualAscent
from dlag_node.problems import SQUARED, Array, Problem, rows_of

DIM = 3
HOOD = Neighborhood(0.75, {1: -0.25, 4: -0.5})
ALWAYS_HOLDS = "gamma=0.9,c=0.9"


def worker() -> Worker:
    """Worker 2 of some graph, with the neighbors 1 and 4."""
    rng = np.random.default_rng(2)
    rows = rows_of(rng.normal(size=(5, DIM)))
    problem = Problem(rows, rng.normal(size=5), SQUARED, n0=20, lam=0.1)
    return Worker(
        node=2,
        problem=problem,
        hood=HOOD,
        spectrum=Spectrum((1.5, 1.0, 0.75, 0.1, 0.0)),  # zeta = 1/15: K = 3
        mu_min=problem.mu,
        L_max=problem.L,
        L_sample=problem.L_sample,
        seed=0,
    )


def method(text: str) -> DualAscent:
    built = build_method(parse_method(text), worker())
    assert isinstance(built, DualAscent)
    return built


def play(method: DualAscent, inbox: Inbox) -> tuple[list[Array | None], RoundReport]:
    """One round in which the neighbors say the same in every exchange."""
    flow = method.round()
    payloads = [next(flow).payload]
    while True:
        try:
            payloads.append(flow.send(inbox).payload)
        except StopIteration as end:
            return payloads, end.value


SILENCE: Inbox = {1: None, 4: None}
WORDS: Inbox = {1: np.array([1.0, -2.0, 0.5]), 4: np.ones(DIM)}


def as_quiet_as(own: Array | None) -> Inbox:
    """Neighbors that are silent when we are, and have nothing to add when we speak."""
    return SILENCE if own is None else {1: np.zeros(DIM), 4: np.zeros(DIM)}


@pytest.mark.parametrize("name", ["ssda", "msda", f"dlag:{ALWAYS_HOLDS}", f"mdlag:{ALWAYS_HOLDS}"])
def test_round_0_tells_theta_0_in_full(name: str) -> None:
    m = method(name)
    payload = next(m.round()).payload
    f = worker().problem
    assert payload is not None
    np.testing.assert_array_equal(payload, m.theta)
    # theta^0 = grad f_i^*(0), the minimiser of f_i, to the gradient norm of 1e-10
    assert np.linalg.norm(f.gradient(payload)) <= 1e-10


def test_round_0_of_dlag_is_algorithm_1() -> None:
    m = method("dlag:solver=closed")
    (Q,), report = play(m, WORDS)
    assert Q is not None
    P = 0.75 * Q - 0.25 * WORDS[1] - 0.5 * WORDS[4]
    eta, kappa = m.parameters["eta"], m.parameters["kappa"]
    momentum = (sqrt(kappa) - 1) / (sqrt(kappa) + 1)
    np.testing.assert_allclose(m.P, P, rtol=1e-14)
    np.testing.assert_allclose(m.y, -eta * P, rtol=1e-14)
    np.testing.assert_allclose(m.x, (1 + momentum) * -eta * P, rtol=1e-14)
    assert report.step == pytest.approx(np.linalg.norm(m.x), rel=1e-14)
    assert (report.age, m.k) == (0, 1)


def test_where_the_rule_holds_the_worker_stays_silent() -> None:
    m = method(f"dlag:solver=closed,{ALWAYS_HOLDS}")
    play(m, WORDS)
    theta_hat, P = m.theta_hat, m.P
    flow = m.round()
    assert next(flow).payload is None  # the rule held: worker i stays silent
    with pytest.raises(StopIteration) as end:
        flow.send({1: None, 4: np.ones(DIM)})
    assert m.theta_hat is theta_hat
    assert not np.array_equal(m.theta, theta_hat)  # it knows better than it told
    np.testing.assert_allclose(m.P, P - 0.5, rtol=1e-14)  # only neighbor 4 spoke
    assert end.value.value.age == 1


def test_when_all_are_silent_P_stays_and_x_still_moves() -> None:
    m = method(f"dlag:solver=closed,{ALWAYS_HOLDS}")
    play(m, WORDS)
    P, x = m.P, m.x
    (payload,), report = play(m, SILENCE)
    assert payload is None
    assert m.P is P
    assert report.step == pytest.approx(np.linalg.norm(m.x - x), rel=1e-12)
    assert report.step > 0


@pytest.mark.parametrize("D", [1, 2, 5])
def test_the_age_D_forces_the_worker_to_speak(D: int) -> None:
    # With exact dual gradients ||theta_hat - theta^k||^2 <= D / mu^2 times the sum of the last D
    # steps' squares, and the rule allows 3 (c + gamma) = 5.4 times: for D <= 5 it always holds.
    m = method(f"dlag:solver=closed,D={D},{ALWAYS_HOLDS}")
    said, ages = [], []
    for _ in range(4 * (D + 1)):
        (payload,), report = play(m, SILENCE)
        said.append(payload is not None)
        ages.append(report.age)
    assert said == 4 * [True, *[False] * D]
    assert ages == 4 * list(range(D + 1))


def test_a_delta_is_what_the_neighbors_lack() -> None:
    m = method(f"dlag:solver=closed,D=2,{ALWAYS_HOLDS}")
    (first,), _ = play(m, SILENCE)
    play(m, SILENCE)
    play(m, SILENCE)
    (second,), _ = play(m, SILENCE)
    assert first is not None
    assert second is not None
    np.testing.assert_allclose(first + second, m.theta, rtol=1e-14)


@pytest.mark.parametrize(("name", "exchanges"), [("ssda", 1), ("dlag", 1), ("msda:K=4", 4)])
def test_a_round_has_as_many_exchanges_as_the_method_says(name: str, exchanges: int) -> None:
    m = method(name)
    for _ in range(3):
        payloads, _ = play(m, WORDS)
        assert len(payloads) == exchanges


@pytest.mark.parametrize("K", [1, 2, 7])
def test_mdlag_has_K_exchanges_of_which_only_the_first_is_lazy(K: int) -> None:
    m = method(f"mdlag:solver=closed,K={K},{ALWAYS_HOLDS}")
    play(m, WORDS)
    payloads, _ = play(m, WORDS)
    assert len(payloads) == K
    assert payloads[0] is None
    assert all(payload is not None for payload in payloads[1:])


def test_K_is_by_default_the_floor_of_one_over_the_root_of_zeta() -> None:
    assert method("mdlag").parameters["K"] == 3
    assert len(play(method("mdlag"), WORDS)[0]) == 3


@pytest.mark.parametrize("name", ["ssda", "msda:K=4", "dlag:D=2", f"mdlag:D=2,{ALWAYS_HOLDS}"])
def test_a_vector_that_was_given_away_is_never_written_again(name: str) -> None:
    m = method(name)
    given: list[tuple[Array, Array]] = []
    for k in range(6):
        flow = m.round()
        exchange = next(flow)
        while True:
            vector = exchange.payload
            if vector is not None:
                vector.flags.writeable = False  # as the engine does
                given.append((vector, vector.copy()))
                state = (m.theta, m.theta_hat, m.P, m.x, m.y)
                assert not any(np.shares_memory(vector, own) for own in state)
            try:
                exchange = flow.send(WORDS if k % 2 else as_quiet_as(exchange.payload))
            except StopIteration:
                break
        state = (m.theta, m.theta_hat, m.P, m.x, m.y)
        assert not any(np.shares_memory(vector, own) for vector, _ in given for own in state)
    for vector, copy in given:
        np.testing.assert_array_equal(vector, copy)


def test_what_the_neighbors_sent_is_not_written_to() -> None:
    inbox = {j: v.copy() for j, v in WORDS.items() if v is not None}
    for v in inbox.values():
        v.flags.writeable = False
    m = method("mdlag:K=4")
    for _ in range(3):
        play(m, inbox)
    assert not any(np.shares_memory(v, own) for v in inbox.values() for own in (m.P, m.x, m.y))


def test_neighbors_are_summed_in_ascending_id_whatever_the_order_of_arrival() -> None:
    big = {1: np.array([1e16, 1.0, 0.0]), 4: np.array([-0.5e16, 3.0, 7.0])}
    own = np.array([1.0, 2.0, 3.0])
    there = HOOD.apply(own, big)
    back = HOOD.apply(own, dict(reversed(big.items())))
    np.testing.assert_array_equal(there, back)
    np.testing.assert_array_equal(there, (0.75 * own + -0.25 * big[1]) + -0.5 * big[4])


def test_when_nobody_speaks_there_is_nothing_to_add() -> None:
    assert HOOD.apply(None, SILENCE) is None
