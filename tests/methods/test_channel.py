"""The lazy channel: copies that agree at both ends, whoever is silent, predicts or rounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlag_node.methods.channel import PREDICTORS, Channel, ChannelForm
from dlag_node.methods.channel_parameters import ChannelParameters, channel_form
from dlag_node.methods.flow import Array, Exchange
from dlag_node.methods.gossip import Neighborhood
from dlag_node.methods.lazy import SEND, SKIP, Decision, StepRule
from dlag_node.rounding import FORMS, WHOLE

DIM = 3
EDGES = ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2))
U = np.zeros((4, 4))
for a, b in EDGES:
    U[a, b] = U[b, a] = -0.25 * (1 + a)
np.fill_diagonal(U, -U.sum(axis=1))


class Whims:
    """A rule that is silent as it is told to be."""

    def __init__(self, silences: list[bool]) -> None:
        self.age = 0
        self._silences = iter(silences)

    def decide(self, gap: float, moved: float, silent: bool | None = None) -> Decision:
        assert gap >= 0.0 <= moved
        assert silent is None  # nothing was promised
        return SKIP if next(self._silences) else SEND

    def observe(self, step: float) -> None:
        raise AssertionError(step)


def channel(i: int, how: ChannelForm, silences: list[bool]) -> Channel:
    weights = {j: float(U[i, j]) for j in range(4) if j != i and U[i, j]}
    return Channel(DIM, Neighborhood(float(U[i, i]), weights), rule=Whims(silences), how=how)


def share_all(channels: list[Channel], V: Array) -> tuple[Array, list[Exchange]]:
    """One exchange of all four workers; returns every P_i and what each of them said."""
    flows = [c.share(v) for c, v in zip(channels, V, strict=True)]
    said = [next(flow) for flow in flows]
    P = np.zeros_like(V)
    for i, flow in enumerate(flows):
        inbox = {j: said[j].payload for j in channels[i].hood.weights}
        with pytest.raises(StopIteration) as end:
            flow.send(inbox)
        P[i] = end.value.value
    return P, said


HOWS = [(predict, form) for predict in PREDICTORS for form in (WHOLE, *FORMS)]


@pytest.mark.parametrize(("predict", "form"), HOWS)
@given(data=st.data())
def test_P_is_the_mix_of_the_copies_and_sums_to_zero(
    predict: str, form: str, data: st.DataObject
) -> None:
    silences = data.draw(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    by_worker = [list(column) for column in zip(*silences, strict=True)]
    channels = [channel(i, channel_form(predict, form), by_worker[i]) for i in range(4)]
    V = np.zeros((4, DIM))
    for row in silences:
        V = V + rng.standard_normal(V.shape)
        P, said = share_all(channels, V)
        known = np.array([c.known for c in channels])
        size = 1.0 + np.abs(known).max()
        np.testing.assert_allclose(P, U @ known, rtol=0, atol=1e-12 * size)
        assert np.abs(P.sum(axis=0)).max() <= 1e-12 * size
        assert [each.payload is None for each in said] == row
        for i, silent in enumerate(row):
            if not silent and form == WHOLE:  # who spoke is known exactly
                np.testing.assert_allclose(known[i], V[i], rtol=0, atol=1e-13 * size)


def test_a_silent_worker_goes_on_in_a_straight_line() -> None:
    silences = [[False, False, True, True, True, False, True]] * 4
    channels = [channel(i, ChannelForm("linear"), each) for i, each in enumerate(silences)]
    start, slope = np.arange(12.0).reshape(4, 3), np.linspace(-1.0, 1.0, 12).reshape(4, 3)
    for k in range(7):
        P, _ = share_all(channels, start + k * slope)
        if k >= 1:  # two values were told, and the third lies on their line
            np.testing.assert_allclose(P, U @ (start + k * slope), rtol=0, atol=1e-12)


def test_without_prediction_a_silent_worker_stands() -> None:
    channels = [channel(i, ChannelForm(), [False, True]) for i in range(4)]
    V = np.arange(12.0).reshape(4, 3)
    P, _ = share_all(channels, V)
    again, said = share_all(channels, V + 1.0)
    assert all(each.payload is None for each in said)
    np.testing.assert_array_equal(again, P)


@pytest.mark.parametrize("form", FORMS)
def test_what_travels_is_what_the_sender_adds_to_its_own_copy(form: str) -> None:
    channels = [channel(i, channel_form("none", form), [False] * 9) for i in range(4)]
    V = np.random.default_rng(2).standard_normal((4, DIM))
    heard = np.zeros_like(V)
    for _ in range(9):
        _, said = share_all(channels, V)
        for i, each in enumerate(said):
            assert each.payload is not None
            assert each.rounded is not None
            assert len(each.rounded.body) == FORMS[form].size(DIM)
            heard[i] += each.payload
            np.testing.assert_array_equal(heard[i], channels[i].known)
    np.testing.assert_allclose(heard, V, rtol=0, atol=1e-14)  # the error came back by itself


def test_the_first_word_can_be_forced() -> None:
    quiet = channel(0, ChannelForm(), [True])
    assert next(quiet.share(np.ones(DIM), always=True)).payload is not None
    assert next(channel(0, ChannelForm(), [True]).share(np.ones(DIM))).payload is None


def test_tau_0_tells_everything() -> None:
    hood = Neighborhood(1.0, {1: -1.0})
    assert ChannelParameters().channel(DIM, hood).rule is None
    lazy = replace(ChannelParameters(), tau=0.5, D=7).channel(DIM, hood)
    assert isinstance(lazy.rule, StepRule)
    assert (lazy.rule.tau, lazy.rule.D, lazy.age) == (0.5, 7, 0)


def test_the_step_rule_is_one_bound_in_the_vectors_own_steps() -> None:
    rule = StepRule(tau=0.5, D=100)
    for moved in (4.0, 4.0, 4.0, 4.0):
        rule.decide(0.0, moved)
    # the mean of the last five steps' squares is 4, a quarter of it is the bound
    assert rule.decide(1.0, 4.0) == SKIP
    assert rule.decide(1.0 + 1e-12, 4.0) == SEND


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1.0, 1e120])
def test_the_step_rule_knows_no_units(scale: float) -> None:
    rng = np.random.default_rng(4)
    gaps, moves = rng.uniform(0.0, 0.5, 60), np.sort(rng.uniform(0.5, 1.0, 60))[::-1]
    one, other = StepRule(tau=0.6, D=5), StepRule(tau=0.6, D=5)
    said = [one.decide(g, m) == SKIP for g, m in zip(gaps, moves, strict=True)]
    there = [other.decide(scale * g, scale * m) == SKIP for g, m in zip(gaps, moves, strict=True)]
    assert said == there
    assert 10 < sum(said) < 50


def test_a_dual_methods_steps_count_by_mu() -> None:
    rule = StepRule(tau=1.0, D=100, mu=0.1)
    rule.observe(1e-4)  # ||x^1 - x^0||^2: theta may have moved by 1e-4 / mu^2 = 1e-2
    assert rule.decide(0.99e-2, 0.0) == SKIP
    assert rule.decide(1.01e-2, 0.0) == SEND


@pytest.mark.parametrize("D", [1, 2, 7])
def test_the_age_D_forces_a_word(D: int) -> None:
    rule = StepRule(tau=1.0, D=D)
    said = [rule.decide(0.0, 1.0) == SKIP for _ in range(3 * (D + 1))]
    assert said == 3 * [*[True] * D, False]


def test_who_sees_its_steps_grow_becomes_strict_at_once_and_lazy_again_later() -> None:
    rule = StepRule(tau=0.8, D=1_000)
    shrinking = [0.9**k for k in range(40)]
    assert all(rule.decide(0.0, moved) == SKIP for moved in shrinking)
    growing = [shrinking[-1] * 1.3**k for k in range(40)]
    said = [rule.decide(0.0, moved) == SKIP for moved in growing]
    strict_from = said.index(False)
    assert not any(said[strict_from:])
    assert strict_from <= 10  # as soon as they exceed what they were ten exchanges before
    assert (rule.alarms, rule.tau) == (1, 0.4)
    relief = [growing[-1] * 0.7**k for k in range(60)]
    said = [rule.decide(0.0, moved) == SKIP for moved in relief]
    lazy_from = said.index(True)
    assert all(said[lazy_from:])
    assert relief[lazy_from] < growing[strict_from]


def test_a_burst_is_answered_within_the_window_and_nan_counts_as_growth() -> None:
    rule = StepRule(tau=0.8, D=1_000, past=1_000)
    assert all(rule.decide(0.0, 1.0) == SKIP for _ in range(8))
    assert rule.decide(0.0, 1e3) == SEND
    rule = StepRule(tau=0.8, D=1_000)
    assert all(rule.decide(0.0, 1.0) == SKIP for _ in range(12))
    assert rule.decide(0.0, float("nan")) == SEND
    assert rule.decide(0.0, 1.0) == SEND


def test_waves_of_the_given_length_are_no_alarm() -> None:
    waves = [0.98**k * (1.1 + np.sin(2 * np.pi * k / 30)) for k in range(300)]
    patient, hasty = StepRule(tau=0.8, D=9, past=40), StepRule(tau=0.8, D=9, past=10)
    for moved in waves:
        patient.decide(0.0, moved)
        hasty.decide(0.0, moved)
    assert patient.alarms == 0 < hasty.alarms


@pytest.mark.parametrize(
    ("moves", "ahead", "window"),
    [
        ([7.0], 1, [7.0, 7.0]),
        ([4.0, 9.0], 2, [4.0, 9.0, 4.0, 4.0]),
        ([1.0, 2.0, 3.0, 9.0, 8.0], 1, [2.0, 3.0, 9.0, 8.0, 8.0]),
        ([1.0, 2.0, 3.0, 8.0, 9.0], 3, [8.0, 9.0, 8.0, 8.0, 8.0]),
        ([1.0, 2.0, 3.0, 8.0, 9.0], 20, [8.0] * 5),
        ([], 3, []),
    ],
)
def test_the_step_rule_takes_steps_to_come_as_the_smaller_of_the_last_two(
    moves: list[float], ahead: int, window: list[float]
) -> None:
    rule = StepRule(tau=0.5, D=100, mu=1.0)
    for moved in moves:
        rule.observe(moved)
    assert rule.bound(ahead) == 0.25 * (sum(window) / len(window) if window else 0.0)
    assert rule.bound() == 0.25 * (sum(moves) / len(moves) if moves else 0.0)
