"""A unit of deploy/systemd started as systemd would start it, on a device that is a folder here.

Taken from the unit and its drop-ins: ExecStart, Environment, WorkingDirectory, StateDirectory,
CacheDirectory, LoadCredential, UMask. Its user, what keeps it in its sandbox and the limits on what
it takes are not: that needs systemd itself, and commands that do not lie in a home of root's.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dlag_lab.network.namespaces import inside
from tests.cluster.meshes import BIN
from tests.trust.access import let_read

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"
_COMMANDS, _SETTINGS = "/opt/dlag/bin", "/etc/dlag"  # on a device, as docs/edge.md installs it

Service = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Device:
    """One host: its files and its place in the network."""

    root: Path  # what is / on the device
    netns: str

    def at(self, path: str) -> Path:
        """Where a file of the device lies here."""
        return self.root / path.lstrip("/")

    @property
    def settings(self) -> Path:
        """Its /etc/dlag."""
        return self.at(_SETTINGS)


def start(unit: str, device: Device, *, drop_ins: bool) -> subprocess.Popen[bytes]:
    """The service on its device; what it says goes into the device's /var/log/UNIT.log."""
    service = read_unit(unit, drop_ins=drop_ins)
    (directory,) = service["StateDirectory"]
    for place in (device.at(f"/var/lib/{directory}"), device.at(f"/var/cache/{directory}")):
        place.mkdir(mode=0o700, parents=True)
    assert service["CacheDirectory"] == [directory]
    credentials = device.at(f"/run/credentials/{unit}.service")
    for line in service["LoadCredential"]:
        name, source = line.split(":", 1)
        _load_credential(device.at(source), credentials / name)

    def resolved(text: str) -> str:
        known = {"S": device.at("/var/lib"), "C": device.at("/var/cache"), "d": credentials}
        text = re.sub("%(.)", lambda match: str(known[match[1]]), text)
        return text.replace(_COMMANDS, str(BIN)).replace(_SETTINGS, str(device.settings))

    (command,) = service["ExecStart"]
    said = [word for line in service["Environment"] for word in shlex.split(resolved(line))]
    (folder,) = service["WorkingDirectory"] or ["/"]
    (umask,) = service["UMask"]
    log = device.at(f"/var/log/{unit}.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    with inside(device.netns), log.open("wb") as journal:
        return subprocess.Popen(
            shlex.split(resolved(command)),
            env={"PATH": os.defpath} | dict(word.split("=", 1) for word in said),
            cwd=resolved(folder),
            stdin=subprocess.DEVNULL,
            stdout=journal,
            stderr=subprocess.STDOUT,
            umask=int(umask, 8),
        )


def read_unit(unit: str, *, drop_ins: bool) -> Service:
    """Each key of [Service] with its values, those of the drop-ins last; no value empties it."""
    files = [UNITS / f"{unit}.service"]
    files += sorted((UNITS / f"{unit}.service.d").glob("*.conf")) if drop_ins else []
    found: Service = defaultdict(list)
    for file in files:
        section = ""
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("["):
                section = line
            elif section == "[Service]" and "=" in line and not line.startswith("#"):
                key, value = line.split("=", 1)
                found[key] = [*found[key], value] if value else []
    return found


def _load_credential(source: Path, copy: Path) -> None:
    """A file for the service alone: by an access list, as systemd 254 and newer do it."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(source.read_bytes())
    copy.chmod(0o400)
    with suppress(OSError):  # a file system without access lists: the owner alone
        let_read(copy, os.geteuid())
