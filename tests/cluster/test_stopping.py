"""Real processes that stop by themselves, when time is up, or when asked: all in one round."""

from __future__ import annotations

import json
import os
import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.plan import RunSettings
from dlag_lab.mesh import name_of
from dlag_lab.running import RUNNING, running
from dlag_lab.runs import Run, RunRequest
from dlag_node.errors import ConfigError
from tests.cluster.meshes import (
    DEADLINE,
    ENDLESS,
    NEVER,
    assert_gone,
    command,
    family,
    in_this_process,
    read_until,
)
from tests.cluster.test_survival import NODES, Killer, assert_undisturbed, survive

LONG = ["--rounds", str(ENDLESS), "--topology", "ring:4", "--no-figures"]
PATIENCE = 2 * DEADLINE


def rounds_of(out: Path, nodes: int) -> set[int]:
    """How many rounds each node recorded."""
    paths = [out / "nodes" / f"{name_of(node)}.jsonl" for node in range(nodes)]
    return {len(path.read_text(encoding="ascii").splitlines()) for path in paths}


def summary_of(out: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize(
    ("method", "kills"),
    [
        ("mdlag:K=2,solver=newton,stop=exact:1e-10", [(8, {2}), (20, {0, 1})]),
        ("tree", []),
    ],
)
def test_processes_come_to_rest_in_the_round_of_the_simulator(
    method: str, kills: list[tuple[int, set[int]]], tmp_path: Path
) -> None:
    """Killed and started again or not; the bits and the records, bytes included, are the same."""
    settings = RunSettings(method=method, topology=f"ring:{NODES}", rounds=3_000, tol=1e-2)
    request = RunRequest(
        settings=settings, mode="mesh", target=NEVER, out=tmp_path / "run", checkpoint=2
    )
    result = survive(request, Killer(*kills))
    assert result.summary["restarts"] == sum(len(nodes) for _, nodes in kills)
    assert result.summary["ended"] == "tol"
    assert result.rounds < 3_000
    assert rounds_of(tmp_path / "run", NODES) == {result.rounds}
    assert_undisturbed(result, request, tmp_path / "simulated")
    plain = replace(request, settings=replace(settings, tol=None, rounds=result.rounds))
    without = Run(replace(plain, mode="simulate", out=tmp_path / "plain"), view=Killer()).execute()
    # the words: at most a byte for each directed edge and round, and the deltas are the same
    more = result.summary["bytes_frames"] - without.summary["bytes_frames"]
    assert 0 < more <= 2 * NODES * result.rounds
    assert result.summary["theta_sha256"] == without.summary["theta_sha256"]


def test_a_run_that_is_asked_to_stop_stops_everywhere_and_reports(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with command("dlag", "run", *LONG, "--log-level", "info", "--out", str(out)) as run:
        read_until(run, "nodes are ready")
        others = family(run.pid)
        with command("dlag", "stop", str(out)) as stop:
            said, errors = stop.communicate(timeout=PATIENCE)
            assert stop.returncode == 0, errors
            assert f"asked process {run.pid} to stop the run in {out}" in said
        report, errors = run.communicate(timeout=PATIENCE)
        assert run.returncode == 0, errors
        assert_gone(others)
    assert summary_of(out)["ended"] == "asked"
    assert "it ended because somebody asked it to stop" in report
    assert len(rounds_of(out, 4)) == 1
    assert not (out / RUNNING).exists()
    with command("dlag", "stop", str(out)) as late:
        _, errors = late.communicate(timeout=PATIENCE)
        assert late.returncode == 2
        assert f"no run is under way in {out}" in errors


def test_a_simulation_can_be_asked_too(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with command("dlag", "simulate", *LONG, "--method", "dlag", "--out", str(out)) as run:
        records = out / "nodes" / "node-000.jsonl"
        while not (records.exists() and records.stat().st_size):
            assert run.poll() is None
        os.kill(run.pid, signal.SIGUSR1)
        _, errors = run.communicate(timeout=PATIENCE)
        assert run.returncode == 0, errors
    assert summary_of(out)["ended"] == "asked"
    assert len(rounds_of(out, 4)) == 1


@pytest.mark.parametrize("mode", ["run", "simulate"])
def test_time_that_is_up_ends_a_run(mode: str, tmp_path: Path) -> None:
    flags = [*LONG, "--method", "dlag", "--max-seconds", "0.5", "--out", str(tmp_path / "run")]
    with command("dlag", mode, *flags) as run:
        _, errors = run.communicate(timeout=PATIENCE)
        assert run.returncode == 0, errors
    summary = summary_of(tmp_path / "run")
    assert summary["ended"] == "max-seconds"
    assert isinstance(summary["seconds"], float)
    assert summary["seconds"] >= 0.5
    assert len(rounds_of(tmp_path / "run", 4)) == 1


def test_a_signal_to_any_node_by_hand_ends_them_all_after_the_same_round(tmp_path: Path) -> None:
    """The coordinator is gone by then."""
    bind = ["--bind", "tcp://127.0.0.1:*", "--topology", "path:3", "--rounds", str(ENDLESS)]
    with command("dlag-coordinator", *bind) as coordinator:
        line = read_until(coordinator, "listening on tcp://")
        address = line.split("listening on ")[1].split()[0]
        node = ["--coordinator", address, "--out", str(tmp_path / "nodes"), "--id"]
        with (
            command("dlag-node", *node, "0") as first,
            command("dlag-node", *node, "1") as second,
            command("dlag-node", *node, "2") as third,
        ):
            nodes = [first, second, third]
            read_until(coordinator, "all 3 nodes have started")
            coordinator.kill()
            third.send_signal(signal.SIGUSR1)
            said = [each.communicate(timeout=PATIENCE)[1] for each in nodes]
            assert [each.returncode for each in nodes] == [0, 0, 0], said
    ends = {re.findall(r"done: (\d+) rounds in .* \((.*)\)", words)[0] for words in said}
    assert len(ends) == 1
    assert ends.pop()[1] == "asked"
    assert len(rounds_of(tmp_path, 3)) == 1


def test_a_folder_is_one_process_at_a_time_and_a_dead_one_is_told(tmp_path: Path) -> None:
    with running(tmp_path), pytest.raises(ConfigError, match="another process is at this run"):
        running(tmp_path).__enter__()
    (tmp_path / RUNNING).write_text(f"{os.getpid()}\n", encoding="ascii")  # killed: no lock is held
    with command("dlag", "stop", str(tmp_path)) as stop:
        _, errors = stop.communicate(timeout=PATIENCE)
        assert stop.returncode == 2
        assert "its process has ended" in errors


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--tol=0", "tol = 0.0: expected a positive number"),
        ("--max-seconds=-1", "max_seconds = -1"),
    ],
)
@pytest.mark.usefixtures("process_as_before")
def test_a_wrong_value_is_named(
    flag: str, words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert in_this_process("dlag", "simulate", flag, "--out", str(tmp_path / "run")) == 2
    assert words in capfd.readouterr().err
