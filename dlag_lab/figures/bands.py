"""The convergence of several methods over several seeds: a median curve in a band for each."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlag_lab.figures.convergence import (
    PANELS,
    Panel,
    common_target,
    extra_height,
    legend_above,
    mesh_line,
    scale,
    wire_line,
)
from dlag_lab.figures.style import MUTED, framed, look, quiet_grid, stroke
from dlag_lab.result import Floats, Ints, RunResult
from dlag_lab.units import small

_LEVELS = 400  # of the suboptimality, evenly on the log axis

Groups = Sequence[tuple[str, Sequence[RunResult]]]


def bands(groups: Groups, explained: Sequence[str] = ()) -> Figure:
    """One curve a method: at each suboptimality the median cost to get there, and the range.

    A seed counts by its best suboptimality so far, which only falls; a curve goes as far down as
    every seed of its method came.
    """
    runs = [(label, result) for label, results in groups for result in results]
    target = common_target(runs)
    seeds = max(len(results) for _, results in groups)
    caption = (
        "Curve: the median over the seeds of the cost to get down to a suboptimality, that of the "
        "worst worker. Band: from the cheapest seed to the dearest."
    )
    if target is not None:
        caption += "\nNumbers above: the median cost up to the target, where the circle is."
    caption += "\n" + wire_line(groups)
    with look():
        figure = framed(
            11,
            8.0 + extra_height(len(groups)),
            title=_finding(groups, target),
            lines="\n".join([f"{mesh_line(runs)}, {seeds} seeds", *explained]),
            caption=caption,
        )
        grid = figure.subplots(2, 2, sharey=True)
        for axes, panel in zip(grid.flat, PANELS, strict=True):
            _draw(axes, panel, groups, target)
        for axes in grid[:, 0]:
            axes.set_ylabel("suboptimality, best so far")
    return figure


def cost_at(levels: Floats, cost: Ints, suboptimality: Floats) -> Floats:
    """The cost at which the suboptimality first was down to each level, log-linear in between.

    A level above the first value costs what the first round does; below the best there is none.
    """
    best = np.inf
    kept = []
    for k, value in enumerate(suboptimality):
        if 0 < value < best:
            best = float(value)
            kept.append(k)
    if not kept:
        return np.full(len(levels), np.nan)
    fall = -np.log(suboptimality[kept])  # ascending
    return np.interp(-np.log(levels), fall, cost[kept].astype(np.float64), right=np.nan)


def _draw(axes: Axes, panel: Panel, groups: Groups, target: float | None) -> None:
    ends, entries = [1.0], []
    for i, (label, results) in enumerate(groups):
        color, dashes = stroke(i)
        levels = levels_of(results)
        if levels is not None:
            costs = np.array(
                [cost_at(levels, panel.cost(r), r.trajectory.suboptimality) for r in results]
            )
            low, middle, high = costs.min(axis=0), np.median(costs, axis=0), costs.max(axis=0)
            axes.fill_betweenx(levels, low, high, color=color, alpha=0.16, lw=0)
            axes.plot(middle, levels, color=color, ls=dashes, lw=1.7, solid_capstyle="round")
            ends.append(float(np.nanmax(high)))
        arrived = to_target(panel, results, target)
        if arrived and target is not None:
            at = median(arrived)
            axes.plot([at], [target], "o", ms=7, mfc="white", mec=color, mew=1.8, zorder=5)
        entries.append((color, dashes, f"{label}: {_words(panel, arrived, len(results))}"))
    axes.set_yscale("log")
    if target is not None:
        axes.axhline(target, color=MUTED, lw=1, ls=(0, (5, 3)), zorder=1)
    scale(axes, panel, ends[1:] or ends)
    quiet_grid(axes)
    axes.set_xlabel(panel.label)
    legend_above(axes, panel, entries)


def levels_of(results: Sequence[RunResult]) -> Floats | None:
    """Levels of suboptimality, from where the seeds begin down to where the last of them came."""
    positive = [gap[gap > 0] for gap in (r.trajectory.suboptimality for r in results)]
    finite = [gap[np.isfinite(gap)] for gap in positive]
    if not all(gap.size for gap in finite):
        return None
    top, bottom = max(gap[0] for gap in finite), max(gap.min() for gap in finite)
    return np.geomspace(top, bottom, _LEVELS)


def to_target(panel: Panel, results: Sequence[RunResult], target: float | None) -> list[int]:
    """The cost of each seed that arrived; without a target, of each whole run."""
    costs = []
    for result in results:
        rounds = result.rounds if target is None else result.trajectory.rounds_to(target)
        if rounds is not None:
            costs.append(int(panel.cost(result)[rounds - 1]))
    return costs


def _words(panel: Panel, arrived: Sequence[int], seeds: int) -> str:
    if not arrived:
        return "not reached"
    some = "" if len(arrived) == seeds else f" ({len(arrived)} of {seeds})"
    return panel.unit(float(median(arrived))) + some


def _finding(groups: Groups, target: float | None) -> str:
    messages = PANELS[1]
    arrived = [
        (median(costs), label)
        for label, results in groups
        if target is not None and (costs := to_target(messages, results, target))
    ]
    if target is None or not arrived:
        return f"{len(groups)} methods compared"
    if len(arrived) == 1:
        return f"Only {arrived[0][1]} reaches {small(target)}"
    return f"{min(arrived)[1]} reaches {small(target)} with the fewest messages"
