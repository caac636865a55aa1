"""Rounded vectors: how near, how many bytes, and that the rest of a delta comes back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlag_node.errors import LocalProtocolError
from dlag_node.rounding import FORMS, rounded, values_of

# half a unit in the last place, as a part of the vector's largest entry
NEAR = {"f4": 2.0**-24, "f2": 2.0**-11, "i1": 1.0 / 127.0}
ENTRIES = st.lists(st.floats(-1e30, 1e30), min_size=1, max_size=30)


@pytest.mark.parametrize(("name", "size"), [("f4", 52), ("f2", 28), ("i1", 15)])
def test_the_bytes_of_thirteen_entries(name: str, size: int) -> None:
    vector = rounded(np.linspace(-1.0, 2.0, 13), FORMS[name])
    assert len(vector.body) == FORMS[name].size(13) == size


@pytest.mark.parametrize("name", FORMS)
@given(entries=ENTRIES)
def test_every_entry_is_near(name: str, entries: list[float]) -> None:
    vector = np.array(entries)
    apart = np.abs(rounded(vector, FORMS[name]).values - vector).max()
    assert apart <= NEAR[name] * np.abs(vector).max() + 1e-45  # float32 ends there


@pytest.mark.parametrize("name", ["f2", "i1"])
@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 127.6, 1e30, 1e300])
def test_the_scale_goes_where_the_entries_are(name: str, scale: float) -> None:
    vector = scale * np.array([1.0, -0.5, 0.25, 0.0])
    apart = np.abs(rounded(vector, FORMS[name]).values - vector).max()
    assert apart <= NEAR[name] * scale


@pytest.mark.parametrize("name", FORMS)
@given(entries=ENTRIES)
def test_rounding_twice_changes_nothing_more(name: str, entries: list[float]) -> None:
    once = rounded(np.array(entries), FORMS[name])
    assert values_of(once.body, once.form).tobytes() == once.values.tobytes()
    assert rounded(once.values, FORMS[name]).values.tobytes() == once.values.tobytes()


@pytest.mark.parametrize("name", FORMS)
def test_what_was_rounded_off_comes_back_with_the_next_deltas(name: str) -> None:
    goal, copy = np.random.default_rng(3).standard_normal(13), np.zeros(13)
    for _ in range(12):
        copy = copy + rounded(goal - copy, FORMS[name]).values
    np.testing.assert_allclose(copy, goal, rtol=0, atol=1e-15)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", FORMS)
def test_a_vector_that_is_not_finite_is_our_own_bug(name: str, bad: float) -> None:
    with pytest.raises(LocalProtocolError, match="not finite"):
        rounded(np.array([1.0, bad]), FORMS[name])
