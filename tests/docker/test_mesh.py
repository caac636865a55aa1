"""The image and the compose file: meshes of containers, with the simulator's bits."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.docker.bits import assert_same_bits
from tests.docker.conftest import MakeProject
from tests.docker.engine import (
    RING,
    Project,
    address_of,
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


def test_one_command_takes_25_containers_to_the_target_and_leaves_the_report_on_the_host(
    project: MakeProject, tmp_path: Path
) -> None:
    mesh = project(MESH_NODES="26")  # one too many
    one_command(mesh, tmp_path, places=25)
    summary = assert_same_bits(tmp_path, nodes=25)
    assert summary["suboptimality"] <= 1e-7
    assert summary["nodes"] == 25
    assert summary["wire"]["counted_by"] == "sockets"
    assert summary["wire"]["bytes"] > summary["bytes_sent"]
    down(mesh, containers=29)


def test_the_other_compose_does_the_same_and_up_is_always_a_new_run(
    other_project: MakeProject, tmp_path: Path
) -> None:
    mesh = other_project(**RING, MESH_NODES="5")
    one_command(mesh, tmp_path, places=4)
    assert_same_bits(tmp_path, nodes=4, topology="ring:4", method="dlag", seed=3)
    (tmp_path / "results" / "summary.json").unlink()
    mesh.compose("up")  # the same containers: their states and posts are of an earlier run now
    said = logs(mesh.one("prepare"))
    assert "cleared 5 state folders of an earlier run" in said
    assert "cleared 7 keys of an earlier run" in said
    shutil.rmtree(tmp_path / "simulated")
    assert_same_bits(tmp_path, nodes=4, topology="ring:4", method="dlag", seed=3)
    down(mesh, containers=8)


def one_command(mesh: Project, folder: Path, *, places: int) -> None:
    """`up` with one node too many: everybody ends well, and the results belong to their owner."""
    results = folder / "results"
    if os.geteuid() == 0:
        os.chown(results, SOMEBODY, SOMEBODY)
    mesh.compose("up")
    for service in ("coordinator", "report", "prepare"):
        assert exit_codes(mesh, service) == [0], service
    nodes = mesh.containers("node")
    assert exit_codes(mesh, "node") == [0] * (places + 1)
    said = [logs(each) for each in nodes]
    not_needed = f"not needed: all {places} places of the run are taken"
    assert sum(not_needed in each for each in said) == 1
    assert f"more nodes than the {places} of" in logs(mesh.one("coordinator"))
    assert "final theta, SHA-256" in logs(mesh.one("report"))
    for each in nodes:
        assert each["Config"]["User"] == "dlag"
        assert each["HostConfig"]["RestartPolicy"]["Name"] == "on-failure"
        assert each["HostConfig"]["Memory"] > 0
        assert each["HostConfig"]["PidsLimit"] > 0
    assert (results / "report.txt").is_file()
    assert (results / "figures" / "convergence.png").is_file()
    assert {path.stat().st_uid for path in results.rglob("*")} == {results.stat().st_uid}


def down(mesh: Project, *, containers: int) -> None:
    """`down` leaves nothing of all that there was."""
    assert len(mesh.left()) == containers + 3  # a network, two volumes
    mesh.compose("down", "--volumes")
    assert mesh.left() == []


def test_a_mesh_survives_an_interruption_its_coordinator_a_killed_node_and_a_cut_one(
    project: MakeProject, tmp_path: Path
) -> None:
    mesh = project(**RING, MESH_NODES="4", MESH_NETWORK="delay=10ms,jitter=2ms")
    mesh.compose("up", "--detach")
    report, nodes = mesh.one("report"), mesh.containers("node")
    hold_when_ready(report)
    docker("stop", mesh.one("coordinator")["Id"])  # it is not needed any more
    mesh.compose("stop", "--timeout", "3")
    assert not (tmp_path / "results" / "summary.json").exists()

    with mesh.guests(6):  # they take the addresses that everybody had
        mesh.compose("restart", "report", "node")
        hold_when_ready(report, times=2)
    assert not set(map(address_of, nodes)) & set(map(address_of, mesh.containers("node")))
    for each in nodes:
        assert logs(each).count(" again, by /mesh/state/") == 1  # nobody began anew
    killed, cut = mesh.containers("node")[:2]
    kill_process(killed)
    read_logs_until([killed], " again, by /mesh/state/", times=2)
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


def hold_when_ready(report: dict[str, Any], *, times: int = 1) -> None:
    """Stop the report when all nodes are ready: they go two blocks of rounds further at most."""
    read_logs_until([report], "4 nodes are ready", times=times)
    docker("kill", "--signal", "STOP", report["Id"])


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
