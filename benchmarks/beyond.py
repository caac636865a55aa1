"""The tables of docs/beyond.md: `tree` everywhere, and baselines at their best.

    python benchmarks/beyond.py places       tree and every untuned baseline, place by place
    python benchmarks/beyond.py tuned        every baseline with its step tuned to this very problem
    ... --write docs/beyond.md               put the table between its markers there

From simulated runs. All are to 1e-7, the worst worker's f(theta_i) - f*. In `places` a baseline is
stopped once it has sent five times the messages of tree.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from counting import NEWTON, Count, Job, count

from dlag_lab.document import fill
from dlag_node.errors import ConfigError, DlagError

PATIENCE = 5  # times the messages of tree, then a baseline has lost
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
    """tree, then every baseline up to PATIENCE times its messages."""
    name, settings = place
    given = tuple(settings.items())
    tree = count(Job("tree", given))
    cap = PATIENCE * tree.messages if not tree.why else float("inf")
    found = {}
    for method in BASELINES:
        try:
            found[method.partition(":")[0]] = count(Job(method, given, cap=cap))
        except ConfigError as exc:
            found[method.partition(":")[0]] = Count(why=str(exc)[:40])
    return name, tree, found


def table_of_places(pool: ProcessPoolExecutor, data_dir: str) -> str:
    """The table: tree against the best baseline of each place."""
    lines = [
        "| place | rounds | messages | payload bytes | sample gradients | best baseline |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for name, tree, found in pool.map(in_place, places(data_dir)):
        there = {method: each for method, each in found.items() if not each.why}
        if there:
            best = min(there, key=lambda method: there[method].messages)
            beaten = f"`{best}` {there[best].messages:,}"
        else:
            beaten = f"none within {PATIENCE} times as many"
        cells = [f"{tree.rounds:,}", f"{tree.messages:,}", f"{tree.payload:,}"]
        row = f"| {name} | {' | '.join(cells)} | {tree.gradients:,} | {tree.why or beaten} |"
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
    "fgm:start=warm,eps={}": ("eps", (1e-6, 1e-7, 1e-8)),
}


def table_of_tuned(pool: ProcessPoolExecutor, _: str) -> str:
    """The table: the best of each grid, and the method's own default beside tree's."""
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
    for method in ("mdlag-all", "lazy-extra", "lazy-exact-diffusion", "lazy-admm", "tree"):
        each = count(Job(method, ()))
        lines.append(f"| `{method}` | nothing | | {each.rounds:,} | {each.messages:,} |")
    return "\n".join(lines)


TABLES: dict[str, Callable[[ProcessPoolExecutor, str], str]] = {
    "places": table_of_places,
    "tuned": table_of_tuned,
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
