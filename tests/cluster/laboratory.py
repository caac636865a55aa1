"""A laboratory for nodes that tests start by hand: it hears how far they are, and holds them there.

So a test can kill a node in a known round, with no sleeping and no luck.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic

import zmq

from dlag_lab.folder import RunFolder
from dlag_node.wire.observing import (
    FROM_NODE,
    Farewell,
    FromNode,
    Halted,
    Horizon,
    Ready,
    Snapshots,
)
from dlag_node.wire.schema import pack, unpack
from tests.cluster.meshes import DEADLINE, command, finish, read_until

LOOPBACK = "tcp://127.0.0.1:*"


class Laboratory:
    """A coordinator and nodes with state folders, as processes of their own."""

    def __init__(
        self, folder: Path, *, topology: str, rounds: int, method: str = "dlag", **settings: str
    ) -> None:
        self.folder = folder
        self.rounds = rounds
        self.settings = {"topology": topology, "rounds": rounds, "method": method, **settings}
        self.nodes: dict[int, subprocess.Popen[str]] = {}
        self.flags: list[str] = []  # of every node
        self._peers: dict[int, bytes] = {}
        self._granted = Horizon(0, final=False)
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.bind(LOOPBACK)
        self.stack = ExitStack()

    def start_coordinator(self, bind: str = LOOPBACK) -> None:
        flags = [f"--{name}={value}" for name, value in self.settings.items()]
        self.coordinator = self.stack.enter_context(
            command("dlag-coordinator", *flags, "--bind", bind)
        )
        line = read_until(self.coordinator, "listening on tcp://")
        self.address = line.split("listening on ")[1].split()[0]

    def start(
        self, node: int, *flags: str, env: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start a node, or start it again: always with the same words, and in `env` for ours."""
        observer = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        argv = ["--coordinator", self.address, "--id", str(node), "--observer", observer]
        argv += ["--state", str(self.state(node)), "--out", str(self.folder / "nodes")]
        argv += ["--checkpoint", "1"]
        process = self.stack.enter_context(
            command("dlag-node", *argv, *self.flags, *flags, env=env)
        )
        self.nodes[node] = process
        self._peers.pop(node, None)
        return process

    def state(self, node: int) -> Path:
        return RunFolder(self.folder).state_path(node)

    def kill(self, *nodes: int) -> None:
        for node in nodes:
            os.kill(self.nodes[node].pid, signal.SIGKILL)
        for node in nodes:
            assert self.nodes[node].wait(DEADLINE) == -signal.SIGKILL

    def grant(self, rounds: int) -> None:
        """All nodes may go on until so many rounds are finished."""
        self._granted = Horizon(rounds, final=rounds == self.rounds)
        for peer in self._peers.values():
            self._socket.send_multipart([peer, pack(self._granted)])

    def run_to(self, rounds: int) -> None:
        """Hold all nodes after so many rounds."""
        while self._peers.keys() < self.nodes.keys():
            self.hear()
        self.grant(rounds)
        waiting = {*self.nodes}
        while waiting:
            message = self.hear()
            if isinstance(message, Snapshots) and message.rounds == rounds:
                waiting.discard(message.node)

    def until(self, kind: type[FromNode], nodes: set[int]) -> dict[int, FromNode]:
        """A message of that kind from each of these nodes."""
        heard: dict[int, FromNode] = {}
        while heard.keys() < nodes:
            message = self.hear()
            if isinstance(message, kind):
                heard[message.node] = message
        return heard

    def hear(self) -> FromNode:
        give_up = monotonic() + DEADLINE
        message: FromNode | None = None
        while message is None or isinstance(message, Halted):  # said again and again
            left = max(0.0, give_up - monotonic())
            assert self._socket.poll(int(1000 * left)), "nobody says anything"
            peer, raw = self._socket.recv_multipart()
            message = unpack(raw, FROM_NODE, limit=1 << 24, peer="a node")
        if isinstance(message, Ready):
            self._peers[message.node] = peer
            self._socket.send_multipart([peer, pack(self._granted)])
        return message

    def finish(self) -> None:
        """To the last round, and everybody's thetas and records are those of the simulator."""
        self.grant(self.rounds)
        self.until(Farewell, {*self.nodes})
        for node, process in self.nodes.items():
            assert process.wait(DEADLINE) == 0, f"node {node}: {process.communicate()[1]}"
        self.compare()

    def compare(self) -> None:
        reference = self.folder / "simulated"
        finish("simulate", reference, **self.settings)
        for node in self.nodes:
            for name in (f"node-{node:03d}.theta", f"node-{node:03d}.jsonl"):
                ours, theirs = (self.folder / "nodes" / name), (reference / "nodes" / name)
                if name.endswith(".theta"):
                    assert ours.read_bytes() == theirs.read_bytes(), name
                else:
                    assert len(ours.read_text().splitlines()) == self.rounds

    def close(self) -> None:
        self.stack.close()
        self._context.destroy(linger=0)


@contextmanager
def laboratory(folder: Path, **settings: object) -> Iterator[Laboratory]:
    """A laboratory whose processes end with the test."""
    lab = Laboratory(folder, **settings)  # type: ignore[arg-type]
    try:
        lab.start_coordinator()
        yield lab
    finally:
        lab.close()
