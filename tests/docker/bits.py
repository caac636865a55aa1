"""What containers left on the host, beside what the simulator makes of the same settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cluster.meshes import deeds, finish


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def assert_same_bits(folder: Path, *, nodes: int, **settings: Any) -> dict[str, Any]:
    """The results on the host are those of the simulator; returns their summary."""
    ours = folder / "results"
    finish("simulate", folder / "simulated", target=1e-7, **settings)
    there, here = (_read(each / "run.json") for each in (ours, folder / "simulated"))
    assert there["blas"] == here["blas"], "containers and this process have other kernels of BLAS"
    for node in range(nodes):
        name = f"nodes/node-{node:03d}.theta"
        assert (ours / name).read_bytes() == (folder / "simulated" / name).read_bytes()
        assert deeds(ours, node) == deeds(folder / "simulated", node)
    summary, expected = (_read(each / "summary.json") for each in (ours, folder / "simulated"))
    for word in ("theta_sha256", "rounds", "rounds_to_target", "deltas_sent", "suboptimality"):
        assert summary[word] == expected[word], word
    return summary
