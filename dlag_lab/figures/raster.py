"""Who spoke when: rounds to the right, workers downwards, dark where a delta was sent."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from dlag_lab.figures.mesh import headline
from dlag_lab.figures.style import COLORS, MUTED, framed, look, quiet_grid
from dlag_lab.result import Floats, RunResult
from dlag_lab.units import some
from dlag_node.rounds.record import SKIPPED

MAX_COLUMNS = 400  # at three pixels and more each, no column is lost in a picture 11 inches wide
_LEAST_SHADE = 0.3  # of a bin with a single delta in it: clearly no silence
_SHADES = LinearSegmentedColormap.from_list("sent", ["#d5dbe1", "#7fa8c9", "#0b3c5d"])
_SILENT = LinearSegmentedColormap.from_list("silent", ["#f6efdd", "#d5dbe1"])  # quiet to token


def raster(result: RunResult) -> Figure:
    """The first exchange of each round, the lazy one, for every worker."""
    sent, had = result.records.first_exchange()
    width = bin_width(result.rounds)
    several = int(np.strings.str_len(result.records.exchanges).max()) > 1
    caption = "Each row a worker" + ("" if width == 1 else f", each column {width} rounds")
    caption += ". Dark: a delta; light: a token in its place, or quiet, where nothing was sent"
    caption += "." if width == 1 else "; between: the share of rounds with a delta."
    if several:
        caption += "\nOnly the first exchange of a round is shown, the lazy one."
    with look():
        figure = framed(
            11, _height(result.nodes), title=headline(result), lines=_lines(result), caption=caption
        )
        grid = figure.subplots(
            2,
            2,
            sharex="col",
            gridspec_kw={"width_ratios": [12, 1.3], "height_ratios": _ratios(result.nodes)},
        )
        _draw_share(grid[0, 0], sent, had, width)
        grid[0, 1].set_axis_off()
        _draw_raster(grid[1, 0], result, width)
        _draw_shards(grid[1, 1], result)
    return figure


def bin_width(rounds: int, columns: int = MAX_COLUMNS) -> int:
    """Rounds in a column, so that there are at most `columns`."""
    return max(1, -(-rounds // columns))


def binned_shares(
    sent: NDArray[np.bool_], had: NDArray[np.bool_], width: int
) -> tuple[Floats, NDArray[np.bool_]]:
    """Share of exchanges with a delta, in bins of `width` rounds, and which bins had any.

    [rounds x nodes] becomes [bins x nodes]; the last bin may be shorter.
    """
    starts = np.arange(0, len(sent), width)
    spoke = np.add.reduceat((sent & had).astype(np.int64), starts, axis=0)
    could = np.add.reduceat(had.astype(np.int64), starts, axis=0)
    return spoke / np.maximum(1, could), could > 0


def shades(shares: Floats) -> Floats:
    """How dark to draw a share: 0 for silence only, so that no delta ever looks like silence."""
    return np.where(shares > 0, _LEAST_SHADE + (1 - _LEAST_SHADE) * shares, 0.0)


def _draw_raster(axes: Axes, result: RunResult, width: int) -> None:
    sent, had = result.records.first_exchange()
    rounds, nodes = sent.shape
    tokens = np.strings.startswith(result.records.exchanges, SKIPPED)
    shares, any_exchange = binned_shares(sent, had, width)
    aloud, _ = binned_shares(tokens, had & ~sent, width)
    image = np.where((shares > 0)[..., None], _SHADES(shades(shares)), _SILENT(aloud))
    image[~any_exchange] = 0.0  # transparent
    axes.imshow(
        image.transpose(1, 0, 2),
        aspect="auto",
        interpolation="none",
        extent=(0, len(shares) * width, nodes - 0.5, -0.5),
    )
    axes.set_xlim(0, rounds)
    # thin white lines keep the rows apart
    axes.hlines(np.arange(nodes - 1) + 0.5, 0, rounds, color="white", lw=1.2 if nodes < 60 else 0.3)
    axes.set_xlabel("round")
    axes.xaxis.set_major_locator(MaxNLocator(9, steps=[1, 2, 2.5, 5, 10], integer=True))
    axes.set_ylabel("worker")
    axes.set_yticks(np.arange(0, nodes, _tick_step(nodes)))
    axes.tick_params(axis="y", length=0, labelsize=8)
    axes.spines[:].set_visible(False)
    axes.legend(
        handles=[
            Patch(color=color, label=label)
            for color, label, shown in (
                (_SHADES(1.0), "delta", True),
                (_SILENT(1.0), "token", tokens.any()),
                (_SILENT(0.0), "quiet", (had & ~sent & ~tokens).any()),
            )
            if shown
        ],
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=3,
        borderaxespad=0.2,
        handlelength=1.2,
    )


def _draw_share(axes: Axes, sent: NDArray[np.bool_], had: NDArray[np.bool_], width: int) -> None:
    starts = np.arange(0, len(sent), width)
    spoke = np.add.reduceat(sent.sum(axis=1), starts) / np.maximum(
        1, np.add.reduceat(had.sum(axis=1), starts)
    )
    edges = np.append(starts, len(sent))
    axes.stairs(spoke, edges, fill=True, color=COLORS[0], alpha=0.25)
    axes.stairs(spoke, edges, color=COLORS[0], lw=0.9, baseline=None)
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.5, 1])
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    axes.tick_params(axis="x", length=0, labelbottom=False)
    axes.set_title("Workers that sent a delta", weight="normal", size=9, color=MUTED)
    quiet_grid(axes, "y")


def _draw_shards(axes: Axes, result: RunResult) -> None:
    sizes = result.shard_sizes
    if sizes is None:
        axes.set_axis_off()
        return
    rows = np.arange(result.nodes)
    axes.barh(rows, sizes, height=0.7, color="#c3ccd5")
    if result.nodes <= 60:
        for row, samples in zip(rows, sizes, strict=True):
            axes.annotate(
                str(samples), (samples, row), (3, 0), textcoords="offset points",
                va="center_baseline", size=7.5, color=MUTED,
            )  # fmt: skip
    axes.set_ylim(result.nodes - 0.5, -0.5)
    axes.set_xlim(0, 1.35 * max(1, int(sizes.max())))
    axes.set_yticks([])
    axes.set_xticks([])
    axes.spines[:].set_visible(False)
    axes.set_title("samples", weight="normal", size=9, color=MUTED)


def _lines(result: RunResult) -> str:
    sent, had = result.records.first_exchange()
    at_once = (had & ~sent).sum(axis=1) / np.maximum(1, had.sum(axis=1))
    return (
        f"{some(result.rounds, 'round')}; on average {at_once.mean() * result.nodes:.1f} "
        f"of {result.nodes} workers are silent in a round"
    )


def _height(nodes: int) -> float:
    return 2.6 + float(np.clip(0.2 * nodes, 1.2, 7.0))


def _ratios(nodes: int) -> list[float]:
    return [0.75, float(np.clip(0.2 * nodes, 1.2, 7.0))]


def _tick_step(nodes: int) -> int:
    return 1 if nodes <= 40 else 5 * -(-nodes // 200)
