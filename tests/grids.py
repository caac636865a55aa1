"""Which cases of a large grid are run each time: few of them, and still every value of every axis.

A test marked `grid` has one `parametrize` an axis. All of its cases are run where DLAG_TEST_FULL is
set (`make test-nightly`); otherwise, of two axes, cases that have every value of both, and of more,
cases that have every pair of values of any two. The choice depends on the grid alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations

import pytest

Case = tuple[int, ...]  # the index of its value on each axis


def sample(cases: Sequence[Case]) -> set[Case]:
    """Some of these cases that have what all of them have: greedily, the least used values first.

    Of cases with n axes these are the values for n = 2, and the pairs of values for n > 2.
    """
    size = 2 if len(cases[0]) > 2 else 1
    parts = {case: {*combinations(enumerate(case), size)} for case in cases}
    wanted = set().union(*parts.values())
    used: Counter[tuple[int, int]] = Counter()
    chosen: set[Case] = set()
    while wanted:
        best = min(
            cases,
            key=lambda case: (-len(parts[case] & wanted), sum(used[at] for at in enumerate(case))),
        )
        chosen.add(best)
        wanted -= parts[best]
        used.update(enumerate(best))
    return chosen


def left_out(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Of all tests that were collected, the cases of grids that need not be run each time."""
    grids: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("grid") is not None:
            assert isinstance(item, pytest.Function)
            grids[item.nodeid.removesuffix(f"[{item.callspec.id}]")].append(item)
    out: list[pytest.Item] = []
    for grid in grids.values():
        cases = _cases(grid)
        kept = sample(cases)
        out += [item for item, case in zip(grid, cases, strict=True) if case not in kept]
    return out


def _cases(grid: Sequence[pytest.Function]) -> list[Case]:
    """The cases of one test; values are told apart as the objects that its axes list."""
    axes = [_names(mark) for mark in grid[0].iter_markers("parametrize")]
    found: list[dict[tuple[int, ...], int]] = [{} for _ in axes]  # values, and their index
    cases = []
    for item in grid:
        values = [tuple(id(item.callspec.params[name]) for name in names) for names in axes]
        cases.append(
            tuple(
                seen.setdefault(each, len(seen)) for seen, each in zip(found, values, strict=True)
            )
        )
    return cases


def _names(mark: pytest.Mark) -> list[str]:
    names = mark.args[0]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
