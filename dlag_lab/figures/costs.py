"""What each method pays to the target: messages and sample gradients, a point a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from dlag_lab.compare_table import Row
from dlag_lab.figures.style import COLORS, FAINT, INK, MUTED, framed, look, quiet_grid
from dlag_lab.units import short

_ROW = 0.42  # inches a method
_LINE = 0.21  # of text on top
_WIDE = 30.0  # ratio beyond which an axis has ticks at powers of ten alone
_BOUND = COLORS[1]

Cost = Callable[[Row], int | None]


def costs(
    rows: Sequence[Row], called: Mapping[str, str], *, base: str, lines: Sequence[str]
) -> Figure | None:
    """Methods downwards from the fewest messages to the most; None when none of them arrived."""
    groups = {method: [row for row in rows if row.method == method] for method in called}
    order = sorted(groups, key=lambda method: _place(groups[method]))
    if not _values(groups[order[0]], _messages):
        return None
    several = max(map(len, groups.values())) > 1
    caption = f"Log axes. Line: the median; x: its ratio to {called[base]}'s."
    if several:
        caption = (
            f"Log axes. Points: the seeds. Line: their median; x: its ratio to {called[base]}'s."
        )
    with look():
        figure = framed(
            11,
            2.15 + _LINE * len(lines) + _ROW * len(order),
            title=_finding(order, groups, called),
            lines="\n".join(lines),
            caption=caption,
        )
        left, right = figure.subplots(1, 2, sharey=True)
        for axes, title, cost in (
            (left, "Messages (deltas over directed edges)", _messages),
            (right, "Sample gradients of all workers", lambda row: row.gradients_to_target),
        ):
            _draw(axes, [groups[method] for method in order], cost, _values(groups[base], cost))
            axes.set_title(title)
        _draw_bounds(left, [groups[method] for method in order])
        left.set_yticks(range(len(order)), [called[method] for method in order])
        left.tick_params(axis="y", length=0, labelcolor=INK)
        right.tick_params(axis="y", length=0)
        left.set_ylim(len(order) - 0.5, -0.5)
    return figure


def _draw(axes: Axes, groups: Sequence[Sequence[Row]], cost: Cost, base: Sequence[int]) -> None:
    everything = [value for group in groups for value in _values(group, cost)]
    low, high = min(everything), max(everything)
    axes.set_xscale("log")
    start = low / 2
    for y, group in enumerate(groups):
        values = _values(group, cost)
        if not values:
            status = "failed" if group[0].status == "failed" else "target not reached"
            axes.text(start * 1.06, y, status, color=MUTED, va="center", style="italic")
            continue
        middle = median(values)
        axes.hlines(y, start, middle, color=FAINT, lw=1.2, zorder=1)
        axes.hlines(y, min(values), max(values), color=COLORS[0], lw=5, alpha=0.22, zorder=2)
        axes.plot(values, [y] * len(values), "o", ms=6, color=COLORS[0], alpha=0.65, mew=0)
        axes.vlines(middle, y - 0.24, y + 0.24, color=INK, lw=2, zorder=4)
        words = short(middle)
        if base and median(base) > 0:
            words += f"   x {middle / median(base):.2f}"
        if len(values) < len(group):
            words += f"   ({len(values)} of {len(group)} seeds)"
        axes.annotate(
            words,
            (max(values), y),
            xytext=(9, 0),
            textcoords="offset points",
            va="center",
            size=8.5,
            color=MUTED,
        )
    # room for the words on the right
    axes.set_xlim(start, high * (high / start) ** 0.42)
    axes.xaxis.set_major_locator(LogLocator(subs=(1,) if high > _WIDE * start else (1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    quiet_grid(axes, "x")
    axes.spines["left"].set_visible(False)


def _draw_bounds(axes: Axes, groups: Sequence[Sequence[Row]]) -> None:
    """Theorem 3 beside the count, for as many rounds as were measured."""
    drawn = False
    for y, group in enumerate(groups):
        bounds = [row.bound_to_target for row in group if row.bound_to_target is not None]
        if bounds:
            axes.plot([median(bounds)], [y - 0.3], "v", ms=6, color=_BOUND, zorder=5)
            drawn = True
    if drawn:
        axes.legend(
            [Line2D([], [], color=_BOUND, marker="v", ls="", ms=6)],
            ["at most, by Theorem 3 for the rounds measured"],
            loc="upper right",
            bbox_to_anchor=(1.0, -0.14),
            borderaxespad=0.0,
            handlelength=1.0,
        )


def _messages(row: Row) -> int | None:
    return row.deltas_to_target


def _values(group: Sequence[Row], cost: Cost) -> list[int]:
    return [value for row in group if (value := cost(row)) is not None]


def _place(group: Sequence[Row]) -> float:
    values = _values(group, _messages)
    return median(values) if values else float("inf")


def _finding(
    order: Sequence[str], groups: Mapping[str, Sequence[Row]], called: Mapping[str, str]
) -> str:
    arrived = [method for method in order if _values(groups[method], _messages)]
    if len(arrived) == 1:
        return f"Only {called[arrived[0]]} arrives"
    fewest, next_best = (_place(groups[method]) for method in arrived[:2])
    return (
        f"{called[arrived[0]]} sends the fewest messages: "
        f"{fewest / next_best:.2f} of those of {called[arrived[1]]}"
    )
