"""Runs that several tests only read."""

from __future__ import annotations

import pytest

from dlag_lab.result import RunResult
from dlag_lab.summary import summarise
from tests.lab.synthetic import asked, write_run


@pytest.fixture(scope="session")
def dlag(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = write_run(tmp_path_factory.mktemp("lab") / "dlag")
    result = folder.load()
    folder.write_summary(
        summarise(
            result.run,
            result.records,
            result.trajectory,
            seconds=2.5,
            bytes_control=4321,
            theta_sha256="ab" * 32,
            startup={"seconds": 1.25},
            memory={"node_peak_mb": 71.5},
        )
    )
    return folder.load()


@pytest.fixture(scope="session")
def mdlag(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    path = tmp_path_factory.mktemp("lab") / "mdlag"
    run = asked(method="mdlag", mode="simulate", target=1e-30)
    return write_run(path, run, rounds=60, K=4).load()
