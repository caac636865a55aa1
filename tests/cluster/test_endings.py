"""Every process ends cleanly, with its exit code, whichever of them ends first."""

from __future__ import annotations

import os
import re
import signal
import socket
from pathlib import Path

import psutil
import pytest

from tests.cluster.meshes import (
    DEADLINE,
    ENDLESS,
    assert_gone,
    command,
    family,
    finish,
    in_this_process,
    read_until,
)

LONG = ["--rounds", str(ENDLESS), "--topology", "ring:4", "--no-figures", "--log-level", "info"]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"]
)
def test_a_signal_ends_the_whole_mesh(number: int, code: int, tmp_path: Path) -> None:
    with command("dlag", "run", *LONG, "--out", str(tmp_path / "run")) as run:
        read_until(run, "nodes are ready")
        others = family(run.pid)
        assert len(others) == 6  # nursery, coordinator, four nodes
        run.send_signal(number)
        assert run.wait(DEADLINE) == code
        assert_gone(others)


@pytest.mark.parametrize("victim", ["dlag", "nursery", "node"])
def test_killing_any_process_leaves_no_orphan(victim: str, tmp_path: Path) -> None:
    with command("dlag", "run", *LONG, "--out", str(tmp_path / "run")) as run:
        read_until(run, "nodes are ready")
        others = family(run.pid)
        nursery = psutil.Process(run.pid).children()[0]
        target = {"dlag": run.pid, "nursery": nursery.pid, "node": nursery.children()[-1].pid}
        os.kill(target[victim], signal.SIGKILL)
        code = run.wait(DEADLINE)
        assert code == (-signal.SIGKILL if victim == "dlag" else 1)
        assert_gone(others)
        if victim == "node":
            said = "dlag: ProcessDied: node-003: killed by signal 9 (log: "
            assert said in run.communicate()[1]


def test_a_node_that_is_asked_to_end_is_named_and_not_those_that_it_told(tmp_path: Path) -> None:
    with command("dlag", "run", *LONG, "--out", str(tmp_path / "run")) as run:
        read_until(run, "nodes are ready")
        others = family(run.pid)
        others[-1].terminate()
        assert run.wait(DEADLINE) == 1
        assert "dlag: ProcessDied: node-003: ended by signal 15 (log: " in run.communicate()[1]
        assert_gone(others)


