"""One look for all pictures: sizes, colors, header and caption, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

DPI = 150

# Okabe and Ito: told apart by every kind of color vision, and in grey print by lightness
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
INK, MUTED, FAINT = "#1b1f24", "#5b6570", "#d9dee3"

_LOOK: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": "#9aa3ad",
    "axes.labelcolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "svg.fonttype": "none",  # text stays text: searchable, and small files
    "svg.hashsalt": "dlag",  # the same run gives the same file
}

# of the header and the caption, in inches
_MARGIN, _TITLE, _LINE = 0.22, 0.30, 0.21


def look() -> Any:
    """The house style for as long as a picture is made: `with look(): ...`."""
    return mpl.rc_context(_LOOK)  # type: ignore[arg-type]


def framed(
    width: float, height: float, *, title: str, lines: str = "", caption: str = ""
) -> Figure:
    """An empty picture that says what was found on top, and how to read it below."""
    above = _MARGIN + _TITLE + _LINE * len(lines.splitlines())
    below = 0.12 + _LINE * len(caption.splitlines())
    rect = (0.1 / width, below / height, 1 - 0.2 / width, 1 - (above + below) / height)
    figure = Figure(figsize=(width, height), facecolor="white")
    figure.set_layout_engine(ConstrainedLayoutEngine(rect=rect, h_pad=0.08, w_pad=0.08))
    left = _MARGIN / width
    top = 1 - _MARGIN / height
    figure.text(left, top, title, size=14, weight="bold", va="top")
    figure.text(left, top - _TITLE / height, lines, size=9.5, color=MUTED, va="top")
    figure.text(left, 0.12 / height, caption, size=8.5, color=MUTED, va="bottom")
    return figure


def stroke(i: int) -> tuple[str, Any]:
    """Color and dashes of the i-th curve: past the last color they begin again, dashed."""
    dashes = ("-", (0, (5, 1.6)), (0, (3, 1.2, 1, 1.2)))
    return COLORS[i % len(COLORS)], dashes[i // len(COLORS) % len(dashes)]


def quiet_grid(axes: Axes, axis: Any = "both") -> None:
    """A grid that stays behind what is drawn."""
    axes.grid(visible=True, axis=axis)
    axes.set_axisbelow(True)


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `name`.png and `name`.svg, and say where."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    with look():
        figure.savefig(paths[0], dpi=DPI)
        figure.savefig(paths[1], metadata={"Date": None})
    return paths
