"""A graph chosen from what nodes on hosts of their own can reach; blocked pairs are no edges."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from dlag_lab.network.namespaces import inside
from dlag_lab.network.network import Network
from dlag_lab.network.spec import NetworkSpec
from dlag_node.graphs.topology import parse_topology
from tests.cluster.meshes import command, read_until

pytestmark = pytest.mark.usefixtures("machine")

BOSS = "tcp://10.78.255.254:5555"
PATIENCE = 90.0  # seconds, for processes that start on a busy machine
Mesh = tuple[subprocess.Popen[str], list[subprocess.Popen[str]]]


@contextmanager
def surveyed(blocked: list[tuple[int, int]], nodes: int = 4) -> Iterator[Mesh]:
    """A coordinator that chooses the graph, and nodes of which some have no route to others."""
    complete = parse_topology(f"complete:{nodes}", seed=0)
    with Network(NetworkSpec(), complete) as hosts, ExitStack() as stack:

        def started(host: str, name: str, *flags: str) -> subprocess.Popen[str]:
            with inside(hosts.netns[host]):
                return stack.enter_context(command(name, *flags))

        for i, j in blocked:
            with inside(hosts.netns[f"node-{i:03d}"]):
                route = ["ip", "route", "add", "unreachable", f"10.77.0.{j + 1}/32"]
                subprocess.run(route, check=True)
        flags = ["--bind", BOSS, "--topology", f"measured:{nodes}", "--rounds", "3", "--insecure"]
        coordinator = started("coordinator", "dlag-coordinator", *flags)
        read_until(coordinator, "listening on")
        yield (
            coordinator,
            [
                started(f"node-{i:03d}", "dlag-node", "--coordinator", BOSS, "--id", str(i),
                        "--bind", f"tcp://10.77.0.{i + 1}:5600", "--insecure")
                for i in range(nodes)
            ],
        )  # fmt: skip


def test_a_pair_that_cannot_reach_each_other_is_no_edge_and_the_run_ends_well() -> None:
    blocked = [(2, 0), (3, 0), (3, 1)]
    with surveyed(blocked) as (coordinator, nodes):
        line = read_until(coordinator, "edges chosen")
        assert coordinator.wait(PATIENCE) == 0
        assert [node.wait(PATIENCE) for node in nodes] == [0] * 4
    edges = {(int(i), int(j)) for i, j in re.findall(r"(\d) (\d)(?:,|$)", line)}
    assert edges == {(0, 1), (1, 2), (2, 3)}


def test_where_no_graph_hangs_together_a_table_says_who_cannot_reach_whom() -> None:
    with surveyed([(3, 0), (3, 1), (3, 2)]) as (coordinator, nodes):
        _, said = coordinator.communicate(timeout=PATIENCE)
        assert coordinator.returncode == 1
        assert [node.wait(PATIENCE) for node in nodes] == [1] * 4
    assert "of 4 nodes only 3 hang together" in said
    for j in range(3):
        assert re.search(
            rf"^3 +{j} +tcp://10\.77\.0\.{j + 1}:5600 +.*No route to host$", said, re.M
        )