def test_a_diverging_run_ends_with_what_to_change(tmp_path: Path) -> None:
    flags = ["--method", "dlag:eta_beta=50", "--topology", "ring:4", "--rounds", "5000"]
    with command("dlag", "run", *flags, "--out", str(tmp_path / "run")) as run:
        others = family(run.pid)
        _, errors = run.communicate(timeout=60)
        assert run.returncode == 1
        assert re.search("^dlag: ConvergenceError: node-00[0-3]: the run diverges", errors, re.M)
        assert "lower gamma" in errors
        assert re.search(r"\(log: .*/logs/node-00[0-3]\.log\)$", errors, re.M)
        assert_gone(others)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--method", "dlga"], "unknown method 'dlga': expected one of ssda, msda, dlag, mdlag"),
        (["--method", "dlag:gama=1"], "dlag has no parameter 'gama'"),
        (["--topology", "grid:5"], "grid:5"),
        (["--weights", "heavy"], "heavy"),
        (["--shards", "uneven:5,1"], "uneven:5,1"),
        (["--data", "/nowhere/at/all"], "/nowhere/at/all"),
        (["--lambda", "-1"], "lambda = -1"),
        (["--rounds", "0"], "rounds = 0"),
        (["--target", "-1"], "target = -1"),
        (["--preset", "best"], "preset 'best': expected one of paper, theory"),
    ],
)
@pytest.mark.usefixtures("process_as_before")
def test_a_wrong_value_is_named_with_the_right_ones(
    flags: list[str], words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert in_this_process("dlag", "simulate", *flags, "--out", str(tmp_path / "run")) == 2
    assert words in capfd.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_process_with_a_wrong_value_ends_without_a_traceback(tmp_path: Path) -> None:
    with command("dlag", "run", "--topology", "grid:5", "--out", str(tmp_path / "run")) as run:
        _, errors = run.communicate(timeout=DEADLINE)
        assert run.returncode == 2
        assert "grid:5" in errors
        assert "Traceback" not in errors
    assert not (tmp_path / "run").exists()


def test_a_target_out_of_reach_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    flags = ["--rounds", "5", "--target", "1e-9", "--no-figures", "--topology", "ring:4"]
    with command("dlag", "simulate", *flags, "--out", str(tmp_path / "run")) as run:
        _, errors = run.communicate(timeout=60)
        assert run.returncode == 3
        assert "target 1e-09 not reached in 5 rounds" in errors


@pytest.fixture
def port() -> int:
    """A port that is free while nobody else asks for it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
    return number


def test_a_mesh_started_by_hand_nodes_first_gives_the_same_bits(port: int, tmp_path: Path) -> None:
    address = f"tcp://127.0.0.1:{port}"
    expected = finish("simulate", tmp_path / "simulated", topology="path:3", rounds=20)
    records = tmp_path / "by-hand"
    node = ["--coordinator", address, "--out", str(records)]
    with (
        command("dlag-node", *node, "--id", "2"),
        command("dlag-node", *node) as second,
        command("dlag-node", *node, env={**os.environ, "DLAG_NEIGHBOR_TIMEOUT": "20"}) as third,
        command(
            "dlag-coordinator", "--bind", address, "--topology", "path:3", "--rounds", "20"
        ) as coordinator,
    ):
        assert coordinator.wait(DEADLINE) == 0
        assert second.wait(DEADLINE) == third.wait(DEADLINE) == 0
    for i in range(3):
        by_hand = (records / f"node-{i:03d}.theta").read_bytes()
        assert by_hand == (tmp_path / "simulated" / "nodes" / f"node-{i:03d}.theta").read_bytes()
    assert expected.rounds == 20


def test_a_method_that_nodes_do_not_know_fails_everywhere_with_the_reason(port: int) -> None:
    address = f"tcp://127.0.0.1:{port}"
    with (
        command(
            "dlag-coordinator", "--bind", address, "--topology", "path:2", "--method", "sgd"
        ) as c,
        command("dlag-node", "--coordinator", address) as first,
        command("dlag-node", "--coordinator", address) as second,
    ):
        codes = {first.wait(DEADLINE), second.wait(DEADLINE)}
        assert c.wait(DEADLINE) == 1
        assert codes <= {1, 2}
        assert "unknown method 'sgd'" in c.communicate()[1]


def test_a_silent_neighbor_ends_in_an_error_within_the_deadline(tmp_path: Path) -> None:
    flags = [*LONG, "--neighbor-timeout", "2", "--out", str(tmp_path / "run")]
    with command("dlag", "run", *flags) as run:
        read_until(run, "nodes are ready")
        others = family(run.pid)
        stopped = others[-1]
        stopped.suspend()
        assert run.wait(DEADLINE) == 1
        errors = run.communicate()[1]
        assert re.search("^dlag: NeighborTimeout: node-00[0-2]: .* for neighbors", errors, re.M)
        assert_gone(others)


def test_a_port_in_use_is_named(port: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with command("dlag-coordinator", "--bind", f"tcp://127.0.0.1:{port}") as coordinator:
            _, errors = coordinator.communicate(timeout=DEADLINE)
            assert coordinator.returncode == 2
            assert f"cannot listen on tcp://127.0.0.1:{port}" in errors


def by_hand(port: int, *flags: str) -> tuple[list[str], list[str]]:
    """The flags of a coordinator of two nodes on this port, and of its nodes."""
    address = f"tcp://127.0.0.1:{port}"
    return ["--bind", address, "--topology", "path:2", *flags], ["--coordinator", address]


def test_a_node_that_is_asked_to_end_tells_the_others(port: int) -> None:
    coordinator_flags, node_flags = by_hand(port, "--rounds", str(ENDLESS))
    with (
        command("dlag-coordinator", *coordinator_flags) as coordinator,
        command("dlag-node", *node_flags) as first,
        command("dlag-node", *node_flags) as second,
    ):
        read_until(coordinator, "all 2 nodes have started")
        first.terminate()
        assert first.wait(DEADLINE) == 143
        assert second.wait(DEADLINE) == 1
        assert "was asked to end" in second.communicate()[1]
        assert coordinator.wait(DEADLINE) == 1
        assert "was asked to end" in coordinator.communicate()[1]


def test_a_full_disk_ends_the_run_with_the_reason(port: int, tmp_path: Path) -> None:
    (tmp_path / "node-000.jsonl").symlink_to("/dev/full")
    coordinator_flags, node_flags = by_hand(port, "--rounds", str(ENDLESS))
    with (
        command("dlag-coordinator", *coordinator_flags) as coordinator,
        command("dlag-node", *node_flags, "--out", str(tmp_path), "--id", "0") as full,
        command("dlag-node", *node_flags, "--id", "1") as other,
    ):
        assert full.wait(DEADLINE) == 1
        errors = full.communicate()[1]
        assert "StorageError: cannot write" in errors
        assert "No space left on device" in errors
        assert "Traceback" not in errors
        assert other.wait(DEADLINE) == 1
        assert coordinator.wait(DEADLINE) == 1
        assert "No space left on device" in coordinator.communicate()[1]
