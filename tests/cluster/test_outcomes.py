"""Real processes leave how they failed, and who started them raises that very class."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import signal
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coordinator.plan import Plan, RunSettings
from dlag_lab import mesh
from dlag_lab.estimators import DecentralizedRidge
from dlag_lab.laboratory import Laboratory
from dlag_lab.launcher import Launcher
from dlag_lab.mesh import LocalMesh
from dlag_lab.referee import Referee
from dlag_node.errors import (
    ConfigError,
    ConvergenceError,
    DlagError,
    NeighborTimeout,
    PeerRefused,
    ProcessDied,
    RunAborted,
)
from dlag_node.outcome import VARIABLE, Ending, ending_of
from dlag_node.rounds.state_folder import StateFolder
from dlag_node.wire.observing import Farewell, FromNode
from tests.cluster.meshes import DEADLINE, command, family, finish, read_until

DIVERGES = "dlag:eta_beta=50"
LONG = ["--rounds", "1000000", "--topology", "ring:4", "--no-figures", "--log-level", "info"]
NOBODY = "tcp://127.0.0.1:1"
ELSEWHERE = "tcp://203.0.113.1:5555"  # kept for examples: no address of this machine


def asking(path: Path) -> dict[str, str]:
    """The environment of a process that is to leave its ending there."""
    return {**os.environ, VARIABLE: str(path)}


@pytest.mark.parametrize(
    ("argv", "kind", "who", "code"),
    [
        (["dlag-node", "--coordinator", NOBODY, "--checkpoint=-1"], ConfigError, "dlag-node", 2),
        (
            ["dlag-node", "--coordinator", NOBODY, "--data", "{bad}", "--label=y", "--id=3"],
            ConfigError,
            "node-003",
            2,
        ),
        (
            ["dlag-node", "--coordinator", NOBODY, "--join-timeout=0.5"],
            NeighborTimeout,
            "node",
            1,
        ),
        (["dlag-coordinator", "--data", "/nowhere"], ConfigError, "dlag-coordinator", 2),
        (["dlag-coordinator", "--insecure", "--bind", ELSEWHERE], ConfigError, "coordinator", 2),
        (["dlag", "watch", "/nowhere", "--page", "127.0.0.1:0"], ConfigError, "watch", 2),
        (["dlag", "simulate", "--method", DIVERGES], ConvergenceError, "dlag", 1),
    ],
)
def test_a_process_that_fails_leaves_its_class_its_reason_and_its_name(
    argv: list[str], kind: type[DlagError], who: str, code: int, tmp_path: Path
) -> None:
    bad, path = tmp_path / "bad.csv", tmp_path / "ending"
    bad.write_text("a,y\n1,1\nno number,0\n")
    name, *flags = [word.format(bad=bad) for word in argv]
    with command(name, *flags, env=asking(path), cwd=tmp_path) as process:
        _, errors = process.communicate(timeout=DEADLINE)
    assert process.returncode == code
    told = json.loads(path.read_text(encoding="utf-8"))
    assert (told["error"], told["who"]) == (kind.__name__, who)
    assert told["reason"] in errors
    with pytest.raises(kind):
        raise ending_of(path, code=code, who=who).error()


def test_a_node_that_is_refused_and_one_that_was_told_say_so_by_their_class(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        coordinator = stack.enter_context(
            command("dlag-coordinator", "--bind=tcp://127.0.0.1:*", "--topology=path:2", *LONG[:2])
        )
        line = read_until(coordinator, "listening on ")
        address = line.split("listening on ")[1].split()[0]
        paths = [tmp_path / f"{name}.ending" for name in ("first", "second", "twin")]
        flags = ["--coordinator", address]
        first = stack.enter_context(command("dlag-node", *flags, "--id=0", env=asking(paths[0])))
        read_until(coordinator, "1 of 2 nodes have joined")
        twin = stack.enter_context(command("dlag-node", *flags, "--id=0", env=asking(paths[2])))
        assert twin.wait(DEADLINE) == 1
        refused = ending_of(paths[2], code=1, who="twin")
        assert refused.kind is PeerRefused
        assert "id 0 is taken" in refused.reason
        second = stack.enter_context(command("dlag-node", *flags, env=asking(paths[1])))
        read_until(coordinator, "all 2 nodes have started")
        first.terminate()
        assert (first.wait(DEADLINE), second.wait(DEADLINE)) == (143, 1)
        assert not paths[0].exists()
        told = json.loads(paths[1].read_text(encoding="utf-8"))
        assert told == {
            "error": "RunAborted",
            "reason": "node 0 was asked to end",
            "who": "node-001",
        }
        assert ending_of(paths[1], code=1, who="second").secondhand
        assert ending_of(paths[0], code=143, who="first").kind is ProcessDied


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that can be resumed."""
    out = tmp_path_factory.mktemp("interrupted") / "run"
    with command("dlag", "run", *LONG, "--checkpoint=10", "--out", str(out)) as run:
        read_until(run, "nodes are ready")
        run.send_signal(signal.SIGTERM)
        assert run.wait(DEADLINE) == 143
    return out


