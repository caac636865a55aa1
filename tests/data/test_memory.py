"""A matrix larger than what a process may have of its own is mapped, and computed with as it lies.

The process is a child, so that what it holds is its own: memory that no file backs (RssAnon).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SIZE = 320 << 20
OWN = 100 << 20  # what the child may need beside the matrix: a third of it
CHILD = """
import re, sys
from pathlib import Path
import numpy as np
from dlag_node.data import agree, read_table, summarise
from dlag_node.problems import LOGISTIC, Problem

def own():
    return 1024 * int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

np.ones((500, 50)).T @ np.ones((500, 50))  # BLAS has its buffers
before = own()
table = read_table(Path(sys.argv[1]), label=sys.argv[2])
how = agree({"it": summarise(table, sys.argv[3], who="it")}, loss=LOGISTIC, scale=sys.argv[3],
            intercept=0.0)
f = Problem(how.rows(table.rows), how.labels(table.labels), LOGISTIC, n0=table.rows.samples,
            lam=0.01)
theta = np.zeros(f.dim)
f.value(theta), f.gradient(theta), f.hessian(theta), f.L, f.L_sample
f.rows.weighted_norms(np.ones(f.dim))
print(own() - before)
"""


@pytest.mark.parametrize("scale", ["none", "minmax"])
def test_a_matrix_of_320_MiB_costs_no_memory_of_its_own(tmp_path: Path, scale: str) -> None:
    dim = 40
    samples = SIZE // (8 * dim)
    matrix = np.lib.format.open_memmap(  # a file of holes, which reads as zeros
        tmp_path / "X.npy", "w+", np.float64, (samples, dim)
    )
    matrix[0, :7] = 1.0
    del matrix
    np.save(tmp_path / "y.npy", np.arange(samples) % 2)
    argv = [sys.executable, "-c", CHILD, str(tmp_path / "X.npy"), str(tmp_path / "y.npy"), scale]
    environment = {"TMPDIR": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=200, env=environment)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < OWN
