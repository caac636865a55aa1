"""Helpers of the tests with real processes: small runs, and looking for processes left behind.

A test that acts on a run under way holds it by an event, so that no machine is too fast for it:

- `dlag run` of `ENDLESS` rounds goes on until somebody asks it to stop (`ask_to_stop`);
- a target out of reach (`NEVER`) makes the referee grant rounds in blocks, and none before its
  view has been told of those that it judged;
- `HeldReferee` lets the nodes come to a round and no further until it is released;
- `laboratory.Laboratory` does the same with nodes that a test starts by hand.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil

from coordinator import cli as coordinator_cli
from coordinator.plan import Plan, RunSettings
from dlag_lab import cli as lab_cli
from dlag_lab.referee import Referee
from dlag_lab.result import RunResult
from dlag_lab.runs import Run, RunRequest
from dlag_node import cli as node_cli
from dlag_node.process import run_command
from dlag_node.wire.observing import Horizon

BIN = Path(sys.executable).parent
DEADLINE = 60.0  # seconds that any wait in these tests may take before it fails
ENDLESS = 1_000_000  # rounds that no machine gets to the end of within the deadline
NEVER = 1e-30  # a target out of reach


class HeldReferee(Referee):
    """Lets the nodes go to round `held`, and to the last one once it is released."""

    def __init__(self, plan: Plan, *, held: int) -> None:
        self._held, self._rounds = held, plan.settings.rounds
        self.released = False
        super().__init__(plan, target=None, rounds=self._rounds, report=lambda _: None)

    @property
    def horizon(self) -> Horizon:
        """How far the nodes may go."""
        return Horizon(self._rounds if self.released else self._held, final=self.released)


def finish(mode: str, out: Path, *, target: float | None = None, **settings: Any) -> RunResult:
    """Run to the end, simulated or on processes."""
    shuffle = settings.pop("shuffle", None)
    started = settings.pop("started", lambda _: None)
    request = RunRequest(
        settings=RunSettings(**settings),
        mode=mode,  # type: ignore[arg-type]
        target=target,
        out=out,
        shuffle=shuffle,
    )
    return Run(request, started=started).execute()


def deeds(out: Path, node: int) -> list[dict[str, Any]]:
    """What a node recorded, without what depends on the machine."""
    lines = (out / "nodes" / f"node-{node:03d}.jsonl").read_text(encoding="ascii").splitlines()
    records = [json.loads(line) for line in lines]
    for record in records:
        del record["compute"], record["wait"]
    return records


@contextmanager
def command(name: str, *argv: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """One of our console scripts as a process of its own, ended at the latest with the test."""
    process = subprocess.Popen(
        [str(BIN / name), *argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def in_this_process(name: str, *argv: str) -> int:
    """The same command without a process: for what ends before it begins. Returns its exit code."""
    app = {"dlag": lab_cli.app, "dlag-node": node_cli.app, "dlag-coordinator": coordinator_cli.app}
    return run_command(app[name], [*argv], name)


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """The first line of the process's standard error that holds `words`."""
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        if words in line:
            return line
        seen.append(line)
    raise AssertionError(f"{words!r} never came, but: {''.join(seen)}")


def first_to_end(processes: Sequence[subprocess.Popen[str]]) -> subprocess.Popen[str]:
    """Whichever of these processes ends before the others, within the deadline."""
    with selectors.DefaultSelector() as ends, ExitStack() as stack:
        for process in processes:
            descriptor = os.pidfd_open(process.pid)
            stack.callback(os.close, descriptor)
            ends.register(descriptor, selectors.EVENT_READ, process)
        ready = ends.select(DEADLINE)
        assert ready, "none of them has ended"
        ended: subprocess.Popen[str] = ready[0][0].data
    return ended


def family(pid: int) -> list[psutil.Process]:
    """All descendants of a process, the nursery and its children among them."""
    return psutil.Process(pid).children(recursive=True)


def assert_gone(processes: list[psutil.Process]) -> None:
    """Every one of these processes ends within the deadline."""
    _, alive = psutil.wait_procs(processes, timeout=DEADLINE)
    assert not alive, f"left behind: {alive}"
