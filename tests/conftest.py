"""Hypothesis searches anew at every run at home, and repeats itself where a change is judged.

Large grids of cases are sampled (`tests/grids.py`). And a command that a test runs in its own
process leaves the log, and where it asks for it the signals, as they were.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.grids import left_out

# No deadline an example: the machine may be busy with something else.
settings.register_profile("search", deadline=None)
settings.register_profile("repeat", deadline=None, derandomize=True)
settings.load_profile("repeat" if os.environ.get("CI") else "search")


def pytest_configure(config: pytest.Config) -> None:
    """The marker of grids."""
    config.addinivalue_line("markers", "grid: sampled, unless DLAG_TEST_FULL is set")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a grid, the cases that are enough."""
    if os.environ.get("DLAG_TEST_FULL"):
        return
    out = {*left_out(items)}
    config.hook.pytest_deselected(items=[*out])
    items[:] = [item for item in items if item not in out]


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.fixture
def process_as_before() -> Iterator[None]:
    """A command sets up signals for a process of its own; here it has ours."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)
