"""The picture of the ablation: messages, gradients and seconds of every idea, by families."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dlag_lab.figures.style import COLORS, FAINT, MUTED, framed, look, quiet_grid, save

# The first of a family is the plain method: the others' gain is drawn from there.
FAMILIES = ("SSDA", "MSDA", "MDLAG", "DLAG", "EXTRA", "exact diffusion", "ADMM", "tree")


@dataclass(frozen=True, slots=True)
class Drawn:
    """What the picture shows of one idea."""

    what: str
    messages: float
    gradients: float
    seconds: float

    @property
    def values(self) -> tuple[float, float, float]:
        """In the order of the panels."""
        return self.messages, self.gradients, self.seconds


def draw(rows: list[Drawn], folder: Path) -> list[Path]:
    """`rows` in the order of the table."""
    with look():
        figure = framed(
            13,
            0.245 * len(rows) + 1.6,
            title="Each idea alone, and together",
            lines="heart, 5x5 grid, to 1e-7; medians of five seeds; seconds of seed 0 on the mesh",
            caption="a line begins at the family's plain method; all axes are logarithmic",
        )
        panels = figure.subplots(1, 3, sharey=True)
        color, start = COLORS[0], (1.0, 1.0, 1.0)
        families = 0
        for at, row in enumerate(rows):
            head = row.what.startswith(FAMILIES)
            if head:
                color, start = COLORS[families % len(COLORS)], row.values
                families += 1
            for axes, value, begin in zip(panels, row.values, start, strict=True):
                axes.plot([begin, value], [at, at], color=FAINT if head else color, linewidth=1.4)
                axes.plot(value, at, "o" if head else "s", color=color, markersize=6 if head else 5)
                side = -1 if value < begin else 1  # away from the line
                axes.annotate(
                    f"{value:,.0f}" if value >= 100 else f"{value:.2g}",
                    (value, at),
                    xytext=(7 * side, 0),
                    textcoords="offset points",
                    va="center",
                    ha="right" if side < 0 else "left",
                    size=7.5,
                    color=MUTED,
                )
        panels[0].set_yticks(range(len(rows)), [row.what for row in rows])
        panels[0].set_ylim(len(rows) - 0.3, -0.7)
        for axes, name in zip(panels, ("messages", "sample gradients", "seconds"), strict=True):
            axes.set_xscale("log")
            axes.set_title(name)
            axes.margins(x=0.21)
            quiet_grid(axes, "x")
        for label, row in zip(panels[0].get_yticklabels(), rows, strict=True):
            label.set_fontweight("bold" if row.what.startswith(FAMILIES) else "normal")
        return save(figure, folder, "ablation")
