"""Whole runs on hosts of their own: the simulator's bits, cut-offs, endings, nothing left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from coordinator.plan import Plan, RunSettings
from dlag_lab.launcher import Launcher
from dlag_lab.mesh import LocalMesh, name_of
from dlag_lab.network.namespaces import inside
from dlag_lab.network.network import MESH_INTERFACE, Network
from dlag_lab.network.spec import parse_network
from dlag_node.errors import ProcessDied
from dlag_node.graphs.topology import parse_topology
from dlag_node.wire.observing import Snapshots
from tests.cluster.meshes import (
    DEADLINE,
    ENDLESS,
    HeldReferee,
    assert_gone,
    command,
    family,
    finish,
    read_until,
)
from tests.networks.hosts import finish_over, namespaces, traces

pytestmark = pytest.mark.usefixtures("machine")

SMALL = {"method": "dlag:solver=newton,stop=exact:1e-9", "topology": "grid:3x3", "rounds": 60}
HELD = 10  # rounds after which the nodes wait for what the test does
HEARTBEAT = 1.0  # seconds; after three of them ZeroMQ gives a silent connection up


@pytest.mark.parametrize(
    "network", ["delay=0ms", "delay=5ms", "delay=10ms,jitter=10ms,loss=2%,rate=2mbit"]
)
def test_any_network_leaves_the_bits_of_the_simulator(network: str, tmp_path: Path) -> None:
    simulated = finish("simulate", tmp_path / "simulated", **SMALL)
    before = traces()
    result = finish_over(network, tmp_path / "real", **SMALL)
    assert result.summary["theta_sha256"] == simulated.summary["theta_sha256"]
    assert result.summary["deltas_sent"] == simulated.summary["deltas_sent"]
    assert result.run["network"] == result.summary["network"]["asked"] == network
    assert result.summary["network"]["dropped"] == 0
    # 24 frames a round, each at least a packet
    assert result.summary["network"]["packets"] >= 60 * 24
    asked = parse_network(network)
    assert result.summary["seconds"] >= 60 * (asked.delay - asked.jitter)
    assert traces() == before


def over_network(
    folder: Path,
    progress: Callable[[Snapshots, HeldReferee], None],
    started: Callable[[Launcher], None],
) -> None:
    """The small run, watched batch by batch; it is held after round `HELD`."""
    settings = RunSettings(**SMALL)  # type: ignore[arg-type]
    plan = Plan(settings)
    referee = HeldReferee(plan, held=HELD)
    with Network(parse_network("delay=2ms"), plan.graph) as hosts:
        mesh = LocalMesh(
            settings,
            nodes=plan.nodes,
            dim=plan.dim,
            referee=referee,
            folder=folder,
            progress=lambda batch: progress(batch, referee),
            started=started,
            hosts=hosts,
            heartbeat=HEARTBEAT,
        )
        asyncio.run(mesh.run())


@pytest.mark.parametrize("outage", [0.5, 3 * HEARTBEAT + 2.0], ids=["short", "long"])
def test_a_node_that_is_cut_off_for_a_while_changes_nothing(outage: float, tmp_path: Path) -> None:
    launchers: list[Launcher] = []
    reached = dict.fromkeys(range(9), 0)  # rounds, by node
    when_healed: list[int] = []

    def plug(state: str) -> None:
        with inside(launchers[0].netns[name_of(4)]):  # the middle of the grid
            subprocess.run(["ip", "link", "set", MESH_INTERFACE, state], check=True)

    def heal() -> None:
        when_healed.extend(reached.values())
        plug("up")

    def progress(batch: Snapshots, referee: HeldReferee) -> None:
        reached[batch.node] = batch.rounds
        if not referee.released and set(reached.values()) == {HELD}:
            plug("down")
            referee.released = True
            # the outage is what is tested: it lasts for a time, there is nothing to wait for
            asyncio.get_running_loop().call_later(outage, heal)

    over_network(tmp_path / "real", progress, launchers.append)
    # nobody can be further from the node that stands still than it is away from it
    assert len(when_healed) == 9
    assert max(when_healed) <= HELD + 2
    assert set(reached.values()) == {SMALL["rounds"]}
    finish("simulate", tmp_path / "simulated", **SMALL)
    for node in range(9):
        name = f"nodes/{name_of(node)}.theta"
        assert (tmp_path / "real" / name).read_bytes() == (
            tmp_path / "simulated" / name
        ).read_bytes()


def test_a_run_whose_emulator_dies_fails_and_says_so(tmp_path: Path) -> None:
    before = traces()
    with Network(parse_network("delay=1ms"), parse_topology("path:2", seed=0)) as hosts:
        if not hosts.emulator:
            pytest.skip("this kernel has netem: there is no emulator")

    def kill(launcher: Launcher) -> None:
        os.kill(launcher.pids["network"], signal.SIGKILL)

    with pytest.raises(ProcessDied, match="network: killed by signal 9"):
        over_network(tmp_path / "run", lambda *_: None, kill)
    assert traces() == before


LONG = ["--rounds", str(ENDLESS), "--topology", "ring:4", "--no-figures", "--log-level", "info"]


@pytest.mark.parametrize("victim", ["ctrl-c", "sigterm", "dlag", "nursery", "node"])
def test_however_a_run_ends_nothing_of_its_network_is_left(victim: str, tmp_path: Path) -> None:
    before = traces()
    flags = [*LONG, "--network", "delay=2ms,rate=10mbit", "--out", str(tmp_path / "run")]
    with command("dlag", "run", *flags) as run:
        read_until(run, "nodes are ready")
        others = family(run.pid)
        assert traces() == before  # all of it lies inside the namespaces
        held = namespaces([run.pid, *(each.pid for each in others)]) - namespaces([os.getpid()])
        assert len(held) == 4 + 2  # the nodes', the laboratory's, the switch
        nursery = psutil.Process(run.pid).children()[0]
        if victim in ("ctrl-c", "sigterm"):
            run.send_signal(signal.SIGINT if victim == "ctrl-c" else signal.SIGTERM)
            assert run.wait(DEADLINE) == (130 if victim == "ctrl-c" else 143)
        else:
            pids = {"dlag": run.pid, "nursery": nursery.pid, "node": nursery.children()[-1].pid}
            os.kill(pids[victim], signal.SIGKILL)
            assert run.wait(DEADLINE) == (-signal.SIGKILL if victim == "dlag" else 1)
        assert_gone(others)
    assert traces() == before
