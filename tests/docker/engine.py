"""A Docker engine and its compose, as the tests drive them: by their commands."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

ROOT = Path(__file__).parents[2]
IMAGE = "dlag-mesh-test"
COMPOSES = {"v2": ["docker", "compose"], "v1": ["docker-compose"]}
RING = {"MESH_TOPOLOGY": "ring:4", "MESH_METHOD": "dlag", "MESH_SEED": "3"}  # a small mesh
DEADLINE = 300.0  # seconds for what takes ten; the machine may be busy
BUILD_DEADLINE = 900.0  # seconds; a first build fetches 150 MB and compiles

_LABEL = "label=com.docker.compose.project"


def why_not() -> str | None:
    """Why no engine can be used here; None if one can."""
    if not os.environ.get("DLAG_TEST_DOCKER"):
        return "container tests are run by make test-docker"
    if shutil.which("docker") is None:
        return "there is no docker command"
    asked = _run(["docker", "info", "--format", "{{.ServerErrors}}"])
    if asked.returncode != 0 or asked.stdout.strip() not in ("[]", ""):
        return f"no Docker engine answers: {(asked.stderr or asked.stdout).strip()[-200:]}"
    if not any(composes().values()):
        return "there is neither `docker compose` nor docker-compose"
    return None


def composes() -> dict[str, bool]:
    """Which versions of compose there are."""
    return {
        name: shutil.which(command[0]) is not None and _run([*command, "version"]).returncode == 0
        for name, command in COMPOSES.items()
    }


def docker(*argv: str) -> str:
    """A docker command that must not fail; returns what it says."""
    return _checked(["docker", *argv])


def in_image(*argv: str) -> str:
    """What a command says in a container of its own, without a network."""
    return docker("run", "--rm", "--network", "none", IMAGE, *argv)


def kill_process(container: dict[str, Any]) -> None:
    """End a container's process as a crash would: for `docker kill`, nobody starts it again."""
    pid = container["State"]["Pid"]
    as_root = ["--pid", "host", "--user", "0", "--cap-add", "KILL", "--network", "none"]
    docker("run", "--rm", *as_root, IMAGE, "sh", "-c", f"kill -9 {pid}")


def plug(container: dict[str, Any], *, up: bool) -> None:
    """Bring a container's network interface down, or up again."""
    script = f"""
import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"eth0", {int(up)}))  # SIOCSIFFLAGS
"""
    there = ["--network", f"container:{container['Id']}", "--user", "0", "--cap-add", "NET_ADMIN"]
    docker("run", "--rm", *there, IMAGE, "python", "-c", script)


def read_logs_until(containers: list[dict[str, Any]], words: str, *, times: int = 1) -> None:
    """Wait until one of these containers has said `words` so often; they may start again."""
    give_up = monotonic() + DEADLINE
    while not any(logs(each).count(words) >= times for each in containers):
        assert monotonic() < give_up, f"no {words!r} came: {logs(containers[0])[-3000:]}"
        sleep(0.2)


def logs(container: dict[str, Any]) -> str:
    """All that a container's processes have said."""
    done = _run(["docker", "logs", container["Id"]])
    return done.stdout + done.stderr


def address_of(container: dict[str, Any]) -> str:
    """Where a container is on its only network."""
    (network,) = container["NetworkSettings"]["Networks"].values()
    return str(network["IPAddress"])


def fetch(container: dict[str, Any], path: str) -> bytes:
    """Every byte below a path in a container, running or not, and in what is mounted there."""
    command = ["docker", "cp", f"{container['Id']}:{path}", "-"]
    done = subprocess.run(command, capture_output=True, timeout=DEADLINE, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        found = [tar.extractfile(each) for each in tar.getmembers() if each.isfile()]
        return b"".join(each.read() for each in found if each is not None)


@dataclass(frozen=True, slots=True)
class Project:
    """One compose project of ours, under a name that is nobody else's."""

    version: str
    name: str
    settings: dict[str, str]

    def compose(self, *argv: str, deadline: float = DEADLINE) -> str:
        """A compose command on this project that must not fail; returns what it says."""
        done = self.attempt(*argv, deadline=deadline)
        said = f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
        assert done.returncode == 0, f"compose {' '.join(argv)}: {said}"
        return done.stdout

    def attempt(self, *argv: str, deadline: float = DEADLINE) -> subprocess.CompletedProcess[str]:
        """A compose command on this project that may fail."""
        files = ["--file", "docker-compose.yml"]
        if "MESH_NETWORK" in self.settings:
            files += ["--file", "docker-compose.network.yml"]
        command = [*COMPOSES[self.version], *files, "--project-name", self.name, *argv]
        return _run(command, deadline=deadline, settings=self.settings)

    def one(self, service: str) -> dict[str, Any]:
        """What the engine knows of the only container of a service."""
        (found,) = self.containers(service)
        return found

    def containers(self, service: str) -> list[dict[str, Any]]:
        """What the engine knows of the containers of one service, running or not."""
        filters = ["--filter", f"{_LABEL}={self.name}"]
        filters += ["--filter", f"label=com.docker.compose.service={service}"]
        ids = docker("ps", "--all", "--quiet", *filters).split()
        found: list[dict[str, Any]] = json.loads(docker("inspect", *ids)) if ids else []
        return found

    def stranger(self, *argv: str) -> str:
        """What a command says in a container that is on the mesh's network, and no part of it."""
        done = _run(["docker", "run", "--rm", "--network", self._network, IMAGE, *argv])
        return done.stdout + done.stderr

    @contextmanager
    def guests(self, count: int) -> Iterator[None]:
        """So many containers on the mesh's network that do nothing but have addresses there."""
        ids: list[str] = []
        try:
            for _ in range(count):
                idle = ["--network", self._network, "--init", IMAGE, "sleep", "infinity"]
                ids.append(docker("run", "--detach", *idle).strip())
            yield
        finally:
            docker("rm", "--force", *ids)

    @property
    def _network(self) -> str:
        (name,) = self.one("coordinator")["NetworkSettings"]["Networks"]
        return str(name)

    def left(self) -> list[str]:
        """Everything of this project that the engine still has."""
        labelled = ["--quiet", "--filter", f"{_LABEL}={self.name}"]
        lists = (["ps", "--all"], ["network", "ls"], ["volume", "ls"])
        return [each for what in lists for each in docker(*what, *labelled).split()]


def _checked(command: list[str]) -> str:
    done = _run(command)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def _run(
    command: list[str], *, deadline: float = DEADLINE, settings: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    mesh_free = {name: value for name, value in os.environ.items() if not name.startswith("MESH_")}
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**mesh_free, "MESH_IMAGE": IMAGE, **(settings or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=deadline,
        check=False,
    )
