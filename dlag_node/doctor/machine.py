"""The device itself: Python, libraries, clock, memory, disk."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter, time

from dlag_node.doctor.finding import Finding, fail, ok, warn

MIB = 1 << 20

_LIBRARIES = {"numpy": "numpy", "scipy": "scipy", "numba": "numba", "pyzmq": "zmq",
              "msgpack": "msgpack", "uvloop": "uvloop"}  # fmt: skip
_REINSTALL = "install again, with wheels only: pip install --only-binary :all: dlag-mesh"
_OLDEST_PYTHON = (3, 11)
_LEAST_FREE = 16 * MIB  # of disk: a state folder of small models, and the log
_GOOD_FREE = 256 * MIB
_SLOW_SYNC = 0.1  # seconds for one fsync: a flash card that is near its end
_SYNCS = 5
_LEAST_MEMORY = 128 * MIB  # a node whose kernels are compiled on the device needs about as much
_GOOD_MEMORY = 256 * MIB


def check_python() -> Finding:
    """Python and the machine it runs on."""
    value = f"{platform.python_version()} on {platform.machine()}, {platform.system()}"
    if sys.version_info < _OLDEST_PYTHON:
        return fail("python", value, "expected Python 3.11 or newer")
    return ok("python", value)


def check_libraries() -> Finding:
    """Every library that a node loads, loaded."""
    found = []
    for package, module in _LIBRARIES.items():
        try:
            importlib.import_module(module)
            found.append(f"{package} {version(package)}")
        except (ImportError, PackageNotFoundError, OSError) as exc:
            if package == "uvloop":
                return warn("libraries", "no uvloop", "pip install uvloop: a fifth less CPU")
            return fail("libraries", f"{package}: {exc}", _REINSTALL)
    return ok("libraries", ", ".join(found))


def check_clock(now: float | None = None) -> Finding:
    """Whether the clock can be right, and whether somebody keeps it so."""
    at = datetime.fromtimestamp(time() if now is None else now, UTC)
    installed = datetime.fromtimestamp(Path(__file__).stat().st_mtime, UTC)
    value = f"{at:%Y-%m-%d %H:%M:%S} UTC"
    set_it = "set it: timedatectl set-ntp true, or a clock with a battery"
    if at < installed:
        return fail("clock", f"{value}, before this program was installed", set_it)
    synchronised = _ntp()
    if synchronised == "no":
        return warn("clock", f"{value}, not synchronised", f"logs will not agree; {set_it}")
    how = "synchronised" if synchronised == "yes" else "nobody here says whether it is synchronised"
    return ok("clock", f"{value}, {how}")


def _ntp() -> str | None:
    """What timedatectl says of the clock: yes, no, or None where it says nothing."""
    tool = shutil.which("timedatectl")
    if tool is None:
        return None
    words = [tool, "show", "--property=NTPSynchronized", "--value"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=10)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.strip() or None


def check_memory() -> Finding:
    """What a node may still take, by the machine and by its control group."""
    text = Path("/proc/meminfo").read_text(encoding="ascii")
    told = dict(line.split(":", 1) for line in text.splitlines())
    free = int(told["MemAvailable"].split()[0]) * 1024
    limit = _memory_limit()
    if limit is not None:
        free = min(free, limit)
    value = f"{free / MIB:.0f} MiB for this process"
    remedy = "end other programs, or raise the memory limit (MemoryMax)"
    if free < _LEAST_MEMORY:
        return fail("memory", value, remedy)
    return ok("memory", value) if free >= _GOOD_MEMORY else warn("memory", value, remedy)


def _memory_limit() -> int | None:
    """The limit of our control group in version 2, if it has one."""
    for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        if line.startswith("0::"):
            limit = Path("/sys/fs/cgroup") / line[3:].lstrip("/") / "memory.max"
            if limit.is_file():
                said = limit.read_text(encoding="ascii").strip()
                return int(said) if said.isdecimal() else None
    return None


def check_disk(folder: Path | None) -> Finding:
    """Room in the state folder, and how long it takes until something is safely in there."""
    if folder is None:
        return warn("disk", "no state folder", "give --state: without it a crash is the end")
    other = "give another --state, or rights to this one"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
        took = _sync_seconds(folder)
    except OSError as exc:
        return fail("disk", f"{folder}: {exc.strerror or exc}", other)
    value = f"{folder}: {free / MIB:,.0f} MiB free, {took * 1e3:.1f} ms to be safe on disk"
    if free < _LEAST_FREE:
        return fail("disk", value, "make room")
    if free < _GOOD_FREE:
        return warn("disk", value, "make room: records and checkpoints need some")
    if took > _SLOW_SYNC:
        return warn("disk", value, "slow: leave out --durable, or save more rarely (--checkpoint)")
    return ok("disk", value)


def _sync_seconds(folder: Path) -> float:
    """The slowest of a few small writes that wait for the disk."""
    slowest = 0.0
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(_SYNCS):
            began = perf_counter()
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
            slowest = max(slowest, perf_counter() - began)
    return slowest
