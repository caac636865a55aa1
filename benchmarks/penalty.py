"""How good is ADMM's balanced penalty? Rounds with it, with sqrt(mu_min L_max), with the best c.

python benchmarks/penalty.py [--write docs/beyond.md]
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from coordinator.plan import Plan, RunSettings
from dlag_lab.document import fill
from dlag_lab.referee import Referee
from dlag_lab.simulate import Simulator, engines_of

TARGET = 1e-7
ROUNDS = 600
FACTORS = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8)  # of the balanced c
PLACES: tuple[dict[str, object], ...] = (
    *(
        {"topology": graph, "shards": shards}
        for graph in ("grid:5x5", "ring:25", "star:25", "complete:25", "erdos:25,0.2")
        for shards in ("uneven:1,10", "even")
    ),
    {"lam": 0.1},
    {"lam": 1e-3},
    {"lam": 1e-4},
)


def rounds(method: str, place: dict[str, object]) -> int | None:
    """Rounds to the target; None where ROUNDS do not do."""
    plan = Plan(RunSettings(method=method, rounds=ROUNDS, **place))  # type: ignore[arg-type]
    referee = Referee(plan, target=TARGET, rounds=ROUNDS, report=lambda _: None)
    Simulator(plan).run(referee)
    return referee.reached


def line(place: dict[str, object]) -> str:
    """One row of the table."""
    plan = Plan(RunSettings(method="admm:c=balanced", **place))  # type: ignore[arg-type]
    c = float(engines_of(plan)[0].method.parameters["c"])
    tried = {factor: rounds(f"admm:c={factor * c!r}", place) for factor in FACTORS}
    best = min(FACTORS, key=lambda factor: tried[factor] or ROUNDS)
    cells = (tried[1.0], rounds("admm", place), tried[best])
    shown = " | ".join("-" if each is None else str(each) for each in cells)
    name = ", ".join(f"{key} {value}" for key, value in place.items())
    return f"| {name} | {shown} | {best:g} |"


def main() -> None:
    """Print the table, and write it where it belongs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    lines = [
        "| heart, 25 nodes | balanced c | sqrt(mu_min L_max) | best c | best c / balanced c |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    with ProcessPoolExecutor(2) as pool:
        lines += pool.map(line, PLACES)
    table = "\n".join(lines) + f"\n\nRounds to 1e-7; - is more than {ROUNDS}."
    print(table)
    if asked.write is not None:
        fill(asked.write, "penalty", table)


if __name__ == "__main__":
    main()
