"""Nodes that others start, with `dlag referee` and keys that each of them makes for itself."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import zmq
import zmq.asyncio

from coordinator.plan import Plan, RunSettings
from dlag_lab import elsewhere
from dlag_lab.cli import app
from dlag_lab.folder import RunFolder
from dlag_lab.laboratory import Laboratory
from dlag_lab.options import EXIT_NOT_REACHED
from dlag_lab.preparing import clear_states
from dlag_lab.referee import Referee
from dlag_node.data.model import load_model_file
from dlag_node.errors import ConvergenceError
from dlag_node.net.wish import STOP_SIGNAL
from dlag_node.process import EXIT_FAILED, EXIT_USAGE, run_command
from dlag_node.rounds.state_folder import StateFolder
from dlag_node.trust.keys import make_pair, read_public
from dlag_node.wire.observing import FROM_NODE, Fallen, Horizon, Ready
from dlag_node.wire.schema import pack, unpack
from tests.cluster.meshes import (
    DEADLINE,
    ENDLESS,
    NEVER,
    command,
    finish,
    first_to_end,
    read_until,
)

LOOPBACK = "tcp://127.0.0.1:*"
SETTINGS = {"topology": "ring:4", "method": "ssda", "seed": 3, "rounds": ENDLESS}
FLAGS = [f"--{name}={value}" for name, value in SETTINGS.items()]


class ByHand:
    """A coordinator, nodes and a laboratory as processes of their own, each with its own key."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.trust = folder, folder / "trust"
        (self.trust / "nodes").mkdir(parents=True)
        self._stack = stack

    def start(self, name: str, *argv: str) -> subprocess.Popen[str]:
        return self._stack.enter_context(command(name, *argv))

    def start_coordinator(self) -> subprocess.Popen[str]:
        process = self.start(
            "dlag-coordinator", *FLAGS, "--bind", LOOPBACK, *self.keys("coordinator"), *self.listed
        )
        self.coordinator = read_until(process, "listening on ").split("listening on ")[1].split()[0]
        return process

    def start_watch(
        self, bind: str = LOOPBACK, *other: str, target: float = 1e-7
    ) -> subprocess.Popen[str]:
        argv = [*FLAGS, *other, f"--target={target}", "--bind", bind]
        argv += ["--records", str(self.folder / "mesh")]
        argv += ["--out", str(self.folder / "results"), "--force", "--no-figures"]
        argv += [*self.keys("report"), *self.listed]
        process = self.start("dlag", "referee", *argv)
        self.observer = read_until(process, "listening on ").split("listening on ")[1].split()[0]
        return process

    def start_node(self, node: int) -> subprocess.Popen[str]:
        mesh = self.folder / "mesh"
        argv = ["--coordinator", self.coordinator, "--observer", self.observer]
        argv += ["--out", str(mesh / "nodes"), "--state", str(mesh / "state" / str(node))]
        argv += ["--coordinator-key", str(self.trust / "coordinator.pub")]
        argv += ["--observer-key", str(self.trust / "report.pub")]
        return self.start("dlag-node", *argv, *self.keys(f"nodes/{node}"))

    @property
    def listed(self) -> list[str]:
        return ["--admitted", str(self.trust / "nodes")]

    def keys(self, name: str) -> list[str]:
        own = self.folder / "own" / f"{name}.key"
        return ["--key", str(own), "--post", str(self.trust / f"{name}.pub")]


@pytest.fixture
def by_hand(tmp_path: Path) -> Iterator[ByHand]:
    with ExitStack() as stack:
        yield ByHand(tmp_path, stack)


