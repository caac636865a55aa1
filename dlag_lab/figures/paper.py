"""A figure as the paper has it: one cost against the suboptimality, a median curve a method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dlag_lab.figures.bands import Groups, cost_at, levels_of, to_target
from dlag_lab.figures.convergence import PANELS, Panel, common_target, scale
from dlag_lab.figures.style import COLORS, MUTED, framed, look, quiet_grid
from dlag_lab.result import Ints, RunResult
from dlag_lab.units import small

# a family of methods has a color, its choices of parameters are shades and dashes of it
_FAMILIES = {"DLAG": COLORS[0], "MDLAG": COLORS[1], "COLA": COLORS[2], "ADFS": COLORS[2]}
_FAMILIES |= {"SSDA": COLORS[6], "MSDA": "#7a828a"}
_DASHES: tuple[Any, ...] = ("-", (0, (6, 1.8)), (0, (3, 1.4)), (0, (4, 1.4, 1, 1.4)), (0, (1, 1.3)))
_FADE = 0.13  # towards white, a choice


def paper_figure(
    groups: Groups,
    panel: str,
    *,
    number: int,
    lines: Sequence[str],
    cost: Callable[[RunResult], Ints] | None = None,
) -> Figure:
    """Figure `number` of the paper from our runs; `cost` takes the place of the panel's count."""
    shown = next(each for each in PANELS if each.title == panel)
    shown = shown if cost is None else replace(shown, cost=cost)
    target = common_target([(label, run) for label, runs in groups for run in runs])
    seeds = max(len(results) for _, results in groups)
    of_seeds = "" if seeds == 1 else f", median over {seeds} seeds"
    with look():
        figure = framed(
            9.2,
            5.6 + 0.21 * len(lines),
            title=f"Figure {number}: {_finding(groups, shown, target)}",
            lines="\n".join(lines),
            caption=f"Suboptimality: the worst worker's, best so far{of_seeds}. In the legend: "
            "the cost up to the target.",
        )
        axes = figure.subplots()
        ends, handles = [1.0], []
        for label, results in groups:
            color, dashes = _stroke(label, [each for each, _ in groups])
            levels = levels_of(results)
            if levels is not None:
                costs = [
                    cost_at(levels, shown.cost(r), r.trajectory.suboptimality) for r in results
                ]
                middle = np.median(costs, axis=0)
                axes.plot(middle, levels, color=color, ls=dashes, lw=1.6)
                ends.append(float(np.nanmax(middle)))
            arrived = to_target(shown, results, target)
            words = shown.unit(float(median(arrived))) if arrived else "not reached"
            if 0 < len(arrived) < len(results):
                words += f" ({len(arrived)} of {len(results)} seeds)"
            handles.append(
                Line2D([], [], color=color, ls=dashes, lw=1.8, label=f"{label}: {words}")
            )
        axes.set_yscale("log")
        if target is not None:
            axes.axhline(target, color=MUTED, lw=1, ls=(0, (5, 3)), zorder=1)
            axes.set_ylim(bottom=target / 2)
        scale(axes, shown, ends[1:] or ends)
        quiet_grid(axes)
        axes.set_xlabel(
            f"{shown.title.lower()} ({shown.label})" if shown.label != "rounds" else "iterations"
        )
        axes.set_ylabel("suboptimality")
        axes.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            borderaxespad=0.0,
            handlelength=2.6,
            labelspacing=0.55,
        )
    return figure


def _stroke(label: str, labels: Sequence[str]) -> tuple[tuple[float, float, float], Any]:
    family = label.partition("-")[0]
    alike = [each for each in labels if each.partition("-")[0] == family]
    at = alike.index(label)
    share = _FADE * min(at, len(_DASHES) - 1)
    r, g, b = to_rgb(_FAMILIES.get(family, MUTED))
    faded = (r + (1 - r) * share, g + (1 - g) * share, b + (1 - b) * share)
    return faded, _DASHES[at % len(_DASHES)]


def _finding(groups: Groups, panel: Panel, target: float | None) -> str:
    costs = {
        label: median(arrived)
        for label, results in groups
        if (arrived := to_target(panel, results, target)) and len(arrived) == len(results)
    }
    unit = {"Rounds": "iterations"}.get(panel.title, panel.title.lower())
    if not costs or target is None:
        return f"{unit} of {len(groups)} methods"
    return (
        f"{min(costs, key=lambda label: costs[label])} needs the fewest {unit} to {small(target)}"
    )
