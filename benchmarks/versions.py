"""Two versions of this project in turns: rounds a second and CPU time a message of their meshes.

    git worktree add --detach ../before COMMIT
    .venv/bin/python benchmarks/versions.py ../before

Each turn is a process of its own that runs the mesh of `benchmarks/rounds.py` from one of the two
checkouts, so that what slows the machine down slows both; the figure is the median of the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent.parent
ROUNDS = {13: 2_500, 10_000: 800}
REPEATS = 9

# run in a checkout: its own code comes first, whatever is installed
TURN = """
import sys
import dlag_node, rounds, turns
from threadpoolctl import threadpool_limits
assert dlag_node.__file__.startswith(sys.argv[1]), dlag_node.__file__
threadpool_limits(1)
made = turns.turn(rounds.mesh, dim=int(sys.argv[2]), rounds=int(sys.argv[3]))
print([made.rate, made.cpu])
"""


def turn(checkout: Path, dim: int) -> tuple[float, float]:
    """Rounds a second and CPU seconds a message of one version's mesh."""
    path = os.pathsep.join([str(checkout), str(checkout / "benchmarks")])
    argv = [sys.executable, "-c", TURN, str(checkout), str(dim), str(ROUNDS[dim])]
    env = os.environ | {"PYTHONPATH": path}
    made = subprocess.run(
        argv, cwd=checkout, env=env, stdout=subprocess.PIPE, text=True, check=True
    )
    rate, cpu = json.loads(made.stdout)
    return rate, cpu


def main() -> None:
    """Print this version's figures over the other's."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("other", type=Path, help="another checkout of this project")
    options.add_argument("--repeats", type=int, default=REPEATS)
    asked = options.parse_args()
    for dim in ROUNDS:
        pairs = [(turn(HERE, dim), turn(asked.other.resolve(), dim)) for _ in range(asked.repeats)]
        for name, at in (("rounds a second", 0), ("CPU a message", 1)):
            ratios = sorted(ours[at] / theirs[at] for ours, theirs in pairs)
            print(
                f"d = {dim:,}: {name} over the other's {median(ratios):.3f} "
                f"({ratios[0]:.3f} to {ratios[-1]:.3f}, {asked.repeats} turns each)"
            )


if __name__ == "__main__":
    main()
