"""Each idea alone and all together: the ablation of docs/beyond.md, its table and its picture.

    python benchmarks/ablation.py [--write docs/beyond.md]

Rounds, messages, bytes and gradients to 1e-7 are medians over five seeds, from simulated runs. The
seconds are those of a real mesh, 25 processes on this machine, of seed 0; a run whose messages
are not the simulator's would be an error.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median

from ablation_figure import Drawn, draw
from counting import NEWTON, TARGET, Count, Job, count

from coordinator.plan import RunSettings
from dlag_lab.document import check_document, fill
from dlag_lab.runs import Run, RunRequest
from dlag_node.errors import DlagError

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
SEEDS = range(5)
CAP = 400_000  # messages, then a method has lost
MESH_ROUNDS = 5_000

IDEAS: tuple[tuple[str, str, str], ...] = (
    ("SSDA, the paper's setting", "ssda", "paper"),
    ("curvature weights", "ssda:weights=curvature", "paper"),
    ("tight constants", "ssda:constants=tight", "paper"),
    ("curvature weights, tight constants", "ssda:weights=curvature,constants=tight", "paper"),
    ("MSDA, the paper's setting", "msda", "paper"),
    ("MDLAG, the paper's setting", "mdlag", "paper"),
    ("all K exchanges lazy, D = 10", "mdlag-all:D=10", "paper"),
    ("all lazy, step rule, K = 2", f"mdlag-all:rule=steps,K=2,{NEWTON}", "paper"),
    ("all lazy, all ideas, K = 2", "mdlag-all:K=2", "auto"),
    ("DLAG, the paper's setting", "dlag", "paper"),
    ("own mu_i in the rule", "dlag:mu=own", "paper"),
    ("step rule, tau = 0.5", "dlag:rule=steps", "paper"),
    ("prediction", "dlag:predict=linear", "paper"),
    ("certified dual gradients, solver by shape", "dlag:solver=best,stop=certified:0.5", "paper"),
    ("curvature weights, tight", "dlag:weights=curvature,constants=tight,D=10", "paper"),
    ("all of these but prediction: preset auto", "dlag", "auto"),
    ("preset auto, prediction", "dlag:predict=linear", "auto"),
    ("preset auto, float32", "dlag:form=f4", "auto"),
    ("preset auto, int8", "dlag:form=i1", "auto"),
    ("EXTRA", "extra", "paper"),
    ("lazy EXTRA", "lazy-extra", "paper"),
    ("exact diffusion, 1/L", "exact-diffusion", "paper"),
    ("1.9/L", "exact-diffusion:alpha_L=1.9", "paper"),
    ("1.9/L, lazy, no prediction", "lazy-exact-diffusion:predict=none", "paper"),
    ("1.9/L, lazy, prediction", "lazy-exact-diffusion", "paper"),
    ("1.9/L, lazy, prediction, 2 local steps", "lazy-exact-diffusion:local=2", "paper"),
    ("1.9/L, lazy, prediction, int8", "lazy-exact-diffusion:form=i1", "paper"),
    ("ADMM, c = sqrt(mu_min L_max)", "admm", "paper"),
    ("balanced c", "admm:c=balanced", "paper"),
    ("balanced c, lazy, no prediction", "lazy-admm:predict=none", "paper"),
    ("balanced c, lazy, prediction", "lazy-admm", "paper"),
    ("balanced c, lazy, prediction, float32", "lazy-admm:form=f4", "paper"),
    ("balanced c, lazy, prediction, float16", "lazy-admm:form=f2", "paper"),
    ("balanced c, lazy, prediction, int8", "lazy-admm:form=i1", "paper"),
    ("tau = 30: the safeguard at work", "lazy-admm:tau=30", "paper"),
    ("tree, no first guess, float64", "tree:curvature=none,form=f8", "paper"),
    ("with the first guess, float64", "tree:form=f8", "paper"),
    ("with the first guess, float32: tree", "tree", "paper"),
)  # fmt: skip


def seconds_on_mesh(method: str, preset: str, expected: Count, repeats: int) -> float:
    """Seconds to the target on real processes, seed 0; the median of `repeats` runs."""
    found = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            settings = RunSettings(method=method, preset=preset, rounds=MESH_ROUNDS)
            request = RunRequest(
                settings=settings, mode="mesh", target=TARGET, out=Path(folder) / "run"
            )
            summary = Run(request).execute().summary
        assert summary["deltas_to_target"] == expected.messages, method
        found.append(summary["seconds_to_target"])
    print(f"{method:60s} {median(found):8.2f} s", file=sys.stderr, flush=True)
    return median(found)


def counted() -> list[list[Count]]:
    """Every idea, five seeds each."""
    jobs = [
        Job(method, (("seed", seed),), preset, cap=CAP)
        for _, method, preset in IDEAS
        for seed in SEEDS
    ]
    with ProcessPoolExecutor(2) as pool:
        counts = list(pool.map(count, jobs))
    return [counts[at : at + len(SEEDS)] for at in range(0, len(counts), len(SEEDS))]


def table(repeats: int) -> str:
    """The table, in the order of IDEAS; draws the picture."""
    load = os.getloadavg()[0]
    drawn: list[Drawn] = []
    lines = [
        "| what | method | rounds | messages | payload bytes | sample gradients | seconds |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (what, method, preset), counts in zip(IDEAS, counted(), strict=True):
        name = f"`{method}`" + ("" if preset == "paper" else f", preset {preset}")
        if any(each.why for each in counts):
            why = "; ".join(sorted({each.why for each in counts if each.why}))
            lines.append(f"| {what} | {name} | {why} | | | | |")
            continue
        rounds, messages, payload, gradients = (
            median(getattr(each, field) for each in counts)
            for field in ("rounds", "messages", "payload", "gradients")
        )
        seconds = seconds_on_mesh(method, preset, counts[0], repeats)
        drawn.append(Drawn(what, messages, gradients, seconds))
        numbers = (f"{value:,.0f}" for value in (rounds, messages, payload, gradients))
        lines.append(f"| {what} | {name} | {' | '.join(numbers)} | {seconds:.2f} |")
    draw(drawn, IMAGES)
    lines += ["", f"Seconds: median of {repeats}, 25 processes on {os.cpu_count()} cores, keys on,"]
    lines[-1] += f" load average {load:.1f} before."
    return "\n".join(lines)


def main() -> int:
    """Make the table, print it, and write it where it belongs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="a document with the table's markers")
    parser.add_argument("--repeats", type=int, default=3, help="runs of the mesh, each")
    asked = parser.parse_args()
    if asked.write is not None:
        check_document(asked.write, "ablation")
    text = table(asked.repeats)
    print(text)
    if asked.write is not None:
        picture = "![Each idea alone and together](images/ablation.png)"
        fill(asked.write, "ablation", f"{text}\n\n{picture}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DlagError as exc:
        sys.exit(str(exc))