def test_a_command_has_the_exit_code_of_its_node_wrong_settings(interrupted: Path) -> None:
    lock = os.open(interrupted / "state" / "node-002" / "lock", os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with command("dlag", "resume", str(interrupted), "--no-figures") as run:
            _, errors = run.communicate(timeout=DEADLINE)
    finally:
        os.close(lock)
    assert run.returncode == 2
    log = interrupted / "logs" / "node-002.log"
    folder = interrupted / "state" / "node-002"
    said = f"dlag: node-002: state folder {folder} is in use by another process (log: {log})"
    assert said in errors.splitlines()


def test_a_node_of_another_run_is_refused_and_the_command_says_which(interrupted: Path) -> None:
    with StateFolder(interrupted / "state" / "node-002") as folder:
        place = folder.place()
        assert place is not None
        folder.write_place(replace(place, enrol=replace(place.enrol, run="another")))
        for slot in folder.path.glob("slot-*"):
            slot.unlink()
    with command("dlag", "resume", str(interrupted), "--no-figures") as run:
        _, errors = run.communicate(timeout=DEADLINE)
    assert run.returncode == 1
    # it and its neighbors refuse each other: who is first is a matter of luck
    assert re.search(r"^dlag: PeerRefused: node-00\d: neighbor \d refused us: run id", errors, re.M)


def test_a_mesh_whose_coordinator_cannot_begin_raises_its_error(tmp_path: Path) -> None:
    settings = RunSettings(topology="path:2")
    mesh = LocalMesh(
        replace(settings, data="/nowhere"),
        nodes=2,
        dim=13,
        referee=Referee(Plan(settings), target=None, rounds=5, report=lambda _: None),
        folder=tmp_path,
    )
    with pytest.raises(ConfigError, match=r"^coordinator: no dataset '/nowhere'.*\(log: .*\)$"):
        asyncio.run(mesh.run())


def test_a_comparison_keeps_only_what_would_fail_again(tmp_path: Path) -> None:
    flags = ["--mode=mesh", "--topology=ring:4", "--rounds=1000000", "--no-figures"]
    flags += ["--neighbor-timeout=2", "--log-level=info", "--out", str(tmp_path)]
    with command("dlag", "compare", "--methods", f"{DIVERGES};ssda", *flags) as compare:
        read_until(compare, "ssda, seed 0: under way")
        read_until(compare, "nodes are ready")
        family(compare.pid)[-1].kill()
        said, errors = compare.communicate(timeout=DEADLINE)
    assert compare.returncode == 3, errors
    assert f"{DIVERGES}, seed 0 failed: ConvergenceError: node-00" in said
    assert "ssda, seed 0 failed: ProcessDied: node-003: killed by signal 9" in said
    (kept,) = tmp_path.rglob("failure.json")
    assert kept.parent.parent.name.startswith("dlag")
    assert json.loads(kept.read_text(encoding="utf-8"))["failure"].startswith("ConvergenceError: ")


def test_an_estimator_raises_what_its_nodes_raised() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 3))
    estimator = DecentralizedRidge(method=DIVERGES, backend="processes", random_state=0)
    with pytest.raises(ConvergenceError, match=r"^node-00\d: the run diverges"):
        estimator.fit(X, X @ np.ones(3))


async def ended(argv: list[str], folder: Path, netns: str | None = None) -> Ending:
    """How this process of a nursery ends, which it does by itself."""
    async with Launcher(None if netns is None else {"it": netns}) as launcher:
        await launcher.start("it", argv, folder / "it.log")
        while "it" not in launcher.exits:
            launcher.ended.clear()
            await asyncio.wait_for(launcher.ended.wait(), DEADLINE)
        return launcher.ending("it")


@pytest.mark.parametrize(
    ("argv", "netns", "kind", "reason"),
    [
        (
            ["dlag-node", "--coordinator", NOBODY, "--join-timeout=0.2"],
            None,
            NeighborTimeout,
            NOBODY,
        ),
        (["dlag-node", "--nonsense"], None, ConfigError, "ended with exit code 2"),
        (["dlag-nothing"], None, ProcessDied, "KeyError: 'dlag-nothing'"),
        (["dlag-node"], "/nowhere", ConfigError, "cannot use /nowhere: "),
        (
            ["dlag-network", "--announce=2", "--network=delay=1ms", "/nowhere"],
            None,
            ConfigError,
            "cannot use /nowhere: No such file",
        ),
        (["dlag-network", "--announce=2", "--network=so", "/x"], None, ConfigError, "network 'so'"),
        (["dlag-watch", "/nowhere", "--page=127.0.0.1:0"], None, ConfigError, "/nowhere"),
    ],
)
async def test_a_child_of_the_nursery_leaves_its_ending_however_early_it_fails(
    argv: list[str], netns: str | None, kind: type[DlagError], reason: str, tmp_path: Path
) -> None:
    ending = await ended(argv, tmp_path, netns)
    assert ending.kind is kind
    assert reason in ending.reason
    assert ending.who == "it"


async def test_an_ending_of_the_process_before_is_not_taken_for_this_ones(tmp_path: Path) -> None:
    Ending(RunAborted, "long ago", "it").leave(tmp_path / "it.ending")
    async with Launcher() as launcher:
        await launcher.start("it", ["dlag-node", "--coordinator", NOBODY], tmp_path / "it.log")
        await launcher.signal("it", signal.SIGKILL)
        while "it" not in launcher.exits:
            launcher.ended.clear()
            await asyncio.wait_for(launcher.ended.wait(), DEADLINE)
        assert launcher.ending("it") == Ending(ProcessDied, "killed by signal 9", "it")


def test_a_run_whose_farewells_are_lost_ends_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A laboratory that lags far behind its nodes never hears the last of them."""
    heard = Laboratory._take

    async def take(self: Laboratory, peer: bytes, message: FromNode) -> None:
        if not (isinstance(message, Farewell) and message.node == 2):
            await heard(self, peer, message)

    monkeypatch.setattr(Laboratory, "_take", take)
    monkeypatch.setattr(mesh, "_FAREWELL_SECONDS", 0.5)
    with pytest.raises(ProcessDied, match="node-002: ended well, but what it said last"):
        finish("mesh", tmp_path / "run", topology="ring:4", rounds=5)
