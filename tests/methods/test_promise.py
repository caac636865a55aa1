"""Promises: how long they are, that they are kept, and when the lazy condition holds meanwhile."""

from __future__ import annotations

from math import floor, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlag_node.graphs import Spectrum
from dlag_node.methods import Neighborhood, Worker, build_method, parse_method
from dlag_node.methods.channel import Channel, Rule
from dlag_node.methods.channel_parameters import channel_form
from dlag_node.methods.dual import DualAscent
from dlag_node.methods.flow import Array, Exchange
from dlag_node.methods.lazy import LazyRule, StepRule
from dlag_node.methods.promise import Promises
from dlag_node.problems import SQUARED, Problem, rows_of
from dlag_node.rounding import FORMS, WHOLE

DIM = 2
HOOD = Neighborhood(1.0, {1: -1.0})


class Bounds:
    """A lazy condition whose right-hand sides, today's and those to come, are as they are told."""

    D = 50
    strict = False
    age = 0

    def __init__(self, *rights: float) -> None:
        self.rights = rights

    def bound(self, ahead: int = 0) -> float:
        return self.rights[ahead]


def promised(values: list[Array], rule: Bounds, *, longest: int = 9, safe: int = 0) -> int:
    """r of a delta that tells the last of these values, to a copy without a slope."""
    promises = Promises(DIM, longest, fading=0.9, safe=safe)
    last = np.zeros(DIM)
    for v in values:
        promises.follow(v - last)
        last = v
    return promises.make(last, last, None, rule)


def line(*points: float) -> list[Array]:
    return [np.array([point, 0.0]) for point in points]


@pytest.mark.parametrize("speed", [1.0, 2.0, 3.0, 10.0])
def test_in_a_straight_line_it_is_as_long_as_the_bound_is_wide(speed: float) -> None:
    values = line(0.0, speed, 2 * speed, 3 * speed)
    assert promised(values, Bounds(*[36.0] * 10)) == floor(6.0 / speed)
    assert promised(values, Bounds(*[36.0] * 10), longest=2) == min(2, floor(6.0 / speed))


def test_what_counts_is_the_bound_of_the_exchange_in_question() -> None:
    values = line(0.0, 1.0, 2.0)
    assert promised(values, Bounds(0.0, 1.0, 4.0, 9.0, 15.9, 99.0)) == 3
    assert promised(values, Bounds(99.0, 0.9, 99.0, 99.0)) == 0


def test_the_largest_second_difference_counts_with_each_exchange() -> None:
    # u = 3, A = 2: 3 + 2, 6 + 6, 9 + 12
    values = line(0.0, 1.0, 4.0)
    assert promised(values, Bounds(0.0, 25.0, 144.0, 441.0, 0.0)) == 3
    assert promised(values, Bounds(0.0, 25.0, 144.0, 440.9, 0.0)) == 2
    assert promised(values, Bounds(0.0, 24.9, 144.0, 441.0, 0.0)) == 0


def test_a_second_difference_of_long_ago_counts_less_and_not_nothing() -> None:
    # a jerk of 10, then straight on with u = 1
    values = line(0.0, -9.0, *map(float, range(-8, 12)))
    A = 10.0 * 0.9 ** (len(values) - 3)
    assert 1.0 < A < 2.0
    assert promised(values, Bounds(0.0, (1.0 + A) ** 2 * (1 + 1e-12), 0.0)) == 1
    assert promised(values, Bounds(0.0, (1.0 + A) ** 2 * (1 - 1e-12), 0.0)) == 0


@pytest.mark.parametrize("known", [1, 2])
def test_there_is_no_promise_before_two_differences_are_known(known: int) -> None:
    values = line(0.0, 0.0, 0.0)[:known]
    assert promised(values, Bounds(*[9.0] * 10), safe=3) == 0
    assert promised(line(0.0, 0.0, 0.0), Bounds(*[9.0] * 10)) == 9


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_numbers_that_went_bad_promise_nothing(bad: float) -> None:
    assert promised(line(0.0, 1.0, bad), Bounds(*[36.0] * 10)) == 0
    assert promised(line(0.0, 1.0, 2.0), Bounds(*[np.nan] * 10)) == 0


def test_who_is_strict_promises_nothing() -> None:
    rule = Bounds(*[36.0] * 10)
    rule.strict = True
    assert promised(line(0.0, 1.0, 2.0), rule, safe=3) == 0


def test_a_safe_length_needs_no_forecast_and_stays_below_R() -> None:
    values = line(0.0, 1.0, 1e6)
    assert promised(values, Bounds(*[0.0] * 10), safe=3) == 3
    assert promised(values, Bounds(*[0.0] * 10), safe=30) == 9
    assert promised(line(0.0, 1.0, 2.0), Bounds(*[36.0] * 10), safe=3) == 6


