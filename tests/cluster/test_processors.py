"""A mesh whose nodes have different processors, as far as BLAS can tell: the simulator's counts.

Half of the nodes run with the kernels that BLAS chooses for this processor, half with those of
another one. Methods without LAPACK have the simulator's bits, too.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from dlag_node.wire.observing import Farewell
from tests.cluster.laboratory import laboratory
from tests.cluster.meshes import DEADLINE, deeds, finish

NODES, ROUNDS = 4, 30
NAME = "OPENBLAS_CORETYPE"
PROBE = "from dlag_node.problems.blas import blas_names; print(*blas_names(), sep=';')"
WITH_LAPACK = ("lazy-admm", "tree")

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="kernels of x86-64")


def environment(kernels: str | None) -> dict[str, str]:
    """Ours, with these kernels of BLAS, or with the processor's own."""
    ours = {name: value for name, value in os.environ.items() if name != NAME}
    return ours if kernels is None else ours | {NAME: kernels}


def blas_with(kernels: str | None) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        env=environment(kernels),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def halves() -> tuple[dict[str, str], dict[str, str]]:
    """Two environments in which BLAS has other kernels."""
    own = blas_with(None)
    for kernels in ("Haswell", "Prescott"):
        if blas_with(kernels) != own:
            return environment(None), environment(kernels)
    pytest.skip(f"this BLAS has one set of kernels: {own}")


@pytest.mark.parametrize("method", ["dlag", "mdlag", "lazy-extra", "adfs", *WITH_LAPACK])
def test_neighbors_with_other_kernels_count_as_the_simulator_does(
    method: str, halves: tuple[dict[str, str], dict[str, str]], tmp_path: Path
) -> None:
    settings = {"method": method, "topology": f"ring:{NODES}", "rounds": ROUNDS}
    with laboratory(tmp_path, **settings) as lab:
        for node in range(NODES):
            lab.start(node, env=halves[node % 2])
        lab.run_to(ROUNDS)
        lab.until(Farewell, {*range(NODES)})
        for process in lab.nodes.values():
            assert process.wait(DEADLINE) == 0
    finish("simulate", tmp_path / "simulated", **settings)
    for node in range(NODES):
        ours, expected = deeds(tmp_path, node), deeds(tmp_path / "simulated", node)
        if method in WITH_LAPACK:
            for record in (*ours, *expected):
                del record["step"]
        else:
            name = f"node-{node:03d}.theta"
            theta = (tmp_path / "simulated" / "nodes" / name).read_bytes()
            assert (tmp_path / "nodes" / name).read_bytes() == theta
        assert ours == expected
