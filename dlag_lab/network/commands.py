"""The system's own commands (ip, tc, iptables), and what is missing where they cannot be used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from dlag_lab.network.namespaces import new_namespace
from dlag_lab.network.spec import NetworkSpec
from dlag_node.errors import ConfigError

_DEADLINE = 60.0  # seconds, for what takes milliseconds
_PACKAGES = {"ip": "iproute2", "tc": "iproute2", "iptables": "iptables"}


def missing(spec: NetworkSpec) -> list[str]:
    """What this machine lacks for such a network; empty where nothing is."""
    if sys.platform != "linux":
        return [f"Linux (this is {sys.platform}): its network namespaces"]
    lacking = []
    commands = ["ip", *(["tc"] if spec.disturbs or spec.rate is not None else [])]
    if spec.disturbs:
        commands.append("iptables")
    for name in commands:
        if shutil.which(name) is None:
            lacking.append(f"the command {name} (package {_PACKAGES[name]})")
    if os.geteuid() != 0:
        lacking.append("root: making network namespaces is not for others")
    else:
        try:
            os.close(new_namespace())
        except OSError as exc:
            lacking.append(f"the right to make network namespaces ({exc.strerror})")
    return lacking


def check_machine(spec: NetworkSpec) -> None:
    """A ConfigError that names everything this machine lacks for such a network."""
    lacking = missing(spec)
    if lacking:
        raise ConfigError(f"network {spec}: this machine lacks {'; '.join(lacking)}")


def command(argv: Sequence[str], lines: Sequence[str] = ()) -> None:
    """A command that must work, with `lines` on its standard input; a ConfigError says why not."""
    done = attempt(argv, lines)
    if done:
        raise ConfigError(f"network: {' '.join(argv)}: {done}")


def attempt(argv: Sequence[str], lines: Sequence[str] = ()) -> str:
    """What a command says as it fails; empty where it works."""
    done = subprocess.run(
        list(argv),
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=_DEADLINE,
        check=False,
    )
    if done.returncode == 0:
        return ""
    return done.stderr.strip()[-500:] or f"exit code {done.returncode}"
