"""The tables of docs/beyond.md: `auto` everywhere, baselines at their best, each idea alone.

    python benchmarks/beyond.py places       auto and every untuned baseline, place by place
    python benchmarks/beyond.py tuned        every baseline with its step tuned to this very problem
    python benchmarks/beyond.py ablation     each idea alone and all together
    ... --write docs/beyond.md               put the table between its markers there

From simulated runs: the simulator counts what real processes count, to the last message. All are to
1e-7, the worst worker's f(theta_i) - f*. In `places` a baseline is stopped once it has sent five
times the messages of auto.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ablation_figure import draw

from coordinator.plan import Plan, RunSettings
from dlag_lab.document import fill
from dlag_lab.referee import Referee
from dlag_lab.simulate import Simulator
from dlag_node.errors import ConfigError, ConvergenceError, DlagError
from dlag_node.rounds import Engine

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
TARGET = 1e-7
PATIENCE = 5  # times the messages of auto, then a baseline has lost
ROUNDS = 30_000

# The dual methods with Newton's method inside: the same messages, in a fraction of the time.
NEWTON = "solver=newton,stop=exact:1e-10"
BASELINES = (
    f"ssda:{NEWTON}",
    f"msda:{NEWTON}",
    f"dlag:{NEWTON}",
    f"mdlag:{NEWTON}",
    "extra",
    "exact-diffusion",
    "diging",
    "admm",
    "cola",
    "dsba",
    "adfs",
)


@dataclass(frozen=True, slots=True)
class Job:
    """One run: a method in a place, given up after `cap` messages."""

    method: str
    settings: tuple[tuple[str, object], ...]
    preset: str = "paper"
    cap: float = float("inf")


@dataclass(frozen=True, slots=True)
class Count:
    """What a run took to the target; `why` it did not get there, if it did not."""

    rounds: int = 0
    messages: int = 0
    payload: int = 0
    gradients: int = 0
    why: str = ""


class _EnoughError(Exception):
    """The run has sent more than it may."""


def count(job: Job) -> Count:
    """Run the job in the simulator, to the target or to its cap."""
    rows: list[list[tuple[int, int, int]]] = []

    def note(engine: Engine) -> None:
        record = engine.last_record
        assert record is not None
        while len(rows) <= record.k:
            rows.append([])
        rows[record.k].append((record.deltas, record.payload_bytes, record.gradients))
        nonlocal sent
        sent += record.deltas
        if sent > job.cap:
            raise _EnoughError

    sent = 0
    settings = RunSettings(
        method=job.method, preset=job.preset, rounds=ROUNDS, **dict(job.settings)
    )  # type: ignore[arg-type]
    try:
        plan = Plan(settings)
        referee = Referee(plan, target=TARGET, rounds=ROUNDS, report=lambda _: None)
        Simulator(plan).run(referee, finished=note)
    except _EnoughError:
        return Count(why=f"> {sent:,}")
    except ConvergenceError as exc:
        return Count(why="diverges" if "diverges" in str(exc) else str(exc)[:40])
    if referee.reached is None:
        return Count(why=f"not in {ROUNDS:,} rounds")
    done = [each for row in rows[: referee.reached] for each in row]
    messages, payload, gradients = (sum(column) for column in zip(*done, strict=True))
    return Count(referee.reached, messages, payload, gradients)


# ---------------------------------------------------------------------------------------- places

GRAPHS = ("grid:5x5", "ring:25", "star:25", "complete:25", "erdos:25,0.2", "regular:25,4")
SHARDS = ("uneven:1,10", "uneven:1,100", "even", "labels:0.1")
SETS = ("heart", "heart (raw)", "a1a", "a9a", "w8a", "mushrooms", "heart, ridge")
LAMBDAS = (1e-1, 1e-2, 1e-3, 1e-4)


def places(data_dir: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Every place by its name: graphs and shards on heart, then data and lambda on the grid."""
    for graph in GRAPHS:
        for shards in SHARDS:
            yield f"{graph}, {shards}", {"topology": graph, "shards": shards}
    files = {"heart (raw)": f"{data_dir}/heart", "a9a": "a9a.gz", "w8a": "w8a.gz"}
    for data in SETS:
        for lam in LAMBDAS:
            settings: dict[str, object] = {"lam": lam, "data_dir": data_dir}
            settings["data"] = files.get(data, data.partition(",")[0])
            if data.endswith("ridge"):
                settings["problem"] = "ridge"
            yield f"{data}, lambda {lam:g}", settings


def in_place(place: tuple[str, dict[str, object]]) -> tuple[str, Count, dict[str, Count]]:
    """auto, then every baseline up to PATIENCE times its messages."""
    name, settings = place
    given = tuple(settings.items())
    auto = count(Job("auto", given))
    cap = PATIENCE * auto.messages if not auto.why else float("inf")
    found = {}
    for method in BASELINES:
        try:
            found[method.partition(":")[0]] = count(Job(method, given, cap=cap))
        except ConfigError as exc:
            found[method.partition(":")[0]] = Count(why=str(exc)[:40])
    return name, auto, found


