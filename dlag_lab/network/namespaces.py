"""Network namespaces without names: file descriptors hold them, the last process ends them.

A namespace lives while a process is in it or holds its descriptor. Ours have no entry under
/run/netns, so nothing has to be taken down: the kernel removes interfaces, bridges and rules with
the last process that knew of them, however that process ended.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CLONE_NEWNET = 0x40000000  # linux/sched.h
_OWN = "/proc/thread-self/ns/net"


def new_namespace() -> int:
    """A descriptor of an empty network namespace; the calling thread stays where it is."""
    with _back_home():
        if _libc().unshare(_CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "cannot make a network namespace")
        return os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)


def enter(path: str) -> None:
    """Move the calling thread into a namespace, for good; new threads and processes follow."""
    there = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _set(there)
    finally:
        os.close(there)


@contextmanager
def inside(path: str) -> Iterator[None]:
    """The calling thread, and the processes that it starts, in a namespace for a while.

    A socket belongs for ever to the namespace in which it was made.
    """
    with _back_home():
        enter(path)
        yield


def path_of(descriptor: int) -> str:
    """Where any process of root finds a namespace whose descriptor this process holds."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def counters(interface: str) -> tuple[int, int]:
    """Bytes and packets that an interface of the thread's namespace has sent, from the kernel."""
    for line in Path("/proc/thread-self/net/dev").read_text(encoding="ascii").splitlines():
        name, colon, numbers = line.partition(":")
        if colon and name.strip() == interface:
            fields = numbers.split()
            return int(fields[8]), int(fields[9])
    raise OSError(f"there is no interface {interface}")


@contextmanager
def _back_home() -> Iterator[None]:
    home = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        try:
            _set(home)
        finally:
            os.close(home)


def _set(descriptor: int) -> None:
    if _libc().setns(descriptor, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "cannot enter a network namespace")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
