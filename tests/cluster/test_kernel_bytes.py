"""The bytes that the report claims are the bytes that the kernel saw on those connections."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from pathlib import Path
from time import perf_counter

import pytest

from coordinator.plan import Plan, RunSettings
from dlag_lab.counted import wire_of
from dlag_lab.folder import RunFolder
from dlag_lab.launcher import Launcher
from dlag_lab.mesh import LocalMesh
from dlag_lab.runs import Run, RunRequest
from dlag_node.wire.observing import Snapshots
from tests.cluster.meshes import HeldReferee

ROUNDS = 60

# What stands around the frames of the rounds, as docs/protocol.md has it, in bytes a direction.
CURVE = 33  # a frame: name of the command, nonce, authenticator, flags
FRAME_HEADER = 2 + CURVE  # ZeroMQ's, for a frame of up to 255 bytes with that
HANDSHAKE = 567 + 301  # CURVE's with the greeting, once a connection: who calls, who is called
DONE = 5  # or fewer
HELLO = 105 + 1 + 22  # ours, once a connection: a Hello one way, a Welcome the other
PING, PONG = 9 + CURVE, 7 + CURVE  # ZeroMQ's heartbeat, forth and back, once in
HEARTBEAT = 10.0  # seconds
COUNTERS = ("bytes_sent", "segs_out")
HEADERS = 20 + 20 + 12  # of a segment: IPv4, TCP, timestamps
GOODBYE = 6  # segments of one end after the last round at most: Done, acknowledgements, a heartbeat


def sent_by(pids: set[int]) -> dict[tuple[str, str], tuple[int, int]]:
    """Bytes and segments sent on every TCP connection of these processes, from the kernel."""
    listing = subprocess.run(
        ["ss", "-tinpHO", "state", "established"], check=True, capture_output=True, text=True
    ).stdout
    counted = {}
    for line in listing.splitlines():
        owner = re.search(r"pid=(\d+)", line)
        if owner is None or int(owner[1]) not in pids:
            continue
        local, remote = line.split()[2:4]
        sent, segments = (re.search(rf"\b{word}:(\d+)", line) for word in COUNTERS)
        assert segments is not None
        counted[local, remote] = 0 if sent is None else int(sent[1]), int(segments[1])
    return counted


@pytest.mark.skipif(shutil.which("ss") is None, reason="needs ss (iproute2)")
@pytest.mark.parametrize("method", ["dlag:solver=newton,stop=exact:1e-8", "ssda:solver=newton"])
def test_the_kernel_counted_what_the_ledger_counted(method: str, tmp_path: Path) -> None:
    settings = RunSettings(method=method, topology="grid:3x3", rounds=ROUNDS)
    run = Run(RunRequest(settings=settings, mode="mesh", target=None, out=tmp_path / "run"))
    plan = Plan(settings)
    # to the last round and not to the end: their connections stay to be looked at
    referee = HeldReferee(plan, held=ROUNDS)
    launchers: list[Launcher] = []
    reached: set[int] = set()
    counted: dict[tuple[str, str], tuple[int, int]] = {}

    def look(batch: Snapshots) -> None:
        if batch.rounds == ROUNDS:
            reached.add(batch.node)
        if len(reached) == plan.nodes and not referee.released:
            pids = {pid for name, pid in launchers[0].pids.items() if name.startswith("node")}
            everything = sent_by(pids)
            # both ends of a connection between nodes are in the list; others have a foreign end
            counted.update(
                {ends: sent for ends, sent in everything.items() if ends[::-1] in everything}
            )
            referee.released = True

    mesh = LocalMesh(
        settings,
        nodes=plan.nodes,
        dim=plan.dim,
        referee=referee,
        folder=run.folder.path,
        progress=look,
        started=launchers.append,
    )
    begun = perf_counter()
    asyncio.run(mesh.run())
    seconds = perf_counter() - begun
    with run.folder.trajectory_writer() as writer:
        for k in range(ROUNDS):
            writer.write(k, suboptimality=1.0, consensus_error=1.0)
    records = RunFolder(tmp_path / "run").load().records

    directions = 2 * len(plan.graph.edges)
    assert len(counted) == directions  # one connection an edge
    frames = int(records.deltas.sum() + records.skips.sum())
    assert frames == ROUNDS * directions
    assert (records.skips.sum() > 0) == method.startswith("dlag")
    claimed = int(records.sent_bytes.sum()) + FRAME_HEADER * frames
    opening = HANDSHAKE + 2 * (FRAME_HEADER + HELLO)
    data, segments = (sum(each) for each in zip(*counted.values(), strict=True))
    beside = data - claimed - opening * len(plan.graph.edges)
    # nobody asks for anything, unless a machine keeps a node waiting for 5 s
    assert records.wait.max() < 5.0
    beats = (seconds // HEARTBEAT + 1) * len(plan.graph.edges)
    assert 0 <= beside <= beats * (PING + PONG)

    # what the nodes counted themselves is that, and what they said after we looked
    wire = wire_of(run.folder.path, plan.nodes)
    assert wire is not None
    assert wire["complete"]
    assert wire["counted_by"] == "sockets"
    assert segments <= wire["packets"] <= segments + GOODBYE * directions
    written = wire["bytes"] - HEADERS * wire["packets"]
    assert data <= written <= data + directions * (FRAME_HEADER + DONE) + beats * (PING + PONG)
