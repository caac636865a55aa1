"""Fixtures of the container tests: an engine or a reason, the image, a project that goes away."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.docker.engine import (
    BUILD_DEADLINE,
    COMPOSES,
    IMAGE,
    Project,
    composes,
    docker,
    why_not,
)

MakeProject = Callable[..., Project]
REQUIRED = "required"  # no engine is a failure, and not a reason to skip


@pytest.fixture(scope="session")
def image() -> Iterator[str]:
    """The image of this working tree, built by the first compose that there is."""
    reason = why_not()
    if reason is not None and os.environ.get("DLAG_TEST_DOCKER") == REQUIRED:
        pytest.fail(reason)
    elif reason is not None:
        pytest.skip(reason)
    version = next(name for name, there in composes().items() if there)
    project = Project(version, f"dlag-build-{os.getpid()}", {})
    project.compose("build", deadline=BUILD_DEADLINE)
    yield version
    docker("image", "rm", "--force", IMAGE)


@pytest.fixture
def project(image: str, tmp_path: Path) -> Iterator[MakeProject]:
    """Makes a project of the first compose that there is; afterwards nothing of it is left."""
    yield from _projects(image, tmp_path)


@pytest.fixture
def other_project(image: str, tmp_path: Path) -> Iterator[MakeProject]:
    """The same of the other compose."""
    (other,) = COMPOSES.keys() - {image}
    if not composes()[other]:
        pytest.skip(f"there is no {' '.join(COMPOSES[other])}, only {image}")
    yield from _projects(other, tmp_path)


def _projects(version: str, folder: Path) -> Iterator[MakeProject]:
    made: list[Project] = []

    def make(**settings: str) -> Project:
        results = folder / "results"
        results.mkdir()
        name = f"dlag-test-{os.getpid()}-{len(made)}"
        made.append(Project(version, name, {"MESH_RESULTS": str(results), **settings}))
        return made[-1]

    yield make
    for each in made:
        each.compose("down", "--volumes", "--timeout", "2")
        assert each.left() == []
