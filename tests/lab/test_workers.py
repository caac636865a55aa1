"""Every run builds its engines once, and who only asks for constants builds none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

from coordinator.plan import Plan, RunSettings
from dlag_lab.cli import app
from dlag_lab.preparing import check
from dlag_lab.replan import replan
from dlag_lab.runs import Run, RunRequest
from dlag_lab.theory import theory_of
from dlag_lab.training import train
from dlag_lab.workers import Workers
from dlag_node.errors import ConfigError
from dlag_node.process import run_command
from dlag_node.rounds import Engine

NODES = 4
SETTINGS = RunSettings(method="dlag", topology=f"ring:{NODES}", rounds=6)


@contextmanager
def counted() -> Iterator[list[int]]:
    """How many engines this process makes meanwhile, by the interpreter's own account."""
    made: list[int] = []
    code: CodeType = Engine.__init__.__code__

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is code:
            made.append(frame.f_locals["node"])

    sys.setprofile(look)
    try:
        yield made
    finally:
        sys.setprofile(None)


def request(out: Path, **change: Any) -> RunRequest:
    return RunRequest(
        settings=SETTINGS, **({"mode": "simulate", "target": None, "out": out} | change)
    )


def test_a_simulated_run_builds_each_engine_once(tmp_path: Path) -> None:
    with counted() as made:
        Run(request(tmp_path / "run")).execute()
    assert sorted(made) == [*range(NODES)]


def test_who_only_looks_on_a_mesh_builds_what_tells_the_parameters(tmp_path: Path) -> None:
    with counted() as made:
        Run(request(tmp_path / "run", mode="mesh", checkpoint=1)).execute()
    assert made == [0]

    with counted() as made:
        replan(tmp_path / "run", "3", tmp_path / "less")
    # each of the nodes that are left as it was, and as it begins
    assert sorted(made) == sorted([0, 1, 2] * 2)


def test_constants_come_without_an_engine(tmp_path: Path) -> None:
    with counted() as made:
        workers = Workers(Plan(SETTINGS))
        assert len(workers.problems) == NODES
        assert len(workers.config) == 64
    assert made == []
    with counted() as made:
        theory_of(Plan(SETTINGS), eps=1e-7)
    assert made == [0]
    with counted() as made:
        check(request(tmp_path, mode="referee"))
    assert made == [0]


def test_a_comparison_builds_the_engines_of_its_runs_and_tries_each_method_once(
    tmp_path: Path,
) -> None:
    argv = ["compare", "--methods", "ssda,dlag", "--rounds", "3", "--no-figures"]
    argv += ["--topology", f"ring:{NODES}", "--out", str(tmp_path)]
    with counted() as made:
        assert run_command(app, argv, "dlag") == 0
    assert len(made) == 2 * NODES + 2


def test_an_estimator_builds_each_engine_once() -> None:
    X = np.random.default_rng(3).normal(size=(40, 3))
    settings = replace(SETTINGS, data="memory", shards="even")
    with counted() as made:
        train(X, np.where(X[:, 0] > 0, 1.0, -1.0), settings, backend="simulator", tol=1e-6)
    assert sorted(made) == [*range(NODES)]


@pytest.mark.parametrize(
    "method", ["dlag:solver=no", "ssda:solver=closed", "ssda:stop=certified:5e-324", "adfs:edges=0"]
)
def test_what_one_worker_refuses_all_of_them_do(method: str) -> None:
    workers = Workers(Plan(replace(SETTINGS, method=method, lam=1e-6)))
    said = set()
    for node in range(NODES):
        with pytest.raises(ConfigError) as caught:
            workers.engine(node)
        said.add(str(caught.value))
    assert len(said) == 1
    with pytest.raises(ConfigError):
        workers.check()


def test_another_method_s_workers_have_the_same_problems_and_another_configuration() -> None:
    workers = Workers(Plan(SETTINGS))
    other = workers.by("ssda")
    assert other.problems is workers.problems
    assert other.config == Workers(Plan(replace(SETTINGS, method="ssda"))).config
    assert other.config != workers.config
    assert other.engine(0).method.parameters != workers.engine(0).method.parameters
