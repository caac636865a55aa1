"""What each method pays: packets and bytes on the wire, messages, sample gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from dlag_lab.compare_table import PACKETS, WIRE_BYTES, Row
from dlag_lab.figures.style import COLORS, FAINT, INK, MUTED, framed, look, quiet_grid
from dlag_lab.units import ratio, short, size

_ROW = 0.42  # inches a method
_LINE = 0.21  # of text on top
_WIDE = 30.0  # ratio beyond which an axis has ticks at powers of ten alone
_BOUND = COLORS[1]


@dataclass(frozen=True, slots=True)
class Cost:
    """One kind of cost: what a run paid of it, and how it is written."""

    title: str
    of: Callable[[Row], float | None]
    noun: str = ""
    unit: Callable[[float], str] = short


_MESSAGES = Cost(
    "Messages (deltas over directed edges)", lambda row: row.deltas_to_target, "messages"
)
_GRADIENTS = Cost("Sample gradients of all workers", lambda row: row.gradients_to_target)
_PACKETS = Cost("Packets on the wire", PACKETS.of, "packets")
_WIRE = Cost("Bytes on the wire", WIRE_BYTES.of, unit=size)


def costs(
    rows: Sequence[Row], called: Mapping[str, str], *, base: str, lines: Sequence[str]
) -> Figure | None:
    """Methods downwards from the cheapest; None when none of them arrived.

    That is by packets where the kernel counted those of every run that arrived, else by messages.
    """
    counted = [row.packets is not None for row in rows if row.arrived]
    if not counted:
        return None
    on_wire = all(counted)
    by = _PACKETS if on_wire else _MESSAGES
    groups = {method: [row for row in rows if row.method == method] for method in called}
    order = sorted(groups, key=lambda method: _place(groups[method], by))
    ordered = [groups[method] for method in order]
    shown = [[_MESSAGES, _GRADIENTS]]
    if on_wire:
        shown.insert(0, [_PACKETS, _WIRE])
    with look():
        figure = framed(
            11,
            2.15 + _LINE * len(lines) + len(shown) * _ROW * len(order) + (on_wire and 0.9),
            title=_finding(order, groups, called, by),
            lines="\n".join(lines),
            caption=_caption(ordered, called[base], on_wire=on_wire),
        )
        grid = figure.subplots(len(shown), 2, sharey=True, squeeze=False)
        for axes, cost in zip(grid.flat, (each for row in shown for each in row), strict=True):
            _draw(axes, ordered, cost, _values(groups[base], cost))
            axes.set_title(cost.title)
            axes.tick_params(axis="y", length=0, labelcolor=INK)
        _draw_bounds(grid[-1, 0], ordered)
        grid[0, 0].set_yticks(range(len(order)), [called[method] for method in order])
        grid[0, 0].set_ylim(len(order) - 0.5, -0.5)
    return figure


def _caption(ordered: Sequence[Sequence[Row]], base: str, *, on_wire: bool) -> str:
    caption = f"Log axes. Line: the median; x: its ratio to {base}'s."
    if max(map(len, ordered)) > 1:
        caption = f"Log axes. Points: the seeds. Line: their median; x: its ratio to {base}'s."
    if on_wire:
        caption += (
            " On the wire: what the kernel counted in the whole run, headers and opening too."
        )
    return caption


def _draw(axes: Axes, groups: Sequence[Sequence[Row]], cost: Cost, base: Sequence[float]) -> None:
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
        words = cost.unit(middle)
        if base and median(base) > 0:
            words += f"   x {ratio(middle / median(base))}"
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
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: cost.unit(value)))
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


def _values(group: Sequence[Row], cost: Cost) -> list[float]:
    return [value for row in group if (value := cost.of(row)) is not None]


def _place(group: Sequence[Row], by: Cost) -> float:
    values = _values(group, by)
    return median(values) if values else float("inf")


def _finding(
    order: Sequence[str], groups: Mapping[str, Sequence[Row]], called: Mapping[str, str], by: Cost
) -> str:
    arrived = [method for method in order if _values(groups[method], by)]
    if len(arrived) == 1:
        return f"Only {called[arrived[0]]} arrives"
    fewest, next_best = (_place(groups[method], by) for method in arrived[:2])
    return (
        f"{called[arrived[0]]} sends the fewest {by.noun}: "
        f"{ratio(fewest / next_best)} of those of {called[arrived[1]]}"
    )
