"""Suboptimality against everything that it costs: rounds, messages, bytes, sample gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from dlag_lab.figures.style import MUTED, framed, look, quiet_grid, stroke
from dlag_lab.result import Floats, Ints, RunResult
from dlag_lab.summary import on_the_wire
from dlag_lab.units import count, share, short, size, small, some

# beyond this ratio of the longest run to the shortest, a linear axis hides the shortest
_LOG_RATIO = 40.0
_LEGEND_COLUMNS = 3
_LEGEND_ROW = 14.5  # points
_WIRE_WORDS = 3  # methods a line
_HEIGHT = 8.0  # inches, with legends of a row or two


@dataclass(frozen=True, slots=True)
class Panel:
    """One kind of cost: how it is counted, summed up to each round, and written."""

    title: str
    label: str
    cost: Callable[[RunResult], Ints]
    unit: Callable[[float], str]


PANELS = (
    Panel("Rounds", "rounds", lambda r: np.arange(1, r.rounds + 1), lambda n: count(int(n))),
    Panel("Messages", "deltas over directed edges", lambda r: _summed(r.records.deltas), short),
    Panel(
        "Frame bytes", "by the ledger, with tokens", lambda r: _summed(r.records.sent_bytes), size
    ),
    Panel("Sample gradients", "of all workers", lambda r: _summed(r.records.gradients), short),
)


def convergence(runs: Sequence[tuple[str, RunResult]], explained: Sequence[str] = ()) -> Figure:
    """One picture for one run or for several, each with its label; `explained` goes on top."""
    target = common_target(runs)
    caption = "Suboptimality is that of the worst worker."
    if target is not None:
        caption += " Numbers above: the cost up to the target, where the circle is."
    if _shows_always(runs) and any(result.skip_share > 0 for _, result in runs):
        caption += " Dotted: had no message been skipped."
    caption += "\n" + wire_line([(label, [result]) for label, result in runs])
    with look():
        figure = framed(
            11,
            _HEIGHT + extra_height(len(runs)),
            title=_finding(runs, target),
            lines="\n".join([mesh_line(runs), *explained]),
            caption=caption,
        )
        grid = figure.subplots(2, 2, sharey=True)
        for axes, panel in zip(grid.flat, PANELS, strict=True):
            _draw(axes, panel, runs, target)
        for axes in grid[:, 0]:
            axes.set_ylabel("suboptimality")
    return figure


def _draw(
    axes: Axes, panel: Panel, runs: Sequence[tuple[str, RunResult]], target: float | None
) -> None:
    ends, entries = [], []
    for i, (label, result) in enumerate(runs):
        color, dashes = stroke(i)
        cost = panel.cost(result)
        gap = _positive(result.trajectory.suboptimality)
        axes.plot(cost, gap, color=color, ls=dashes, lw=1.7, solid_capstyle="round")
        ends.append(float(cost[-1]))
        _mark(axes, cost, result, target, color)
        entries.append((color, dashes, f"{label}: {_up_to_target(panel, cost, result, target)}"))
        if panel.title == "Messages" and _shows_always(runs) and result.skip_share > 0:
            always = _summed(result.records.deltas + result.records.skipped)
            axes.plot(always, gap, color=color, lw=1.3, ls=(0, (1, 1.6)))
            ends.append(float(always[-1]))
            words = _up_to_target(panel, always, result, target)
            always_sending = "always sending" if len(runs) == 1 else f"{label}, always"
            entries.append((color, ":", f"{always_sending}: {words}"))
    axes.set_yscale("log")
    if target is not None:
        axes.axhline(target, color=MUTED, lw=1, ls=(0, (5, 3)), zorder=1)
    scale(axes, panel, ends)
    quiet_grid(axes)
    axes.set_xlabel(panel.label)
    legend_above(axes, panel, entries)


def legend_above(axes: Axes, panel: Panel, entries: list[tuple[str, Any, str]]) -> None:
    """Between title and axes, where no curve can run into it."""
    handles = [Line2D([], [], color=color, ls=style, lw=1.7) for color, style, _ in entries]
    axes.legend(
        handles,
        [text for _, _, text in entries],
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=_LEGEND_COLUMNS,
        borderaxespad=0.1,
        borderpad=0.3,
        handlelength=1.5,
        columnspacing=1.4,
    )
    rows = -(-len(entries) // _LEGEND_COLUMNS)
    axes.set_title(panel.title, pad=9 + _LEGEND_ROW * rows)


def _mark(axes: Axes, cost: Ints, result: RunResult, target: float | None, color: str) -> None:
    """A circle where the target is reached."""
    rounds = result.trajectory.rounds_to(target)
    if rounds is None or target is None:
        return
    gap = max(float(result.trajectory.suboptimality[rounds - 1]), target / 3)
    axes.plot([cost[rounds - 1]], [gap], "o", ms=7, mfc="white", mec=color, mew=1.8, zorder=5)


def _up_to_target(panel: Panel, cost: Ints, result: RunResult, target: float | None) -> str:
    rounds = result.trajectory.rounds_to(target)
    if target is None:
        return panel.unit(float(cost[-1]))
    return "not reached" if rounds is None else panel.unit(float(cost[rounds - 1]))


def _shows_always(runs: Sequence[tuple[str, RunResult]]) -> bool:
    """Dotted curves among many others are noise."""
    return len(runs) <= _LEGEND_COLUMNS


def extra_height(entries: int) -> float:
    """Inches that the legends of both rows of panels need beyond their first rows."""
    return 2 * max(0, -(-entries // _LEGEND_COLUMNS) - 1) * _LEGEND_ROW / 72


def scale(axes: Axes, panel: Panel, ends: list[float]) -> None:
    """Costs from 0 on, or on a log axis where they differ too much; ticks in the panel's unit."""
    if max(ends) > _LOG_RATIO * max(1.0, min(ends)):
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, max(1.0, *ends) * 1.03)
        axes.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 2.5, 5, 10], integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: panel.unit(value)))


