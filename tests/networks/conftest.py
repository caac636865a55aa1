"""Fixtures of the tests with network namespaces: a machine that can, or the reason why not."""

from __future__ import annotations

import pytest

from dlag_lab.network.commands import missing
from dlag_lab.network.spec import parse_network


@pytest.fixture(scope="session")
def machine() -> None:
    """Skips, with what is missing, where the machine cannot make such networks."""
    lacking = missing(parse_network("delay=1ms,rate=1mbit"))
    if lacking:
        pytest.skip(f"no network namespaces here: lacks {'; '.join(lacking)}")
