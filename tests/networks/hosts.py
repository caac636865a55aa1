"""Helpers of the tests with network namespaces: small runs over a network, what is left of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from coordinator.plan import RunSettings
from dlag_lab.network.spec import parse_network
from dlag_lab.result import RunResult
from dlag_lab.runs import Run, RunRequest

_ENGINES = re.compile(r"/docker/netns/|\bdlag-engine\b")  # Docker's own, and tools/engine's


def finish_over(network: str, out: Path, **settings: Any) -> RunResult:
    """A run on hosts of their own, to its end."""
    started = settings.pop("started", lambda _: None)
    target = settings.pop("target", None)
    request = RunRequest(
        settings=RunSettings(**settings),
        mode="mesh",
        target=target,
        out=out,
        network=parse_network(network),
    )
    return Run(request, started=started).execute()


def traces() -> dict[str, object]:
    """What a network could leave on the machine, beside processes.

    A namespace lives by a process in it, by a descriptor, or by a mount of its file: without these
    the kernel has removed it, and with it its interfaces, bridges and rules. Those of a Docker
    engine, whose containers come and go, are none of ours.
    """
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    names = _said("ip", "netns", "list").splitlines()
    return {
        "names": [line for line in names if not _ENGINES.search(line)],
        "mounts": [line for line in mounts if " - nsfs " in line and not _ENGINES.search(line)],
        "links": _said("ip", "-brief", "link"),
        "addresses": _said("ip", "-brief", "address"),
        "rules": _rules(),
        "namespaces": namespaces([os.getpid()]),
    }


def namespaces(pids: Iterable[int]) -> set[str]:
    """The network namespaces that these processes are in or hold a descriptor of."""
    found = set()
    for pid in pids:
        process = Path("/proc", str(pid))
        for link in (process / "ns" / "net", *(process / "fd").iterdir()):
            with suppress(FileNotFoundError):  # the listing's own descriptor
                found.add(str(link.readlink()))
    return {target for target in found if target.startswith("net:[")}


def _said(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def _rules() -> list[str]:
    """Without the dates and counters that change by themselves."""
    if shutil.which("iptables-save") is None:
        return []
    return [line for line in _said("iptables-save").splitlines() if line.startswith("-A")]