def summary_of(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    return found


def test_a_laboratory_that_is_killed_may_be_started_again(by_hand: ByHand, tmp_path: Path) -> None:
    """The run goes on until a node is asked to stop; the second one has seen all of it."""
    by_hand.start_coordinator()
    first = by_hand.start_watch(target=NEVER)
    nodes = [by_hand.start_node(i) for i in range(4)]
    read_until(first, "4 nodes are ready")
    first.kill()
    first.wait(DEADLINE)
    assert all(node.poll() is None for node in nodes)
    second = by_hand.start_watch(by_hand.observer, target=NEVER)
    read_until(second, "4 nodes are ready")
    nodes[2].send_signal(STOP_SIGNAL)
    _, errors = second.communicate(timeout=DEADLINE)
    assert second.returncode == EXIT_NOT_REACHED, errors
    for node in nodes:
        assert node.wait(DEADLINE) == 0
    ours = summary_of(tmp_path / "results")
    finish("simulate", tmp_path / "simulated", **{**SETTINGS, "rounds": ours["rounds"]})
    theirs = summary_of(tmp_path / "simulated")
    assert ours["ended"] == "asked"
    # each node counted on its own sockets: frames, and what is around them
    assert ours["wire"]["counted_by"] == "sockets"
    assert ours["wire"]["complete"]
    assert ours["wire"]["bytes"] > ours["bytes_sent"] + 52 * ours["wire"]["packets"]
    for word in ("theta_sha256", "rounds", "deltas_sent", "suboptimality"):
        assert ours[word] == theirs[word], word
    for node in range(4):
        own, copy = (
            load_model_file(tmp_path / name / "nodes" / f"node-00{node}.model.json")
            for name in ("mesh", "results")
        )
        assert copy.coefficients.tobytes() == own.coefficients.tobytes()
    trajectories = [tmp_path / name / "trajectory.jsonl" for name in ("results", "simulated")]
    assert trajectories[0].read_text() == trajectories[1].read_text()


def test_a_laboratory_that_died_between_two_words_can_be_followed_by_another(
    tmp_path: Path,
) -> None:
    flags = ["--topology=path:2", "--method=admm"]
    with zmq.Context() as context, ExitStack() as stack:
        router = stack.enter_context(closing(context.socket(zmq.ROUTER)))
        router.linger, router.rcvtimeo = 0, int(1e3 * DEADLINE)
        address = f"tcp://127.0.0.1:{router.bind_to_random_port('tcp://127.0.0.1')}"
        coordinator = stack.enter_context(command("dlag-coordinator", *flags, "--bind", LOOPBACK))
        line = read_until(coordinator, "listening on ")
        argv = ["--coordinator", line.split("listening on ")[1].split()[0], "--observer", address]
        argv += ["--out", str(tmp_path / "mesh" / "nodes")]
        nodes = [stack.enter_context(command("dlag-node", *argv, f"--id={i}")) for i in range(2)]
        peers = {}
        while len(peers) < 2:
            peer, raw = router.recv_multipart()
            peers[unpack(raw, FROM_NODE, limit=1_000, peer="a node").node] = peer
        router.send_multipart([peers[1], pack(Horizon(20, False))])  # and node 0 hears nothing
        read_until(nodes[1], "waiting for neighbors [0 at")
        router.close()

        out = ["--records", str(tmp_path / "mesh"), "--out", str(tmp_path / "run"), "--no-figures"]
        argv = [*flags, "--target=1e-7", "--bind", address, *out]
        referee = stack.enter_context(command("dlag", "referee", *argv))
        _, errors = referee.communicate(timeout=DEADLINE)
        assert referee.returncode == 0, errors
        assert [node.wait(DEADLINE) for node in nodes] == [0, 0]
    finish("simulate", tmp_path / "simulated", target=1e-7, topology="path:2", method="admm")
    ours, theirs = (summary_of(tmp_path / name) for name in ("run", "simulated"))
    for word in ("theta_sha256", "rounds", "deltas_sent", "rounds_to_target", "suboptimality"):
        assert ours[word] == theirs[word], word


def assert_all_refused(
    referee: subprocess.Popen[str], nodes: list[subprocess.Popen[str]], results: Path
) -> None:
    """The referee says what is wrong, and so does every node; nobody ends as after a good run."""
    _, said = referee.communicate(timeout=DEADLINE)
    assert referee.returncode == EXIT_USAGE, said
    found = re.search(
        r"node \d has the configuration ([0-9a-f]{64}), the referee's is ([0-9a-f]{64}): "
        r"start dlag referee with the settings and the data of the coordinator",
        said,
    )
    assert found is not None, said
    assert found[1] != found[2]
    for node in nodes:
        _, said = node.communicate(timeout=DEADLINE)
        assert node.returncode == EXIT_FAILED
        assert "PeerRefused: the laboratory refused us: node" in said
        assert found[1] in said
        assert found[2] in said
    assert not (results / "summary.json").exists()


def test_a_referee_with_other_settings_is_refused_and_all_end(by_hand: ByHand) -> None:
    coordinator = by_hand.start_coordinator()
    referee = by_hand.start_watch(LOOPBACK, "--lambda=0.02")
    nodes = [by_hand.start_node(i) for i in range(4)]
    assert_all_refused(referee, nodes, by_hand.folder / "results")
    assert coordinator.wait(DEADLINE) != 0


def test_a_second_referee_with_other_settings_is_refused_in_the_middle_of_a_run(
    by_hand: ByHand,
) -> None:
    by_hand.start_coordinator()
    first = by_hand.start_watch()
    nodes = [by_hand.start_node(i) for i in range(4)]
    read_until(first, "4 nodes are ready")
    first.kill()
    first.wait(DEADLINE)
    second = by_hand.start_watch(by_hand.observer, "--shards=even")
    assert_all_refused(second, nodes, by_hand.folder / "results")


def test_a_key_that_was_not_posted_is_refused_and_counted(by_hand: ByHand, tmp_path: Path) -> None:
    coordinator = by_hand.start_coordinator()
    report = by_hand.start_watch()
    make_pair(tmp_path / "stranger.key")
    argv = ["--coordinator", by_hand.coordinator, "--key", str(tmp_path / "stranger.key")]
    argv += ["--coordinator-key", str(by_hand.trust / "coordinator.pub")]
    stranger = by_hand.start("dlag-node", *argv)
    _, said = stranger.communicate(timeout=DEADLINE)
    assert "our key is not admitted there" in said
    assert stranger.returncode == 1
    nodes = [by_hand.start_node(i) for i in range(4)]
    _, errors = report.communicate(timeout=DEADLINE)
    assert report.returncode == 0, errors
    for node in nodes:
        assert node.wait(DEADLINE) == 0
    _, said = coordinator.communicate(timeout=DEADLINE)
    public = read_public(tmp_path / "stranger.pub").hex()
    assert re.search(f"dropped: a caller from 127.0.0.1 with key {public}, which is not", said)
    assert re.search("[1-9][0-9]* hand-shakes were refused", said)


def test_a_node_too_many_says_so_and_that_is_no_failure(by_hand: ByHand) -> None:
    by_hand.start_coordinator()
    watch = by_hand.start_watch()
    watch.send_signal(signal.SIGSTOP)  # nobody may begin, and so nobody comes too late
    nodes = [by_hand.start_node(i) for i in range(5)]
    surplus = first_to_end(nodes)
    words = "not needed: all 4 places of the run are taken"
    assert words in surplus.communicate(timeout=DEADLINE)[1]
    watch.send_signal(signal.SIGCONT)
    ends = {node: node.communicate(timeout=DEADLINE)[1] for node in nodes if node is not surplus}
    assert [node.returncode for node in nodes] == [0] * 5
    assert not any(words in said for said in ends.values())
    watch.communicate(timeout=DEADLINE)
    assert watch.returncode == 0


async def test_a_node_that_gave_up_for_good_ends_the_watch_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere, "_GIVE_UP_AFTER", 0.2)
    plan = Plan(RunSettings(topology="path:2"))
    laboratory = Laboratory(
        nodes=2,
        dim=13,
        referee=Referee(plan, target=None, rounds=5, report=lambda _: None),
        records=RunFolder(tmp_path),
    )
    address = f"ipc://{tmp_path}/laboratory"
    with zmq.asyncio.Context() as context:
        task = asyncio.create_task(elsewhere.see_through(laboratory, address))
        with closing(context.socket(zmq.DEALER)) as dealer:
            dealer.connect(address)
            await dealer.send(pack(Ready(0, 0, 0.1, 1, "any")))
            await dealer.send(pack(Fallen(0, "RunAborted: node 1: ConvergenceError: so I hear")))
            await dealer.send(pack(Fallen(1, "ConvergenceError: it diverges")))
            with pytest.raises(ConvergenceError, match=r"node 1 gave up.*: it diverges$"):
                await asyncio.wait_for(task, DEADLINE)
    assert laboratory.outcome.ready.keys() == {0}


