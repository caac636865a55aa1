"""What two run folders say of each other's bits."""

from __future__ import annotations

import json
import logging
import os
import platform
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from coordinator.plan import RunSettings
from dlag_lab.compare import finished
from dlag_lab.folder import RunFolder, read_object
from dlag_lab.report import render
from dlag_lab.resuming import other_bits
from dlag_lab.runs import Run, RunRequest
from dlag_node.problems.blas import blas_names

OTHERS = "openblas 0.0.1 Prescott"


@pytest.fixture
def run(tmp_path: Path) -> RunRequest:
    settings = RunSettings(method="extra", topology="ring:4", rounds=2)
    request = RunRequest(settings=settings, mode="simulate", target=None, out=tmp_path / "run")
    Run(request).execute()
    return request


def test_a_run_says_which_blas_and_which_kernels_it_had(run: RunRequest) -> None:
    folder = RunFolder(run.out)
    assert read_object(folder.run_path)["blas"] == blas_names()
    assert all(len(name.split()) >= 2 for name in blas_names())
    assert f"computed with {', '.join(blas_names())}" in render(folder.load())


def test_a_difference_in_kernels_is_named_and_the_run_is_not_taken_for_the_same(
    run: RunRequest, caplog: pytest.LogCaptureFixture
) -> None:
    folder = RunFolder(run.out)
    found = read_object(folder.run_path)
    assert finished(run, data_sha256=found["data_sha256"]) is not None
    assert other_bits(found, found) == []
    folder.write_run(found | {"blas": [OTHERS]})
    reason = f"blas was {OTHERS} and is {', '.join(blas_names())}"
    assert other_bits(read_object(folder.run_path), found) == [reason]
    with caplog.at_level(logging.INFO):
        assert finished(run, data_sha256=found["data_sha256"]) is None
    assert f"is made anew: {reason}" in caplog.text
    assert asdict(run.settings)["method"] in caplog.text


def named_with(kernels: str) -> list[str]:
    program = (
        "import json; from dlag_node.problems import blas; print(json.dumps(blas.blas_names()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"OPENBLAS_CORETYPE": kernels},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    named: list[str] = json.loads(done.stdout)
    if not all(name.startswith("openblas") for name in named):
        pytest.skip(f"no OpenBLAS: {named}")
    return named


@pytest.mark.skipif(platform.machine() != "x86_64", reason="kernels of x86-64")
def test_kernels_are_those_that_the_environment_names() -> None:
    assert all(name.endswith(" Haswell") for name in named_with("Haswell"))
    assert named_with("Prescott") != named_with("Haswell")