def lazy_channel(rule: Rule, longest: int, *, predict: str = "none", form: str = WHOLE) -> Channel:
    promises = Promises(DIM, longest, fading=rule.FADING)
    return Channel(DIM, HOOD, rule=rule, promises=promises, how=channel_form(predict, form))


def say(channel: Channel, v: Array, *, first: bool = False) -> Exchange:
    """One exchange in which the neighbor is silent; `first`: v must be told."""
    flow = channel.share(v, always=first)
    said = next(flow)
    with pytest.raises(StopIteration):
        flow.send({1: None})
    return said


def test_the_copys_own_slope_counts_as_well() -> None:
    rule = LazyRule(gamma=0.5, c=0.0, D=50, mu=1.0)
    channel = lazy_channel(rule, 5, predict="linear")
    said = []
    for k, v in enumerate(line(*map(float, range(12)))):
        said.append(say(channel, v, first=k == 0))
        rule.observe(1e-9)  # a bound that would not allow a single step of v
    # the line is told twice, and then it keeps to it
    assert [each.promise for each in said] == [0, 0, 5, 0, 0, 0, 0, 0, 5, 0, 0, 0]
    assert [each.promised for each in said] == [each.payload is None for each in said]


def wild_but_within_A(rule: LazyRule, channel: Channel, x_step: float, seed: int) -> int:
    """How often v was silent while it turned by up to A in every exchange, in any direction.

    The steps of x are 0 throughout a promise, as the forecast has them.
    """
    promises = channel.promises
    assert promises is not None
    rng = np.random.default_rng(seed)
    v, u, A, kept = np.zeros(DIM), np.zeros(DIM), np.inf, 0
    for k in range(40):
        said = say(channel, v, first=k == 0)
        assert said.promise <= min(promises.longest, rule.D)
        assert said.promised == (said.payload is None)
        if said.payload is not None:
            A = promises._bend
        else:
            kept += 1
            # the forecast and the condition are sums of some ten terms, rounded
            assert channel.decided.gap <= channel.decided.bound * (1 + 1e-12) + 1e-26
        rule.observe(0.0 if promises.left else x_step * rng.random())
        if promises.left:
            turn = rng.normal(size=DIM)
            u = u + A * rng.random() ** 0.2 * turn / np.linalg.norm(turn)
        elif rng.random() < 0.3:
            u = u + 0.1 * rng.normal(size=DIM)
        v = v + u
    return kept


@pytest.mark.parametrize("form", [WHOLE, *FORMS])
@pytest.mark.parametrize("predict", ["none", "linear"])
@given(data=st.data())
def test_while_second_differences_stay_below_A_nothing_is_overdue(
    predict: str, form: str, data: st.DataObject
) -> None:
    R = data.draw(st.integers(1, 8))
    rule = LazyRule(
        gamma=data.draw(st.floats(1e-3, 0.9)),
        c=data.draw(st.just(0.0) | st.floats(1e-3, 0.9)),
        D=data.draw(st.integers(R, 12)),
        mu=0.5,
    )
    channel = lazy_channel(rule, R, predict=predict, form=form)
    x_step = data.draw(st.sampled_from([0.0, 1.0, 30.0]))
    wild_but_within_A(rule, channel, x_step, data.draw(st.integers(0, 2**32 - 1)))


def test_which_is_said_of_many_silences() -> None:
    kept = 0
    for seed in range(20):
        rule = LazyRule(gamma=0.3, c=0.1, D=10, mu=0.5)
        kept += wild_but_within_A(rule, lazy_channel(rule, 4), 5.0, seed)
    assert kept > 200


def test_a_promise_is_kept_and_then_a_delta_follows() -> None:
    rule = StepRule(tau=6.0, D=4)
    channel = lazy_channel(rule, 3)
    said, ages = [], []
    for k in range(60):
        said.append(say(channel, np.array([0.95**k, 0.9**k]), first=k == 0))
        ages.append(channel.age)
    at = 0
    lengths = set()
    while at < 50:
        r = said[at].promise
        lengths.add(r)
        assert said[at].payload is not None
        assert ages[at : at + r + 1] == [*range(r + 1)]
        assert all(each.promised for each in said[at + 1 : at + r + 1])
        at += r + 1
    assert max(lengths) == 3


def test_an_alarm_in_the_middle_of_a_promise_is_heard_and_the_promise_kept() -> None:
    rule = StepRule(tau=3.0, D=9)
    channel = lazy_channel(rule, 9)
    promises = channel.promises
    assert promises is not None
    k = 0
    while k < 12 or promises.left < 2:
        say(channel, np.array([0.97**k, 0.0]))
        k += 1
    left = promises.left
    said = say(channel, np.array([1e3, 0.0]))
    assert (rule.alarms, rule.strict, said.payload) == (1, True, None)
    assert channel.overdue == 1
    for _ in range(left - 1):
        assert say(channel, np.array([1e3, 0.0])).promised
    assert rule.strict  # the mean of five steps has one of them in it still
    said = say(channel, np.array([1e3, 0.0]))
    assert said.payload is not None
    assert said.promise == 0
    assert channel.overdue == 0


