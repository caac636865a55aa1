"""Where each worker's time goes: computing, waiting for neighbors, sending and the rest."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from dlag_lab.figures.style import COLORS, framed, look, quiet_grid
from dlag_lab.result import Floats, RunResult
from dlag_lab.summary import seconds_by_kind
from dlag_lab.units import seconds, share

_WORDS = {
    "compute": ("computing", COLORS[0]),
    "wait": ("waiting for neighbors", COLORS[4]),
    "send_and_rest": ("sending and the rest", "#b4bcc4"),
}


def times(result: RunResult) -> Figure | None:
    """One bar a worker; None when the records hold no times."""
    wall = result.summary.get("seconds")
    kinds = seconds_by_kind(result.run, result.records, wall)
    if kinds is None:
        return None
    bars = _per_node(result, wall)
    rows = np.arange(result.nodes)
    with look():
        figure = framed(
            9.5,
            2.0 + float(np.clip(0.2 * result.nodes, 1.0, 8.0)),
            title=_finding(kinds),
            lines=_lines(kinds, wall),
            caption="One bar a worker, summed over all rounds.",
        )
        axes = figure.subplots()
        left = np.zeros(result.nodes)
        for kind, length in bars.items():
            word, color = _WORDS[kind]
            axes.barh(rows, length, left=left, height=0.74, color=color, label=word)
            left = left + length
        axes.set_ylim(result.nodes - 0.4, -0.6)
        axes.set_yticks(rows[:: 1 if result.nodes <= 45 else 5])
        axes.tick_params(axis="y", length=0, labelsize=8)
        axes.set_xlabel("seconds")
        axes.set_ylabel("worker")
        axes.spines["left"].set_visible(False)
        quiet_grid(axes, "x")
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, handlelength=1.2)
    return figure


def _per_node(result: RunResult, wall: float | None) -> dict[str, Floats]:
    compute, wait = result.records.compute.sum(axis=0), result.records.wait.sum(axis=0)
    bars = {"compute": compute, "wait": wait}
    # the simulator's workers take turns: the wall time belongs to none of them
    if wall is not None and result.run.get("mode") != "simulate":
        bars["send_and_rest"] = np.maximum(0.0, wall - compute - wait)
    return {kind: length for kind, length in bars.items() if length.any()}


def _finding(kinds: dict[str, float]) -> str:
    total = sum(kinds.values())
    kind = max(kinds, key=lambda each: kinds[each])
    return f"{share(kinds[kind] / total)} of the time goes to {_WORDS[kind][0]}"


def _lines(kinds: dict[str, float], wall: float | None) -> str:
    parts = [f"{_WORDS[kind][0]} {seconds(spent)}" for kind, spent in kinds.items() if spent > 0]
    return ("" if wall is None else f"{seconds(wall)} of rounds: ") + ", ".join(parts)
