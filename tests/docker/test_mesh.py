"""The image and the compose file: meshes of containers, with the simulator's bits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.docker.bits import assert_same_bits
from tests.docker.conftest import MakeProject
from tests.docker.engine import (
    RING,
    Project,
    docker,
    in_image,
    kill_process,
    logs,
    plug,
    read_logs_until,
)

pytestmark = [pytest.mark.timeout(1_200), pytest.mark.usefixtures("image")]

SOMEBODY = 1234  # a user of the host


def exit_codes(project: Project, service: str) -> list[int]:
    return sorted(each["State"]["ExitCode"] for each in project.containers(service))


def test_a_container_starts_without_compiling() -> None:
    assert " 0 compiled, " in in_image("python", "-m", "dlag_node.solvers")


def test_nothing_in_the_image_runs_as_root_or_can_change_the_program() -> None:
    assert in_image("id", "-u").strip() not in ("", "0")
    assert in_image("sh", "-c", "test -w /opt/venv || echo kept").strip() == "kept"


def test_one_command_leaves_the_report_on_the_host(
    any_project: MakeProject, tmp_path: Path
) -> None:
    mesh = any_project(**RING, MESH_NODES="5")  # one too many
    if os.geteuid() == 0:
        os.chown(tmp_path / "results", SOMEBODY, SOMEBODY)
    mesh.compose("up")
    for service, containers in (("coordinator", 1), ("node", 5), ("report", 1), ("prepare", 1)):
        assert exit_codes(mesh, service) == [0] * containers, service
    nodes = mesh.containers("node")
    said = [logs(each) for each in nodes]
    assert sum("not needed: all 4 places of the run are taken" in each for each in said) == 1
    assert "more nodes than the 4 of ring:4" in logs(mesh.one("coordinator"))
    assert "final theta, SHA-256" in logs(mesh.one("report"))
    for each in nodes:
        assert each["Config"]["User"] == "dlag"
        assert each["HostConfig"]["RestartPolicy"]["Name"] == "on-failure"
        assert each["HostConfig"]["Memory"] > 0
        assert each["HostConfig"]["PidsLimit"] > 0

    assert_same_bits(tmp_path, nodes=4, topology="ring:4", method="dlag", seed=3)
    results = tmp_path / "results"
    assert (results / "report.txt").is_file()
    assert (results / "figures" / "convergence.png").is_file()
    assert {path.stat().st_uid for path in results.rglob("*")} == {results.stat().st_uid}

    assert len(mesh.left()) == 8 + 3  # containers, a network, two volumes
    mesh.compose("down", "--volumes")
    assert mesh.left() == []


def test_a_grid_of_25_containers_reaches_the_target(project: MakeProject, tmp_path: Path) -> None:
    mesh = project()
    mesh.compose("up")
    assert exit_codes(mesh, "node") == [0] * 25
    summary = assert_same_bits(tmp_path, nodes=25)
    assert summary["suboptimality"] <= 1e-7
    assert summary["nodes"] == 25


def test_a_mesh_survives_its_coordinator_a_killed_node_and_a_cut_one(
    project: MakeProject, tmp_path: Path
) -> None:
    mesh = project(**RING, MESH_NODES="4", MESH_NETWORK="delay=10ms,jitter=2ms")
    mesh.compose("up", "--detach")
    report, nodes = mesh.one("report"), mesh.containers("node")
    read_logs_until([report], "4 nodes are ready")
    docker(
        "kill", "--signal", "STOP", report["Id"]
    )  # nobody goes further than two blocks of rounds meanwhile
    docker("stop", mesh.one("coordinator")["Id"])
    killed, cut = nodes[0], nodes[1]
    kill_process(killed)
    read_logs_until([killed], " again, by /mesh/state/")
    plug(cut, up=False)
    docker("kill", "--signal", "CONT", report["Id"])
    read_logs_until(nodes, "waiting for neighbors [")
    plug(cut, up=True)

    assert docker("wait", report["Id"]).strip() == "0"
    for each in nodes:
        assert docker("wait", each["Id"]).strip() == "0"
    restarts = {each["Id"]: each["RestartCount"] for each in mesh.containers("node")}
    assert restarts == {each["Id"]: int(each["Id"] == killed["Id"]) for each in nodes}
    summary = assert_same_bits(tmp_path, nodes=4, topology="ring:4", method="dlag", seed=3)
    assert summary["seconds"] >= 0.008 * summary["exchanges"]
    assert "network delay=10ms,jitter=2ms" in logs(mesh.one("report"))
    # the gate was made by root, but no node is
    assert all("packets to and from port 5600" in logs(each) for each in nodes)


def test_an_interrupted_mesh_goes_on_and_up_begins_anew(
    project: MakeProject, tmp_path: Path
) -> None:
    mesh = project(**RING, MESH_NODES="4", MESH_NETWORK="delay=10ms")
    mesh.compose("up", "--detach")
    read_logs_until(mesh.containers("report"), "4 nodes are ready")
    mesh.compose("stop")
    assert not (tmp_path / "results" / "summary.json").exists()
    mesh.compose("start", "report", "node")
    assert docker("wait", mesh.one("report")["Id"]).strip() == "0"
    assert_same_bits(tmp_path, nodes=4, topology="ring:4", method="dlag", seed=3)


@pytest.mark.parametrize(
    ("setting", "words"),
    [("MESH_METHOD", "unknown method 'nonsense'"), ("MESH_TOPOLOGY", "nonsense")],
)
def test_wrong_settings_end_before_a_node_has_started(
    project: MakeProject, setting: str, words: str
) -> None:
    mesh = project(**RING | {setting: "nonsense"})
    assert mesh.attempt("up").returncode != 0
    assert words in logs(mesh.one("prepare"))
    assert exit_codes(mesh, "prepare") == [2]
    assert not any(each["State"]["StartedAt"] > "0002" for each in mesh.containers("node"))
