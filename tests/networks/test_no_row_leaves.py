"""A packet capture of a whole run, in the clear: what nodes hold themselves is not in it.

The same search finds every row where a coordinator hands out the samples, so it can fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from dlag_node.data import Agreement, Table, agree, summarise
from dlag_node.problems import LOGISTIC, rows_of
from tests.cluster.meshes import command, read_until
from tests.networks.capture import captured_host
from tests.networks.rows import forms, telltales

RNG = np.random.default_rng(29)
SIZES = (20, 15, 12)
X = 100 + RNG.normal(size=(sum(SIZES), 6)) * [1, 10, 100, 1, 10, 100]
LABELS = np.where(RNG.normal(size=len(X)) + (X[:, 0] - 100) > 0, 1.0, 0.0)
PARTS = np.split(np.arange(len(X)), np.cumsum(SIZES)[:-1])
DEADLINE = 120.0  # seconds for four processes to start, run and end, on a busy machine
FLAGS = ["--topology=path:3", "--rounds=40", "--bind=tcp://127.0.0.1:*"]

pytestmark = pytest.mark.usefixtures("machine")


def agreed(scale: str) -> Agreement:
    said = {
        f"node {i}": summarise(Table(rows_of(X[part]), LABELS[part]), scale, who="it")
        for i, part in enumerate(PARTS)
    }
    return agree(said, loss=LOGISTIC, scale=scale, intercept=0.0)


def given_away(scale: str) -> Iterator[bytes]:
    """What no stream may have: samples, raw and scaled, but for values that a scaling tells."""
    scaled = agreed(scale).rows(rows_of(X)).matrix()
    for part in PARTS:
        told = {*X[part].min(axis=0), *X[part].max(axis=0)} if scale == "minmax" else set()
        for values in (X[part], scaled[part]):
            yield from telltales(values, told)


def run(coordinator_flags: list[str], node_flags: list[list[str]]) -> list[bytes]:
    """A whole run on a host of its own; returns all that crossed its loopback."""
    with captured_host() as capture, ExitStack() as stack:
        try:
            coordinator = stack.enter_context(
                command("dlag-coordinator", *FLAGS, *coordinator_flags)
            )
            line = read_until(coordinator, "listening on tcp://")
            address = line.split("listening on ")[1].split()[0]
            processes = [coordinator]
            for i, flags in enumerate(node_flags):
                argv = ["--coordinator", address, "--id", str(i), *flags]
                processes.append(stack.enter_context(command("dlag-node", *argv)))
            for process in processes:
                _, text = process.communicate(timeout=DEADLINE)
                assert process.returncode == 0, text
        finally:
            streams = capture.end()
    assert sum(map(len, streams)) > 5_000  # it did see the run
    return streams


def write_csv(path: Path, part: np.ndarray) -> Path:
    lines = np.column_stack([X[part], LABELS[part]]).tolist()
    path.write_text("\n".join(["a,b,c,d,e,f,y", *(",".join(map(repr, each)) for each in lines)]))
    return path


@pytest.mark.parametrize(("scale", "method"), [("minmax", "tree"), ("standard", "dlag")])
def test_nothing_that_a_node_holds_is_in_a_capture_of_the_run(
    tmp_path: Path, scale: str, method: str
) -> None:
    files = [write_csv(tmp_path / f"{i}.csv", part) for i, part in enumerate(PARTS)]
    flags = [["--data", str(each), "--label", "y", "--scale", scale] for each in files]
    streams = run(["--data=nodes", f"--scale={scale}", f"--method={method}"], flags)
    for telltale in given_away(scale):
        assert not any(telltale in stream for stream in streams), telltale
    if scale == "minmax":  # what was agreed to be told is there: the search would see it
        lowest = X[PARTS[1]].min(axis=0).astype("<f8").tobytes()
        assert any(lowest in stream for stream in streams)


def test_the_search_finds_every_row_where_they_are_handed_out(tmp_path: Path) -> None:
    everything = write_csv(tmp_path / "all.csv", np.arange(len(X)))
    streams = run(["--data", str(everything), "--label=y", "--scale=minmax"], [[]] * 3)
    for row in X:
        assert any(each in stream for each in forms(row) for stream in streams)
