"""Helpers of the tests with real processes: small runs, and looking for processes left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from coordinator.plan import RunSettings
from dlag_lab.result import RunResult
from dlag_lab.runs import Run, RunRequest

BIN = Path(sys.executable).parent
DEADLINE = 60.0  # seconds that any wait in these tests may take before it fails


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


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """The first line of the process's standard error that holds `words`."""
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        if words in line:
            return line
        seen.append(line)
    raise AssertionError(f"{words!r} never came, but: {''.join(seen)}")


def family(pid: int) -> list[psutil.Process]:
    """All descendants of a process, the nursery and its children among them."""
    return psutil.Process(pid).children(recursive=True)


def assert_gone(processes: list[psutil.Process]) -> None:
    """Every one of these processes ends within the deadline."""
    _, alive = psutil.wait_procs(processes, timeout=DEADLINE)
    assert not alive, f"left behind: {alive}"
