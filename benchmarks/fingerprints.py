"""What every method sends and where it ends, to the last bit, as a table to compare by.

Small runs of the simulator: each method with each preset, then the solvers, rules, forms and stops
that these leave out. A run's fingerprint is its counts (rounds, messages, bytes, sample gradients),
the SHA-256 of the final thetas and that of all recorded steps.

    fingerprints.py --out table.json            run all, write the table
    fingerprints.py --compare table.json        run all, print every difference, exit 1 if any
    fingerprints.py --compare table.json --counts       bits may differ, counts may not
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from threadpoolctl import threadpool_info, threadpool_limits

from coordinator.plan import RunSettings
from dlag_lab.live import Progress
from dlag_lab.runs import Run, RunRequest
from dlag_node.errors import DlagError
from dlag_node.methods import METHODS
from dlag_node.methods.spec import PRESETS

COUNTS = (
    "rounds",
    "exchanges",
    "deltas_sent",
    "deltas_skipped",
    "bytes_payload",
    "bytes_frames",
    "sample_gradients",
    "rounds_to_target",
    "ended",
)
FOUND = (*COUNTS, "failure")
BITS = ("theta_sha256", "steps_sha256")

Fingerprint = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One run."""

    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    target: float | None = None

    @property
    def name(self) -> str:
        """What the table calls it: all that sets it apart."""
        more = [f"{key}={value}" for key, value in self.settings.items()]
        more += [] if self.target is None else [f"target={self.target:g}"]
        return " ".join([self.method, *more])


class Silent:
    """No view at all."""

    def update(self, progress: Progress) -> None:
        """Nobody looks."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None: ...


def main() -> int:
    """Run, then write or compare."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    options.add_argument("--out", type=Path, help="write the table there")
    options.add_argument("--compare", type=Path, help="a table that this one must be equal to")
    options.add_argument("--counts", action="store_true", help="compare counts alone, not bits")
    chosen = options.parse_args()
    table = measured()
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(table, indent=1) + "\n", encoding="ascii")
    if chosen.compare is None:
        return 0
    before = json.loads(chosen.compare.read_text(encoding="ascii"))
    fields = FOUND if chosen.counts else (*FOUND, *BITS)
    found = list(differences(before, table, fields))
    for line in found:
        print(line)
    what = "counts" if chosen.counts else "counts and bits"
    print(f"{len(table['runs'])} runs, {len(found)} differences in {what}")
    return 1 if found else 0


def measured() -> dict[str, Any]:
    """The table of this code on this machine."""
    began = perf_counter()
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        sparse = Path(folder) / "sparse.libsvm"
        sparse.write_text(sparse_samples(), encoding="ascii")
        runs = {
            case.name: fingerprint(case, Path(folder) / "run", sparse)
            for case in (*every_method(), *the_rest())
        }
    print(f"{len(runs)} runs in {perf_counter() - began:.0f} s", file=sys.stderr)
    return {"blas": sorted({str(each.get("architecture")) for each in blas()}), "runs": runs}


def blas() -> list[dict[str, Any]]:
    """The BLAS libraries of this process."""
    return [each for each in threadpool_info() if each["user_api"] == "blas"]


def every_method() -> Iterator[Case]:
    """All names with all presets on a ring, and the main ones on the paper's grid."""
    for method in METHODS:
        for preset in PRESETS:
            yield Case(method, {"topology": "ring:6", "rounds": 25, "preset": preset})
    for method in ("ssda", "msda", "dlag", "mdlag", "tree", "lazy-extra", "lazy-admm"):
        yield Case(method, {"topology": "grid:5x5", "rounds": 60})


def the_rest() -> Iterator[Case]:
    """Solvers, stop rules, lazy rules, forms, losses and endings that the defaults leave out."""
    ring = {"topology": "ring:6", "rounds": 25}
    for solver in ("katyusha", "svrg", "agd", "newton", "chord"):
        yield Case(f"dlag:solver={solver},stop=relative:0.01", ring)
    for more in ("rule=steps", "mu=own", "predict=linear", "form=i1", "start=cold", "stop=theorem"):
        yield Case(f"dlag:{more}", ring)
    for more in ("weights=curvature", "constants=tight"):
        yield Case(f"mdlag:{more}", ring)
    for more in ("curvature=none", "form=f8", "output=trial"):
        yield Case(f"tree:{more}", ring)
    for method in ("dlag:solver=closed", "dlag:solver=svrg,stop=relative:0.01", "extra", "tree"):
        yield Case(method, ring | {"problem": "ridge"})
    many = {"topology": "path:4", "rounds": 15, "shards": "even", "problem": "ridge"}
    for method in ("dlag:solver=katyusha,stop=epochs:3", "mdlag:solver=svrg", "lazy-admm", "adfs"):
        yield Case(method, many | {"data": "sparse"})
    grid = {"topology": "grid:3x3", "rounds": 3_000}
    for method in ("dlag", "lazy-exact-diffusion", "tree"):
        yield Case(method, grid | {"tol": 1e-6})
        yield Case(method, grid, target=1e-6)


def sparse_samples() -> str:
    """Forty samples of thirty features, two entries each."""
    return "".join(
        f"{j % 5 - 2 + j / 100} {1 + j % 7}:{1 + j / 9} {9 + j % 22}:{-j / 7}\n" for j in range(40)
    )


def fingerprint(case: Case, out: Path, sparse: Path) -> Fingerprint:
    """One run's counts and hashes, or why it failed."""
    settings = case.settings | {"method": case.method, "seed": 3}
    if settings.get("data") == "sparse":
        settings["data"] = str(sparse)
    request = RunRequest(
        settings=RunSettings(**settings), mode="simulate", target=case.target, out=out, force=True
    )
    try:
        result = Run(request, view=Silent()).execute()
    except DlagError as exc:
        return {"failure": type(exc).__name__}
    found = {name: result.summary[name] for name in COUNTS}
    steps = hashlib.sha256(result.records.step.astype("<f8").tobytes()).hexdigest()
    return {**found, "theta_sha256": result.summary["theta_sha256"], "steps_sha256": steps}


def differences(
    before: dict[str, Any], after: dict[str, Any], fields: tuple[str, ...]
) -> Iterator[str]:
    """Each as a line."""
    for name in {**before["runs"], **after["runs"]}:
        old, new = before["runs"].get(name), after["runs"].get(name)
        if old is None or new is None:
            yield f"{name}: {'only now' if old is None else 'no longer there'}"
            continue
        for each in fields:
            if old.get(each) != new.get(each):
                yield f"{name}: {each} {old.get(each)} -> {new.get(each)}"


if __name__ == "__main__":
    sys.exit(main())
