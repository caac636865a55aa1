"""The picture of the ablation: messages and sample gradients of every idea, family by family."""

from __future__ import annotations

from pathlib import Path

from dlag_lab.figures.style import COLORS, FAINT, MUTED, framed, look, quiet_grid, save

# The first of a family is the plain method: the others' gain is drawn from there.
FAMILIES = ("SSDA", "MSDA", "MDLAG", "DLAG", "EXTRA", "exact diffusion", "ADMM", "tree")


def draw(rows: list[tuple[str, float, float]], folder: Path) -> list[Path]:
    """`rows` are (what, messages, sample gradients), in the order of the table."""
    with look():
        figure = framed(
            11,
            0.245 * len(rows) + 1.6,
            title="Each idea alone, and together",
            lines="heart, 5x5 grid, to 1e-7; medians of five seeds",
            caption="a line begins at the family's plain method; both axes are logarithmic",
        )
        left, right = figure.subplots(1, 2, sharey=True)
        color, start = COLORS[0], (1.0, 1.0)
        families = 0
        for at, (what, *values) in enumerate(rows):
            head = what.startswith(FAMILIES)
            if head:
                color, start = COLORS[families % len(COLORS)], (values[0], values[1])
                families += 1
            for axes, value, begin in zip((left, right), values, start, strict=True):
                axes.plot([begin, value], [at, at], color=FAINT if head else color, linewidth=1.4)
                axes.plot(value, at, "o" if head else "s", color=color, markersize=6 if head else 5)
                side = -1 if value < begin else 1  # away from the line
                axes.annotate(
                    f"{value:,.0f}",
                    (value, at),
                    xytext=(7 * side, 0),
                    textcoords="offset points",
                    va="center",
                    ha="right" if side < 0 else "left",
                    size=7.5,
                    color=MUTED,
                )
        left.set_yticks(range(len(rows)), [what for what, *_ in rows])
        left.set_ylim(len(rows) - 0.3, -0.7)
        for axes, name in ((left, "messages"), (right, "sample gradients")):
            axes.set_xscale("log")
            axes.set_title(name)
            axes.margins(x=0.16)
            quiet_grid(axes, "x")
        for label, (what, *_) in zip(left.get_yticklabels(), rows, strict=True):
            label.set_fontweight("bold" if what.startswith(FAMILIES) else "normal")
        return save(figure, folder, "ablation")
