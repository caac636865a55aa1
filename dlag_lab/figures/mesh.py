"""The mesh as a graph: who was silent, and over which edges the deltas went."""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from dlag_lab.figures.style import INK, MUTED, framed, look
from dlag_lab.layout import positions
from dlag_lab.result import Floats, Ints, RunResult
from dlag_lab.units import share, short, some

_EDGE = "#a9b2bb"
_WIDEST = 9.0  # points, the edge with the most deltas
_LARGEST = 34.0  # points, the diameter of the largest shard's node on a mesh of 25


def mesh(result: RunResult) -> Figure:
    """Nodes by their share of skipped rounds and their shard, edges by the deltas that crossed."""
    at = positions(str(result.run["topology"]), result.nodes, result.edges)
    colors = colormaps["viridis"]
    caption = (
        "Color: share of rounds in which the worker skipped its lazy message. "
        "Width of an edge: deltas that crossed it, both ways.\n"
        "Number and area: samples in the worker's shard. Small number: the worker's id."
    )
    if result.shard_sizes is None:
        caption = caption.partition("\n")[0] + "\nNumber: the worker's id."
    with look():
        figure = framed(8.6, 8.2, title=headline(result), lines=_lines(result), caption=caption)
        axes = figure.subplots()
        axes.set_axis_off()
        crossed = _draw_edges(axes, result, at)
        _draw_nodes(axes, result, at)
        _fit(axes, at)
        bar = figure.colorbar(
            ScalarMappable(Normalize(0, 1), colors), ax=axes, shrink=0.6, aspect=28, pad=0.03
        )
        bar.set_label("rounds skipped by the worker")
        bar.ax.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        bar.outline.set_visible(False)
        _edge_legend(axes, result, crossed)
    return figure


def headline(result: RunResult) -> str:
    """The finding that a lazy method is about."""
    if result.skip_share == 0:
        return f"{result.method}: every message was sent"
    return f"{result.method}: {share(result.skip_share)} of messages skipped"


def _lines(result: RunResult) -> str:
    lazy, sizes = result.lazy_share, result.shard_sizes
    if result.skip_share == 0:
        workers, edges = some(result.nodes, "worker"), some(len(result.edges), "edge")
        return f"{result.run['topology']}, {workers}, {edges}"
    text = (
        f"workers stay silent in {share(float(lazy.min()))} to {share(float(lazy.max()))} of rounds"
    )
    if sizes is None or np.ptp(sizes) == 0 or np.ptp(lazy) == 0:
        return text
    correlation = float(np.corrcoef(_ranks(sizes), _ranks(lazy))[0, 1])
    if correlation > 0.5:
        text += f"; those with more samples speak less (rank correlation {correlation:.2f})"
    return text


def _ranks(values: Ints | Floats) -> Floats:
    """Ranks with ties shared evenly."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[inverse]


def _draw_edges(axes: Axes, result: RunResult, at: Floats) -> Floats:
    """Every delta of a worker crosses each of its edges."""
    each = result.records.deltas.sum(axis=0) / np.maximum(1, result.degrees)
    crossed = np.array([each[i] + each[j] for i, j in result.edges], dtype=np.float64)
    segments = [at[[i, j]] for i, j in result.edges]
    axes.add_collection(
        LineCollection(segments, linewidths=_widths(result, crossed), colors=_EDGE, zorder=1)
    )
    return crossed


def _widths(result: RunResult, crossed: Floats) -> Floats:
    widest = _WIDEST * _shrink(result.nodes)
    return np.maximum(0.4, widest * crossed / max(1.0, float(crossed.max(initial=0.0))))


def _shrink(nodes: int) -> float:
    """Large meshes are drawn finer."""
    return float(min(1.0, np.sqrt(40 / max(1, nodes))))


def _draw_nodes(axes: Axes, result: RunResult, at: Floats) -> None:
    shades = colormaps["viridis"](result.lazy_share)
    sizes = result.shard_sizes
    largest = _LARGEST * _shrink(result.nodes)
    relative = np.ones(result.nodes) if sizes is None else sizes / max(1, int(sizes.max()))
    # a floor, so that the number fits into the smallest node too
    diameters = largest * np.sqrt(np.maximum(0.3, relative))
    axes.scatter(
        at[:, 0], at[:, 1], s=diameters**2, c=shades, edgecolors="white", linewidths=2, zorder=3
    )
    for i, (x, y) in enumerate(at):
        light = float(shades[i, :3] @ (0.2126, 0.7152, 0.0722)) > 0.45
        number = str(i if sizes is None else sizes[i])
        axes.annotate(
            number,
            (x, y),
            ha="center",
            va="center_baseline",
            # a digit is about 0.7 of its size wide
            size=max(3.5, min(0.3 * largest, 1.25 * diameters[i] / len(number))),
            weight="bold",
            color=INK if light else "white",
            zorder=4,
        )
        if sizes is not None:
            offset = diameters[i] / 2 * 0.75 + 4 * _shrink(result.nodes)
            axes.annotate(
                str(i), (x, y), (offset, -offset), textcoords="offset points",
                size=7 * _shrink(result.nodes), color=MUTED, ha="left", va="center", zorder=2,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85},
            )  # fmt: skip


def _fit(axes: Axes, at: Floats) -> None:
    """All nodes with some room around them; a chain still gets a picture, not a stripe."""
    middle = (at.min(axis=0) + at.max(axis=0)) / 2
    half = np.ptp(at, axis=0) / 2
    half = np.maximum(half, 0.5 * max(1.0, float(half.max())))
    half = half + 0.16 * half.max() + 0.1
    axes.set_xlim(middle[0] - half[0], middle[0] + half[0])
    axes.set_ylim(middle[1] - half[1], middle[1] + half[1])
    axes.set_aspect("equal")


def _edge_legend(axes: Axes, result: RunResult, crossed: Floats) -> None:
    if crossed.size == 0 or crossed.max() == 0:
        return
    widths = _widths(result, crossed)
    shown = {float(crossed[i]): widths[i] for i in (crossed.argmin(), crossed.argmax())}
    axes.legend(
        [Line2D([], [], color=_EDGE, lw=width) for width in shown.values()],
        [f"{short(value)} deltas" for value in shown],
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=2,
        handlelength=2.6,
    )
