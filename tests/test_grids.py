"""The cases of a grid that are run each time have every value, or every pair of values."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from tests.grids import Case, sample


def grid(*sizes: int) -> list[Case]:
    return [*product(*map(range, sizes))]


@pytest.mark.parametrize(("sizes", "most"), [((9, 4), 9), ((25, 4), 25), ((2, 2), 2)])
def test_of_two_axes_every_value_is_there_and_none_much_oftener(
    sizes: tuple[int, int], most: int
) -> None:
    chosen = sample(grid(*sizes))
    assert len(chosen) <= most
    for axis, size in enumerate(sizes):
        often = [sum(case[axis] == value for case in chosen) for value in range(size)]
        assert min(often) > 0
        assert max(often) <= min(often) + 1


@pytest.mark.parametrize(
    ("sizes", "most"), [((4, 6, 3), 26), ((3, 3, 2, 2), 12), ((2, 2, 2, 2), 6), ((5, 4, 3, 2), 24)]
)
def test_of_more_axes_every_pair_is_there(sizes: tuple[int, ...], most: int) -> None:
    chosen = sample(grid(*sizes))
    assert len(chosen) <= most
    for (i, m), (j, n) in combinations(enumerate(sizes), 2):
        assert {(case[i], case[j]) for case in chosen} == {*grid(m, n)}


def test_a_case_that_is_asked_for_alone_is_kept() -> None:
    assert sample([(3, 1, 2)]) == {(3, 1, 2)}