def adversaries() -> tuple[DualAscent, Worker]:
    """A worker with exact dual gradients whose mu_i is twice the least, and a free dimension."""
    problem = Problem(rows_of([[1.0, 0.0]]), np.array([1.0]), SQUARED, n0=4, lam=0.5)
    worker = Worker(
        node=0,
        problem=problem,
        hood=HOOD,
        spectrum=Spectrum((2.0, 0.1, 0.0)),
        mu_min=problem.mu / 2,
        L_max=problem.L,
        L_sample=problem.L_sample,
        seed=0,
    )
    text = "dlag:solver=closed,gamma=0.3,c=0.05,D=6,promise=4"  # 3 (gamma + c) 2^2 = 4.2
    built = build_method(parse_method(text), worker)
    assert isinstance(built, DualAscent)
    return built, worker


def overdue_under_attack(method: DualAscent, seed: int, rounds: int = 40) -> int:
    """How often a silence was overdue while the neighbor says anything at all."""
    rng = np.random.default_rng(seed)
    overdue = 0
    for _ in range(rounds):
        flow = method.round()
        said = next(flow)
        # where it hurts: right after the promise, in the direction of the least curvature
        size = 10.0 ** rng.uniform(-3, 4) if said.promise or rng.random() < 0.5 else 0.0
        with pytest.raises(StopIteration) as end:
            flow.send({1: size * np.array([0.0, rng.choice([-1.0, 1.0])])})
        overdue += end.value.value.overdue
    return overdue


@pytest.mark.parametrize("seed", range(20))
def test_a_safe_promise_is_never_overdue_whatever_the_neighbors_send(seed: int) -> None:
    method, worker = adversaries()
    promises = method.channel.promises
    assert promises is not None
    assert worker.problem.mu == 2 * worker.mu_min
    assert promises.safe == 4  # R: no longer one can be made
    assert overdue_under_attack(method, seed) == 0


def test_a_promise_half_as_long_again_would_be() -> None:
    found = 0
    for seed in range(20):
        method, _ = adversaries()
        promises = method.channel.promises
        assert promises is not None
        promises.safe = promises.longest = 6  # D
        found += overdue_under_attack(method, seed)
    assert found > 0


def safe(text: str, ratio: float) -> int:
    problem = Problem(rows_of([[1.0, 0.0]]), np.array([1.0]), SQUARED, n0=4, lam=0.5)
    worker = Worker(
        node=0,
        problem=problem,
        hood=HOOD,
        spectrum=Spectrum((2.0, 0.1, 0.0)),
        mu_min=problem.mu / ratio,
        L_max=problem.L,
        L_sample=problem.L_sample,
        seed=0,
    )
    built = build_method(parse_method(text), worker)
    assert isinstance(built, DualAscent)
    assert built.channel.promises is not None
    return built.channel.promises.safe


@pytest.mark.parametrize(
    ("given_", "ratio", "length"),
    [
        ("solver=closed", 65.0, 2),  # 6e-4 * 4225
        ("solver=newton,stop=exact:1e-10", 65.0, 2),
        ("solver=newton,stop=exact:1e-3", 65.0, 0),  # 1e-4 * 4225: not exact
        ("stop=epochs:30", 65.0, 0),
        ("stop=epochs:30", 150.0, 2),
        ("solver=closed", 10.0, 0),
        ("solver=closed", 1e3, 20),
        ("solver=closed,mu=own", 1e3, 0),  # the rule has mu_i itself
        ("solver=closed,mu=own,gamma=0.9,c=0.9", 1.0, 5),
        ("solver=closed,predict=linear", 1e3, 0),
        ("solver=closed,form=f4", 1e3, 0),
        ("solver=closed,rule=steps", 1e3, 0),
    ],
)
def test_which_promises_are_safe(given_: str, ratio: float, length: int) -> None:
    assert safe(f"dlag:promise=20,{given_}", ratio) == length


@given(st.floats(1e-3, 0.9), st.floats(1e-3, 0.9), st.integers(1, 8), st.floats(1.0, 30.0))
def test_the_safe_length_by_its_proof(gamma: float, c: float, D: int, ratio: float) -> None:
    """j steps of x in a row, all of one size and in one direction, are the worst there is."""
    mu_i, mu_min = 1.0, 1.0 / ratio
    length = min(D, floor(3 * (gamma + c) * ratio**2))
    rule = LazyRule(gamma=gamma, c=c, D=D, mu=mu_min)
    for j in range(1, length + 1):
        rule.observe(1.0)
        gap = (j * 1.0 / mu_i) ** 2
        assert sqrt(gap) <= sqrt(rule.bound()) * (1 + 1e-12)
