"""Simulator, shuffled simulator and real processes agree bit for bit, and count alike."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from dlag_lab.launcher import Launcher
from tests.cluster.meshes import deeds, finish

COUNTED = (
    "rounds",
    "exchanges",
    "deltas_sent",
    "deltas_skipped",
    "tokens_sent",
    "quiet",
    "overdue",
    "slack_ratio",
    "bytes_payload",
    "bytes_frames",
    "sample_gradients",
    "suboptimality",
    "consensus_error",
    "theta_sha256",
)


DUAL = ("ssda", "msda", "dlag", "mdlag")
LAZY = ("mdlag-all", "lazy-extra", "lazy-exact-diffusion", "lazy-admm", "lazy-admm:form=i1")
OTHERS = ("extra", "exact-diffusion", "diging", "admm", "fgm", "cola", "dsba", "adfs", "tree")
SILENT = ("dlag", "mdlag", "adfs", "tree", *LAZY)  # now and then


@pytest.mark.grid
@pytest.mark.parametrize("topology", ["grid:5x5", "ring:6"])
@pytest.mark.parametrize("method", DUAL)
def test_processes_and_simulators_end_with_the_same_bits_by_the_dual_methods(
    method: str, topology: str, tmp_path: Path
) -> None:
    assert_same_bits(method, topology, tmp_path)


@pytest.mark.parametrize("method", [*OTHERS, *LAZY])
def test_processes_and_simulators_end_with_the_same_bits(method: str, tmp_path: Path) -> None:
    assert_same_bits(method, "ring:6", tmp_path)


def assert_same_bits(method: str, topology: str, tmp_path: Path) -> None:
    settings = {"method": method, "topology": topology, "rounds": 25, "seed": 3}
    simulated = finish("simulate", tmp_path / "simulated", **settings)
    shuffled = finish("simulate", tmp_path / "shuffled", shuffle=7, **settings)
    real = finish("mesh", tmp_path / "real", **settings)
    for field in COUNTED:
        assert simulated.summary[field] == shuffled.summary[field] == real.summary[field], field
    for node in range(simulated.nodes):
        expected = deeds(tmp_path / "simulated", node)
        assert deeds(tmp_path / "shuffled", node) == expected
        assert deeds(tmp_path / "real", node) == expected
    for field in ("deltas_skipped",):
        assert (simulated.summary[field] > 0) == (method in SILENT)


def test_a_target_ends_the_run_in_the_same_round_everywhere(tmp_path: Path) -> None:
    settings = {"method": "dlag:solver=newton,stop=exact:1e-10", "topology": "ring:5"}
    simulated = finish("simulate", tmp_path / "simulated", target=1e-4, **settings)
    real = finish("mesh", tmp_path / "real", target=1e-4, **settings)
    assert real.summary["rounds_to_target"] == simulated.summary["rounds_to_target"]
    assert real.rounds == simulated.rounds
    assert simulated.rounds < 5_000
    assert real.summary["theta_sha256"] == simulated.summary["theta_sha256"]


def test_killing_the_coordinator_after_the_start_changes_nothing(tmp_path: Path) -> None:
    settings = {"method": "dlag", "topology": "grid:3x3", "rounds": 40}
    killed = []

    def kill(launcher: Launcher) -> None:
        os.kill(launcher.pids["coordinator"], signal.SIGKILL)
        killed.append(launcher)

    simulated = finish("simulate", tmp_path / "simulated", **settings)
    real = finish("mesh", tmp_path / "real", started=kill, **settings)
    assert killed[0].exits["coordinator"] == -signal.SIGKILL
    assert real.summary["theta_sha256"] == simulated.summary["theta_sha256"]


def test_sparse_and_ridge_runs_agree_too(tmp_path: Path) -> None:
    lines = [
        f"{j % 5 - 2 + j / 100} {1 + j % 7}:{1 + j / 9} {9 + j % 22}:{-j / 7}" for j in range(40)
    ]
    data = tmp_path / "sparse.libsvm"
    data.write_text("\n".join(lines) + "\n", encoding="ascii")
    settings = {
        "method": "mdlag:solver=svrg,stop=relative:0.01",
        "problem": "ridge",
        "data": str(data),
        "topology": "path:4",
        "shards": "even",
        "rounds": 15,
    }
    simulated = finish("simulate", tmp_path / "simulated", **settings)
    real = finish("mesh", tmp_path / "real", **settings)
    assert real.summary["theta_sha256"] == simulated.summary["theta_sha256"]
