"""A Docker engine and its compose, as the tests drive them: by their commands."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
IMAGE = "dlag-mesh-test"
COMPOSES = {"v2": ["docker", "compose"], "v1": ["docker-compose"]}
DEADLINE = 120.0  # seconds for what takes a few
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


def read_logs_until(container: str, words: str) -> None:
    """Follow a container's log up to the line that holds `words`; its end comes too soon."""
    command = ["docker", "logs", "--follow", container]
    with subprocess.Popen(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE) as following:
        assert following.stdout is not None
        try:
            assert any(words.encode() in line for line in following.stdout), f"no {words!r} came"
        finally:
            following.kill()


@dataclass(frozen=True, slots=True)
class Project:
    """One compose project of ours, under a name that is nobody else's."""

    version: str
    name: str
    settings: dict[str, str]

    def compose(self, *argv: str, deadline: float = DEADLINE) -> str:
        """A compose command on this project that must not fail."""
        command = [*COMPOSES[self.version], "--project-name", self.name, *argv]
        return _checked(command, deadline=deadline, settings=self.settings)

    def containers(self, service: str) -> list[dict[str, Any]]:
        """What the engine knows of the containers of one service, running or not."""
        filters = ["--filter", f"{_LABEL}={self.name}"]
        filters += ["--filter", f"label=com.docker.compose.service={service}"]
        ids = docker("ps", "--all", "--quiet", *filters).split()
        found: list[dict[str, Any]] = json.loads(docker("inspect", *ids)) if ids else []
        return found

    def left(self) -> list[str]:
        """Everything of this project that the engine still has."""
        labelled = ["--quiet", "--filter", f"{_LABEL}={self.name}"]
        lists = (["ps", "--all"], ["network", "ls"], ["volume", "ls"])
        return [each for what in lists for each in docker(*what, *labelled).split()]


def _checked(
    command: list[str], *, deadline: float = DEADLINE, settings: dict[str, str] | None = None
) -> str:
    done = _run(command, deadline=deadline, settings=settings)
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