def _finding(runs: Sequence[tuple[str, RunResult]], target: float | None) -> str:
    if len(runs) > 1:
        return _comparison(runs, target)
    label, result = runs[0]
    skipped = f"{share(result.skip_share)} of messages skipped" if result.skip_share else ""
    if target is None:
        end = f"{label}: suboptimality {small(float(result.trajectory.suboptimality[-1]))}"
        return ", ".join(filter(None, [f"{end} after {count(result.rounds)} rounds", skipped]))
    rounds = result.trajectory.rounds_to(target)
    if rounds is None:
        return f"{label} did not reach {small(target)} in {count(result.rounds)} rounds"
    reached = f"{label} reaches {small(target)} in {count(rounds)} rounds"
    return ", ".join(filter(None, [reached, skipped]))


def _comparison(runs: Sequence[tuple[str, RunResult]], target: float | None) -> str:
    arrived = [
        (int(result.records.deltas[:rounds].sum()), label)
        for label, result in runs
        if (rounds := result.trajectory.rounds_to(target)) is not None
    ]
    if target is None or not arrived:
        return f"{len(runs)} runs compared"
    if len(arrived) == 1:
        return f"Only {arrived[0][1]} reaches {small(target)}"
    return f"{min(arrived)[1]} reaches {small(target)} with the fewest messages"


def mesh_line(runs: Sequence[tuple[str, RunResult]]) -> str:
    """The mesh and the data that all the runs have in common."""
    described = {
        f"{result.run['topology']}, {some(result.nodes, 'worker')}, "
        + some(len(result.edges), "edge")
        + (f", {result.run['data']} data" if result.run.get("data") else "")
        for _, result in runs
    }
    return described.pop() if len(described) == 1 else f"{len(described)} different meshes"


def wire_line(groups: Sequence[tuple[str, Sequence[RunResult]]]) -> str:
    """What the kernel counted of each method's whole runs, to stand beside the ledger's bytes."""
    words = []
    for label, results in groups:
        counted = [wire for each in results if (wire := on_the_wire(each.summary)) is not None]
        if counted:
            packets, sent = (median(wire[of] for wire in counted) for of in ("packets", "bytes"))
            of_whom = f"{label} " if len(groups) > 1 else ""
            words.append(f"{of_whom}{short(packets)} packets, {size(sent)}")
    if not words:
        return "Frame bytes are the ledger's; nobody counted on the wire."
    lines = ["; ".join(words[i : i + _WIRE_WORDS]) for i in range(0, len(words), _WIRE_WORDS)]
    return "On the wire, counted by the kernel in the whole run: " + ";\n".join(lines) + "."


def common_target(runs: Sequence[tuple[str, RunResult]]) -> float | None:
    """The target of all the runs, if it is one and the same."""
    targets = {result.target for _, result in runs}
    return targets.pop() if len(targets) == 1 else None


def _summed(counts: Ints) -> Ints:
    summed: Ints = counts.sum(axis=1).cumsum()
    return summed


def _positive(values: Floats) -> Floats:
    """A log axis has no place for zero, which rounding can bring about."""
    return np.where(values > 0, values, np.nan)