@pytest.mark.parametrize(
    ("reason", "code", "said"),
    [
        ("ConfigError: lambda = -1", 2, "dlag: node 1 gave up, and nobody says anything: lambda"),
        ("StorageError: the disk is full", 1, "dlag: StorageError: node 1 gave up, and nobody"),
        ("SystemExit: 0", 1, "dlag: RunAborted: node 1 gave up, and nobody says anything: System"),
    ],
)
def test_a_referee_ends_with_the_exit_code_of_the_node_that_gave_up(
    reason: str,
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(elsewhere, "_GIVE_UP_AFTER", 0.2)
    address = f"ipc://{tmp_path}/laboratory"
    argv = ["referee", "--topology=path:2", "--bind", address, "--insecure", "--no-figures"]
    argv += ["--records", str(tmp_path / "mesh"), "--out", str(tmp_path / "run")]
    with zmq.Context() as context, closing(context.socket(zmq.DEALER)) as dealer:
        dealer.linger = 0
        dealer.connect(address)
        dealer.send(pack(Fallen(1, reason)))
        assert run_command(app, argv, "dlag") == code
    assert said in capfd.readouterr().err


def test_a_mesh_is_prepared_with_the_network_that_it_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["prepare", *FLAGS, "--records", str(tmp_path), "--network"]
    assert run_command(app, [*argv, "delay=20ms,loss=1%"], "dlag") == 0
    said = capsys.readouterr().err
    assert "ssda on ring:4: 4 nodes, over a network of delay=20ms,loss=1%" in said
    assert run_command(app, [*argv, "delay=20ms,loss=all"], "dlag") == EXIT_USAGE
    assert "network 'delay=20ms,loss=all'" in capsys.readouterr().err


def test_a_new_run_clears_the_states_that_nobody_uses(tmp_path: Path) -> None:
    for name in ("dead", "alive"):
        StateFolder(tmp_path / name).__exit__()
    with StateFolder(tmp_path / "alive"):
        assert clear_states(tmp_path) == 1
        assert [path.name for path in tmp_path.iterdir()] == ["alive"]
    assert clear_states(tmp_path) == 1
    assert clear_states(tmp_path / "none") == 0
