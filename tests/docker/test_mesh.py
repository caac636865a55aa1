"""The image and the compose file: a mesh of containers ends with the simulator's bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.meshes import deeds, finish
from tests.docker.engine import Project, docker, in_image, read_logs_until

pytestmark = [pytest.mark.timeout(1_200), pytest.mark.usefixtures("image")]

MakeProject = Callable[..., Project]
SMALL = {"MESH_TOPOLOGY": "ring:4", "MESH_ROUNDS": "60", "MESH_SEED": "3"}


def exit_codes(project: Project, service: str) -> list[int]:
    return sorted(each["State"]["ExitCode"] for each in project.containers(service))


def test_a_container_starts_without_compiling() -> None:
    assert " 0 compiled, " in in_image("python", "-m", "dlag_node.solvers")


def test_nothing_in_the_image_runs_as_root_or_can_change_the_program() -> None:
    assert in_image("id", "-u").strip() not in ("", "0")
    assert in_image("sh", "-c", "test -w /opt/venv || echo kept").strip() == "kept"


def test_a_mesh_of_containers_has_the_bits_of_the_simulator(
    project: MakeProject, tmp_path: Path
) -> None:
    mesh = project(**SMALL, MESH_NODES="4")
    mesh.compose("up")
    nodes = mesh.containers("node")
    assert exit_codes(mesh, "node") == [0] * 4
    assert exit_codes(mesh, "coordinator") == [0]
    for each in [*nodes, *mesh.containers("coordinator")]:
        assert each["Config"]["User"] == "dlag"
        assert each["HostConfig"]["RestartPolicy"]["Name"] in ("", "no")
        assert each["HostConfig"]["Memory"] > 0
        assert each["HostConfig"]["PidsLimit"] > 0

    (tmp_path / "real").mkdir()
    docker("cp", f"{nodes[0]['Id']}:/records/.", str(tmp_path / "real" / "nodes"))
    finish("simulate", tmp_path / "simulated", topology="ring:4", rounds=60, seed=3)
    for node in range(4):
        name = f"nodes/node-{node:03d}.theta"
        expected = (tmp_path / "simulated" / name).read_bytes()
        assert len(expected) == 60 * 13 * 8
        assert (tmp_path / "real" / name).read_bytes() == expected
        assert deeds(tmp_path / "real", node) == deeds(tmp_path / "simulated", node)

    assert len(mesh.left()) == 4 + 1 + 2  # containers, a network, a volume
    mesh.compose("down", "--volumes")
    assert mesh.left() == []


def test_a_container_too_many_is_refused_and_all_end_when_told_to(project: MakeProject) -> None:
    mesh = project(**SMALL | {"MESH_ROUNDS": "1000000"}, MESH_NODES="4")
    mesh.compose("up", "--detach")
    first = {each["Id"] for each in mesh.containers("node")}
    read_logs_until(mesh.containers("coordinator")[0]["Id"], "all 4 nodes have started")

    mesh.compose("up", "--detach", "--no-recreate", "--scale", "node=5")
    (fifth,) = {each["Id"] for each in mesh.containers("node")} - first
    assert docker("wait", fifth).strip() == "1"
    assert "all 4 places are taken" in mesh.compose("logs", "node")
    assert all(each["State"]["Running"] for each in mesh.containers("node") if each["Id"] != fifth)

    mesh.compose("stop")
    ends = {each["State"]["ExitCode"] for each in mesh.containers("node")}
    assert ends <= {1, 143}  # told by a neighbor, or by the engine; none had to be killed
    assert not any(each["State"]["Running"] for each in mesh.containers("node"))
