"""Keys of a mesh of containers: strangers on its network stay outside, and no secret leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import zmq
from zmq.utils import z85

from tests.docker.bits import assert_same_bits
from tests.docker.conftest import MakeProject
from tests.docker.engine import IMAGE, RING, Project, docker, fetch, in_image, logs, read_logs_until

pytestmark = [pytest.mark.timeout(1_200), pytest.mark.usefixtures("image")]

JOIN = """
printf '%s' "$1" >/tmp/coordinator.pub
python -m dlag_node.trust pair /keys/own.key
exec dlag-node --coordinator tcp://coordinator:5555 --coordinator-key /tmp/coordinator.pub \\
  --key /keys/own.key --bind tcp://0.0.0.0:5600
"""
LIE = """
import sys
import zmq
from dlag_node.trust.curve import call_with
from dlag_node.trust.keys import new_pair
from dlag_node.wire.observing import Fallen
from dlag_node.wire.schema import pack
from zmq.utils.monitor import recv_monitor_message
with zmq.Context() as context, context.socket(zmq.DEALER) as liar:
    liar.linger = 0
    call_with(liar, new_pair(), bytes.fromhex(sys.argv[1]))
    outcomes = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    monitor = liar.get_monitor_socket(outcomes)
    liar.connect("tcp://report:5556")
    liar.send(pack(Fallen(0, "a lie")))
    event = recv_monitor_message(monitor)["event"]
    print("let in" if event == zmq.EVENT_HANDSHAKE_SUCCEEDED else "not admitted")
    liar.disable_monitor()
"""


def test_no_stranger_takes_a_free_place_and_no_secret_leaves_its_container(
    project: MakeProject, tmp_path: Path
) -> None:
    mesh = project(**RING, MESH_NODES="3")
    mesh.compose("up", "--detach")
    coordinator, report = mesh.one("coordinator"), mesh.one("report")
    read_logs_until([coordinator], "waiting for 1 more nodes: ring:4 needs 4")
    post, other = (
        fetch(each, f"/trust/{name}.pub").decode().strip()
        for each, name in ((coordinator, "coordinator"), (report, "report"))
    )
    # public keys are no secrets: these strangers have them, and pairs of their own
    assert "our key is not admitted there" in mesh.stranger("sh", "-c", JOIN, "sh", post)
    assert mesh.stranger("python", "-c", LIE, other).strip() == "not admitted"
    # and this one has none
    bare = mesh.stranger("dlag-node", "--insecure", "--coordinator", "tcp://coordinator:5555")
    assert "one of us has keys and the other has none" in bare
    for each in (coordinator, report):
        read_logs_until([each], "which is not admitted")
    assert " 4 of 4 nodes have joined" not in logs(coordinator)

    # the container that was missing belongs
    mesh.compose("up", "--detach", "--no-recreate", "--scale", "node=4")
    assert docker("wait", report["Id"]).strip() == "0"
    assert docker("wait", coordinator["Id"]).strip() == "0"
    for each in (coordinator, report):
        assert "hand-shakes were refused" in logs(each)
    assert "a lie" not in logs(report)
    assert_same_bits(tmp_path, nodes=4, topology="ring:4", method="dlag", seed=3)
    assert_secrets_are_kept(mesh, tmp_path / "results")


def assert_secrets_are_kept(mesh: Project, results: Path) -> None:
    """No container's secret key is anywhere but in that container."""
    containers = [c for name in ("coordinator", "report", "node") for c in mesh.containers(name)]
    secrets = [bytes.fromhex(fetch(each, "/keys/own.key").decode()) for each in containers]
    assert len(set(secrets)) == len(containers) == 6
    told = [docker("history", "--no-trunc", IMAGE), docker("image", "inspect", IMAGE)]
    told += [json.dumps(containers), *map(logs, containers)]
    shared = fetch(containers[-1], "/mesh") + fetch(containers[-1], "/trust")
    shared += b"".join(path.read_bytes() for path in results.rglob("*") if path.is_file())
    everything = "\n".join(told).encode() + shared
    for secret in secrets:
        public = z85.decode(zmq.curve_public(z85.encode(secret)))
        assert public.hex().encode() in shared  # what is there can be found
        for form in (secret, secret.hex().encode(), z85.encode(secret)):
            assert form not in everything
    assert in_image("find", "/keys", "/trust", "/mesh", "-type", "f") == ""