def table_of_places(pool: ProcessPoolExecutor, data_dir: str) -> str:
    """The table: auto against the best baseline of each place."""
    lines = [
        "| place | rounds | messages | payload bytes | sample gradients | best baseline |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for name, auto, found in pool.map(in_place, places(data_dir)):
        there = {method: each for method, each in found.items() if not each.why}
        if there:
            best = min(there, key=lambda method: there[method].messages)
            beaten = f"`{best}` {there[best].messages:,}"
        else:
            beaten = f"none within {PATIENCE} times as many"
        cells = [f"{auto.rounds:,}", f"{auto.messages:,}", f"{auto.payload:,}"]
        row = f"| {name} | {' | '.join(cells)} | {auto.gradients:,} | {auto.why or beaten} |"
        lines.append(row)
        print(row, file=sys.stderr, flush=True)
    return "\n".join(lines)


# ----------------------------------------------------------------------------------------- tuned

GRIDS: dict[str, tuple[str, Sequence[float]]] = {
    f"ssda:{NEWTON},eta_beta={{}}": ("eta_beta", (1, 1.5, 2, 2.5, 3)),
    f"ssda:{NEWTON},weights=curvature,constants=tight,eta_beta={{}}": ("eta_beta", (1, 1.3, 1.6)),
    f"msda:{NEWTON},eta_beta={{}}": ("eta_beta", (1, 1.5, 2, 2.5)),
    f"dlag:{NEWTON},D=10,gamma={{0}},c={{0}}": ("gamma = c", (1e-5, 1e-4, 3e-4, 1e-3)),
    f"dlag:{NEWTON},D=10,mu=own,weights=curvature,constants=tight,gamma={{0}},c={{0}}": (
        "gamma = c",
        (1e-4, 1e-3, 3e-3),
    ),
    f"mdlag:{NEWTON},D=10,gamma={{0}},c={{0}}": ("gamma = c", (1e-6, 1e-5, 1e-4)),
    "extra:sigma=1.9,alpha_L={}": ("alpha_L", (1, 1.5, 2, 2.2, 2.3, 2.4)),
    "exact-diffusion:alpha_L={}": ("alpha_L", (1, 1.5, 2, 2.5, 3, 3.5)),
    "diging:sigma=1.9,alpha_L={}": ("alpha_L", (0.3, 0.4, 0.45, 0.47)),
    "admm:c={}": ("c", (0.002, 0.0025, 0.003, 0.0035, 0.004, 0.005)),
    "cola:gamma={}": ("gamma", (0.25, 0.5, 1)),
    "dsba:alpha_L={}": ("alpha_L", (1, 1.5, 2, 2.5, 3)),
    "adfs:output={}": ("output", ("y", "v")),  # type: ignore[dict-item]
}


def table_of_tuned(pool: ProcessPoolExecutor, _: str) -> str:
    """The table: the best of each grid, and the method's own default beside auto's."""
    jobs = [
        (spec, value, Job(spec.format(value), (), cap=150_000))
        for spec, (_, values) in GRIDS.items()
        for value in values
    ]
    counts = list(pool.map(count, [job for *_, job in jobs]))
    lines = ["| method | tuned | best | rounds | messages |", "| --- | --- | --- | ---: | ---: |"]
    for spec, (name, _) in GRIDS.items():
        of_spec = [
            (value, each)
            for (other, value, _), each in zip(jobs, counts, strict=True)
            if other == spec and not each.why
        ]
        if not of_spec:
            lines.append(f"| `{spec}` | {name} | none reached the target in 150,000 messages | | |")
            continue
        value, best = min(of_spec, key=lambda pair: pair[1].messages)
        shown = spec.replace(f"{NEWTON},", "").replace("{0}", "*").replace("{}", "*")
        lines.append(f"| `{shown}` | {name} | {value} | {best.rounds:,} | {best.messages:,} |")
    for method in ("lazy-exact-diffusion", "lazy-admm", "auto"):
        each = count(Job(method, ()))
        lines.append(f"| `{method}` | nothing | | {each.rounds:,} | {each.messages:,} |")
    return "\n".join(lines)


# -------------------------------------------------------------------------------------- ablation

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
    ("certified dual gradients, solver by shape", "dlag:solver=auto,stop=certified:0.5", "paper"),
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
    ("with the first guess, float32: auto", "auto", "paper"),
)  # fmt: skip
SEEDS = range(5)


def table_of_ablation(pool: ProcessPoolExecutor, _: str) -> str:
    """The table: medians over five seeds; and their picture."""
    jobs = [
        Job(method, (("seed", seed),), preset, cap=400_000)
        for _, method, preset in IDEAS
        for seed in SEEDS
    ]
    counts = list(pool.map(count, jobs))
    drawn: list[tuple[str, float, float]] = []
    lines = [
        "| what | method | rounds | messages | payload bytes | sample gradients |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for at, (what, method, preset) in enumerate(IDEAS):
        mine = counts[at * len(SEEDS) : (at + 1) * len(SEEDS)]
        name = f"`{method}`" + ("" if preset == "paper" else f", preset {preset}")
        if any(each.why for each in mine):
            why = "; ".join(sorted({each.why for each in mine if each.why}))
            lines.append(f"| {what} | {name} | {why} | | | |")
            continue
        found = [
            median(getattr(each, field) for each in mine)
            for field in ("rounds", "messages", "payload", "gradients")
        ]
        drawn.append((what, found[1], found[3]))
        cells = " | ".join(f"{value:,.0f}" for value in found)
        lines.append(f"| {what} | {name} | {cells} |")
    draw(drawn, IMAGES)
    return "\n".join(lines)


TABLES: dict[str, Callable[[ProcessPoolExecutor, str], str]] = {
    "places": table_of_places,
    "tuned": table_of_tuned,
    "ablation": table_of_ablation,
}


def main() -> int:
    """Make one table, print it, and write it where it belongs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--write", type=Path, help="a document with the table's markers")
    parser.add_argument("--data-dir", default=os.environ.get("DLAG_DATA_DIR", "../shared/data"))
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    with ProcessPoolExecutor(asked.processes) as pool:
        table = TABLES[asked.table](pool, str(Path(asked.data_dir).resolve()))
    print(table)
    if asked.write is not None:
        fill(asked.write, asked.table, table)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DlagError as exc:
        sys.exit(str(exc))
