"""`dlag run` whose nodes are killed at random: it goes on by itself, or when it is resumed."""

from __future__ import annotations

import os
import random
import signal
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import pytest

from coordinator.plan import RunSettings
from dlag_lab.folder import RunFolder
from dlag_lab.launcher import Launcher
from dlag_lab.live import Progress
from dlag_lab.mesh import name_of
from dlag_lab.result import RunResult
from dlag_lab.runs import Run, RunRequest
from dlag_node.errors import ConfigError, ProcessDied
from tests.cluster.meshes import NEVER, command, deeds, finish

ROUNDS = 140
NODES = 6
# The referee grants rounds in blocks of ten, two ahead of what it has seen. A node that is killed
# may have done those unseen, and its next kill comes as much later: with room for that after each
# of the last kills, no node is done before its own.
LAST_KILL = ROUNDS - 100


class Killer:
    """A view that kills nodes once the referee has seen so many rounds, and each is up again."""

    def __init__(self, *kills: tuple[int, set[int]]) -> None:
        self.kills = list(kills)
        self.launcher: Launcher | None = None
        self.killed: set[int] = set()  # process ids

    def started(self, launcher: Launcher) -> None:
        self.launcher = launcher

    def update(self, progress: Progress) -> None:
        if not self.kills or progress.k < self.kills[0][0]:
            return
        assert self.launcher is not None
        pids = {self.launcher.pids[name_of(node)] for node in self.kills[0][1]}
        if pids & self.killed:
            return
        self.kills.pop(0)
        self.killed |= pids
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def __enter__(self) -> Killer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...


def asked(out: Path, method: str, every: int, *, target: float = NEVER) -> RunRequest:
    settings = RunSettings(method=method, topology=f"ring:{NODES}", rounds=ROUNDS, seed=3)
    return RunRequest(settings=settings, mode="mesh", target=target, out=out, checkpoint=every)


def survive(request: RunRequest, killer: Killer) -> RunResult:
    return Run(request, started=killer.started, view=killer).execute()


def assert_undisturbed(result: RunResult, request: RunRequest, folder: Path) -> None:
    """Bits and records are those of the simulator."""
    reference = replace(request, mode="simulate", out=folder, resume=False)
    expected = Run(reference, view=Killer()).execute()
    for field in ("theta_sha256", "rounds", "rounds_to_target", "deltas_sent", "bytes_frames"):
        assert result.summary[field] == expected.summary[field], field
    for node in range(NODES):
        assert deeds(request.out, node) == deeds(folder, node)


@pytest.mark.parametrize(
    ("method", "every"), [("dlag", 1), ("mdlag:K=3", 2), ("dsba", 3), ("adfs", 1)]
)
def test_killed_nodes_come_back_and_nothing_is_different(
    method: str, every: int, tmp_path: Path
) -> None:
    """One node; two neighbors at once; all of them; one again and again, at random rounds."""
    draw = random.Random(method)
    once = draw.randrange(NODES)
    rounds = sorted(draw.sample(range(1, LAST_KILL), 5))
    victims = [{once}, {once, (once + 1) % NODES}, {*range(NODES)}, {once}, {once}]
    request = asked(tmp_path / "run", method, every)
    result = survive(request, Killer(*zip(rounds, victims, strict=True)))
    assert result.summary["restarts"] == sum(map(len, victims))
    assert_undisturbed(result, request, tmp_path / "simulated")


def test_a_target_ends_a_disturbed_run_in_the_same_round(tmp_path: Path) -> None:
    request = asked(tmp_path / "run", "dlag:solver=newton,stop=exact:1e-10", 1, target=1e-3)
    result = survive(request, Killer((5, {2}), (15, {0, 5})))
    assert result.summary["restarts"] == 3
    assert_undisturbed(result, request, tmp_path / "simulated")


def test_restarts_are_bounded_and_the_run_can_be_resumed(tmp_path: Path) -> None:
    out = tmp_path / "run"
    request = replace(asked(out, "dlag", 2), restarts=1)
    with pytest.raises(ProcessDied, match="node-002: killed by signal 9, and no restart is left"):
        survive(request, Killer((10, {2}), (20, {2})))
    seen = (out / "trajectory.jsonl").read_text().splitlines()
    assert len(seen) > 20
    with command("dlag", "resume", str(out), "--no-figures") as again:
        _, errors = again.communicate(timeout=90)
        assert again.returncode == 3, errors  # the target is out of reach
    assert_undisturbed(RunFolder(out).load(), request, tmp_path / "simulated")
    # what the laboratory measured before and after is one trajectory, measured alike
    trajectory = (out / "trajectory.jsonl").read_text().splitlines()
    assert trajectory[: len(seen)] == seen
    assert trajectory == (tmp_path / "simulated" / "trajectory.jsonl").read_text().splitlines()
    with pytest.raises(ConfigError, match="holds a finished run"):
        Run(replace(request, resume=True))


def test_a_run_without_checkpoints_cannot_be_resumed(tmp_path: Path) -> None:
    finish("simulate", tmp_path / "run", topology="path:2", rounds=3)
    with command("dlag", "resume", str(tmp_path / "run")) as again:
        _, errors = again.communicate(timeout=60)
        assert again.returncode == 2
        assert "has no checkpoints: it was run without --checkpoint" in errors
