"""A run under way: who is at it, and how somebody else asks it to stop (`dlag stop`).

The run's process holds a lock on the file `running` in its folder, with its process id in it. A
lock that is held proves that the id is still that process's.
"""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dlag_node.errors import ConfigError
from dlag_node.net.wish import STOP_SIGNAL

RUNNING = "running"


class StopBell:
    """Whether somebody has asked the run to stop; `ring` is called as soon as somebody does."""

    def __init__(self) -> None:
        self.rung = False
        self.ring: Callable[[], None] = lambda: None

    def hear(self, *_: object) -> None:
        """Somebody asks."""
        self.rung = True
        self.ring()


@contextmanager
def running(folder: Path) -> Iterator[StopBell]:
    """Be the one process that is at the run in this folder, and hear who wants it to stop."""
    bell = StopBell()
    file = os.open(folder / RUNNING, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    before = signal.signal(STOP_SIGNAL, bell.hear)
    try:
        if not _lock(file, fcntl.LOCK_EX):
            raise ConfigError(f"{folder}: another process is at this run")
        os.ftruncate(file, 0)
        os.write(file, f"{os.getpid()}\n".encode())
        yield bell
        (folder / RUNNING).unlink(missing_ok=True)
    finally:
        os.close(file)
        signal.signal(STOP_SIGNAL, before)


def ask_to_stop(folder: Path) -> int:
    """Ask the run in this folder to stop; returns the id of the process that was asked."""
    try:
        file = os.open(folder / RUNNING, os.O_RDWR | os.O_CLOEXEC)
    except OSError as exc:
        raise ConfigError(f"no run is under way in {folder}: {exc.strerror}") from exc
    try:
        text = os.read(file, 64).decode("ascii", "replace").strip()
        if _lock(file, fcntl.LOCK_SH) or not text.isdecimal():
            raise ConfigError(f"no run is under way in {folder}: its process has ended")
        os.kill(int(text), STOP_SIGNAL)
    finally:
        os.close(file)
    return int(text)


def _lock(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
