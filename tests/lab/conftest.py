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
            startup={"seconds_to_ready": 1.25, "cpu_seconds_nodes": 0.5},
            memory={"resident_bytes_mean": 71_500_000, "resident_bytes_max": 80_000_000},
        )
    )
    return folder.load()


@pytest.fixture(scope="session")
def mdlag(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    path = tmp_path_factory.mktemp("lab") / "mdlag"
    run = asked(method="mdlag", mode="simulate", target=1e-30)
    return write_run(path, run, rounds=60, K=4).load()
