"""Fixtures of the container tests: an engine or a reason, the image, a project that goes away."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from tests.docker.engine import BUILD_DEADLINE, COMPOSES, IMAGE, Project, composes, docker, why_not


@pytest.fixture(scope="session")
def image() -> Iterator[str]:
    """The image of this working tree, built by the first compose that there is."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    version = next(name for name, there in composes().items() if there)
    project = Project(version, f"dlag-build-{os.getpid()}", {})
    project.compose("build", deadline=BUILD_DEADLINE)
    yield version
    docker("image", "rm", "--force", IMAGE)


@pytest.fixture(params=list(COMPOSES))
def project(request: pytest.FixtureRequest, image: str) -> Iterator[Callable[..., Project]]:
    """Makes a project, for each version of compose; afterwards nothing of it is left."""
    if not composes()[request.param]:
        pytest.skip(f"there is no {' '.join(COMPOSES[request.param])}, only {image}")
    made: list[Project] = []

    def make(**settings: str) -> Project:
        made.append(Project(request.param, f"dlag-test-{os.getpid()}-{len(made)}", settings))
        return made[-1]

    yield make
    for each in made:
        each.compose("down", "--volumes", "--timeout", "2")
