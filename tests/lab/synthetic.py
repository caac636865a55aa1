"""A made-up run with counts known by heart: worker i tells its neighbors every few rounds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dlag_lab.folder import RunFolder
from dlag_node.rounds.record import QUIET, SENT, SKIPPED, Record

DIM = 13
PAYLOAD = 8 * DIM  # bytes of one delta
HEADER = 20  # bytes around it
TOKEN = 12  # bytes of a skip
GRADIENTS = 60  # sample gradients of one worker in one round
RATE = 0.95  # of the suboptimality, which starts at 0.4


def period(node: int) -> int:
    return 1 + node % 4


def grid_edges(rows: int, columns: int) -> list[list[int]]:
    edges = []
    for i in range(rows * columns):
        if (i + 1) % columns:
            edges.append([i, i + 1])
        if i + columns < rows * columns:
            edges.append([i, i + columns])
    return sorted(edges)


def asked(rows: int = 4, columns: int = 4, **change: Any) -> dict[str, Any]:
    nodes = rows * columns
    run: dict[str, Any] = {
        "method": "dlag",
        "preset": "paper",
        "parameters": {"gamma": 1e-4, "c": 1e-4, "D": 50, "eta": 0.0123},
        "topology": f"grid:{rows}x{columns}",
        "nodes": nodes,
        "edges": grid_edges(rows, columns),
        "weights": "laplacian",
        "problem": "logistic",
        "lam": 0.01,
        "data": "heart",
        "shards": "uneven:1,10",
        "shard_sizes": [2 + (7 * i) % 18 for i in range(nodes)],
        "dim": DIM,
        "seed": 1,
        "target": 1e-6,
        "rounds": None,
        "mode": "mesh",
        "versions": {"dlag": "0.1.0"},
    }
    return run | change


def write_run(
    path: Path,
    run: dict[str, Any] | None = None,
    *,
    rounds: int = 300,
    K: int = 1,
    sends: Callable[[int, int], bool] = lambda i, k: k % period(i) == 0,
    quiet: Callable[[int, int], bool] = lambda *_: False,
    overdue: Callable[[int, int], bool] = lambda *_: False,
    condition: Callable[[int, int], tuple[float | None, float | None]] = lambda *_: (None, None),
    suboptimality: Callable[[int], float] = lambda k: 0.4 * RATE**k,
) -> RunFolder:
    """Write a folder; only the first of K exchanges is lazy, as MDLAG's is.

    Who does not send is `quiet`, or else says so by a token. `condition` is gap and bound.
    """
    run = asked() if run is None else run
    folder = RunFolder.create(path, force=False)
    folder.write_run(run)
    degrees = np.bincount(np.asarray(run["edges"], dtype=int).reshape(-1), minlength=run["nodes"])
    rng = np.random.default_rng(0)
    for i in range(run["nodes"]):
        age, lines = 0, []
        for k in range(rounds):
            silence = QUIET if quiet(i, k) else SKIPPED
            letters = (SENT if sends(i, k) else silence) + SENT * (K - 1)
            gap, bound = condition(i, k)
            age = 0 if letters[0] == SENT else age + 1
            deltas = letters.count(SENT) * int(degrees[i])
            skips = letters.count(SKIPPED) * int(degrees[i])
            record = Record(
                node=i,
                k=k,
                exchanges=letters,
                deltas=deltas,
                skips=skips,
                payload_bytes=deltas * PAYLOAD,
                sent_bytes=deltas * (PAYLOAD + HEADER) + skips * TOKEN,
                gradients=GRADIENTS,
                step=float(RATE**k),
                age=age,
                compute=0.002 + 0.0005 * float(rng.random()) * run["shard_sizes"][i] / 10,
                wait=0.003 + 0.001 * float(rng.random()),
                quiet=letters.count(QUIET) * int(degrees[i]),
                overdue=int(overdue(i, k)),
                gap=gap,
                bound=bound,
            )
            lines.append(record.to_json() + "\n")
        folder.record_path(i).write_text("".join(lines))
        thetas = np.arange(rounds * DIM, dtype="<f8").reshape(rounds, DIM) + i
        folder.theta_path(i).write_bytes(thetas.tobytes())
    with folder.trajectory_writer() as trajectory:
        for k in range(rounds):
            trajectory.write(
                k, suboptimality=suboptimality(k), consensus_error=suboptimality(k) / 7
            )
    return folder
