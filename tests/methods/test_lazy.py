"""The lazy rule against the four sums that the paper writes."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dlag_node.methods.lazy import SEND, SKIP, LazyRule

MU_MIN = 0.3

# Ranges in which no term of the sums underflows: 1e-3^40 * 1e-12 is far above 1e-308.
steps = st.lists(st.just(0.0) | st.floats(1e-12, 1e6), max_size=40)
fractions = st.just(0.0) | st.floats(1e-3, 0.999)


def four_sums(s: list[float], *, gamma: float, c: float, D: int) -> float:
    """Equation (worker's condition 1), right-hand side at k = len(s), s[j] = ||x^j - x^{j+1}||^2.

    Sums over a negative j are empty terms: there is no x before x^0.
    """
    k = len(s)
    recent = range(max(0, k - D), k)
    return (
        3 * sum(c ** (k - D - j) / MU_MIN**2 * s[j] for j in range(k - D))
        + 3 * sum(c ** (k - j) / MU_MIN**2 * s[j] for j in range(k))
        + 3 * sum(c / MU_MIN**2 * s[j] for j in recent)
        + 3 * sum(gamma / MU_MIN**2 * s[j] for j in recent)
    )


@given(steps, fractions, fractions, st.integers(1, 12))
@example([1.0, 2.0, 3.0], 1e-4, 1e-4, 3)  # k = D
@example([1.0, 2.0, 3.0, 5.0], 1e-4, 1e-4, 3)  # k = D + 1: the first term of the first sum
@example([1.0, 2.0], 1e-4, 1e-4, 50)  # k < D
@example([], 0.5, 0.5, 1)
def test_the_bound_is_the_papers_four_sums(s: list[float], gamma: float, c: float, D: int) -> None:
    rule = LazyRule(gamma=gamma, c=c, D=D, mu=MU_MIN)
    for k in range(len(s) + 1):
        # both sum some 100 terms that are not negative: rounding is about 100 ulps at worst
        wanted = four_sums(s[:k], gamma=gamma, c=c, D=D)
        assert rule.bound() == pytest.approx(wanted, rel=1e-12, abs=0)
        if k < len(s):
            rule.observe(s[k])


@pytest.mark.parametrize("D", [1, 7, 50])
def test_the_memory_is_the_last_D_steps(D: int) -> None:
    rule = LazyRule(gamma=0.1, c=0.1, D=D, mu=MU_MIN)
    for k in range(10 * D):
        rule.observe(1.0)
        assert len(rule._window) == min(k + 1, D)


@given(steps.filter(len), st.floats(0, 1e9), fractions, st.integers(1, 12))
def test_silence_is_allowed_up_to_the_bound_and_below_the_age(
    s: list[float], gap: float, c: float, D: int
) -> None:
    rule = LazyRule(gamma=0.01, c=c, D=D, mu=MU_MIN)
    age = 0
    for step in s:
        rule.observe(step)
        allowed = gap <= rule.bound() and age < D
        assert rule.decide(gap, 0.0).send is not allowed
        age = age + 1 if allowed else 0
        assert rule.age == age <= D


def test_a_gap_of_exactly_the_bound_is_skipped() -> None:
    rule = LazyRule(gamma=0.01, c=0.02, D=5, mu=MU_MIN)
    rule.observe(1.0)
    assert rule.decide(rule.bound(), 0.0) == SKIP
    assert rule.decide(rule.bound() * (1 + 1e-15), 0.0) == SEND


def test_without_gamma_and_c_nothing_but_no_change_is_skipped() -> None:
    rule = LazyRule(gamma=0.0, c=0.0, D=5, mu=MU_MIN)
    rule.observe(1e6)
    assert rule.decide(1e-300, 0.0) == SEND
    assert rule.decide(0.0, 0.0) == SKIP


@given(steps, fractions, fractions, st.integers(1, 12), st.integers(0, 15))
@example([1.0, 2.0, 3.0, 5.0], 1e-4, 1e-4, 3, 1)
def test_the_bound_ahead_is_that_of_steps_of_0_to_the_bit_and_no_steps_make_it_smaller(
    s: list[float], gamma: float, c: float, D: int, ahead: int
) -> None:
    rule = LazyRule(gamma=gamma, c=c, D=D, mu=MU_MIN)
    moving = LazyRule(gamma=gamma, c=c, D=D, mu=MU_MIN)
    for step in s:
        rule.observe(step)
        moving.observe(step)
    foreseen = rule.bound(ahead)
    wanted = four_sums([*s, *[0.0] * ahead], gamma=gamma, c=c, D=D)
    assert foreseen == pytest.approx(wanted, rel=1e-12, abs=0)
    for j in range(ahead):
        rule.observe(0.0)
        moving.observe(float(j % 3))
    assert rule.bound() == foreseen <= moving.bound()
