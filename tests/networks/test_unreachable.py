"""A node that advertises an address nobody reaches: the error says which, and tried from where."""

from __future__ import annotations

import re
import subprocess
from contextlib import ExitStack

import pytest

from dlag_lab.network.namespaces import inside
from dlag_lab.network.network import Network
from dlag_lab.network.spec import NetworkSpec
from dlag_node.graphs.topology import parse_topology
from tests.cluster.meshes import DEADLINE, command, read_until

pytestmark = pytest.mark.usefixtures("machine")

NOWHERE = "tcp://10.77.9.9:5600"  # in the network of the mesh, and nobody's


def test_the_error_names_the_address_that_was_tried_and_from_where() -> None:
    path = parse_topology("path:2", seed=0)
    with Network(NetworkSpec(), path) as hosts, ExitStack() as stack:

        def started(host: str, name: str, *flags: str) -> subprocess.Popen[str]:
            with inside(hosts.netns[host]):
                return stack.enter_context(command(name, *flags))

        flags = ["--bind", "tcp://10.78.255.254:5555", "--topology", "path:2", "--insecure"]
        coordinator = started("coordinator", "dlag-coordinator", *flags)
        read_until(coordinator, "listening on")
        shared = ["--coordinator", flags[1], "--neighbor-timeout", "2", "--insecure"]
        first = ["--id", "0", "--bind", "tcp://10.77.0.1:5600", "--advertise", NOWHERE]
        nodes = [
            started("node-000", "dlag-node", *shared, *first),
            started(
                "node-001", "dlag-node", *shared, "--id", "1", "--bind", "tcp://10.77.0.2:5600"
            ),
        ]
        said = [node.communicate(timeout=DEADLINE)[1] for node in nodes]
        assert [node.returncode for node in nodes] == [1, 1]
    called = f"neighbor 0 has not answered our calls to {NOWHERE} from tcp://10.77.0.2:5600"
    waited = f"neighbor 1 at tcp://10.77.0.2:5600 has not called us: we told it {NOWHERE}"
    assert f"at exchange 0 for neighbors [0]: {called}" in said[1]
    assert f"at exchange 0 for neighbors [1]: {waited}" in said[0]
    row = (
        rf"1 +0 +{re.escape(NOWHERE)} +tcp://10\.77\.0\.2:5600 +(No route to host|Connection timed)"
    )
    assert re.search(row, said[1]), said[1]
