"""The run while it runs: rounds, distance to the target, who is silent for how long."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dlag_lab.layout import grid_shape
from dlag_lab.units import count, share, small, some

_INTERVAL = 1 / 8  # seconds between two refreshes, at least
_ROW = 25  # cells in a row where the mesh is no grid
_BAR = 40  # characters

# a worker's age in doublings: 0, 1, 2-3, 4-7, 8-15, 16-31, 32 and more rounds of silence
_GLYPHS = ("█", "▓", "▓", "▒", "▒", "░", "·")
_ASCII = ("#", "%", "%", "+", "+", "-", ".")
_STYLES = ("#fde725", "#a0da39", "#4ac16d", "#1fa187", "#277f8e", "#365c8d", "#46327e")


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the run stands after round k."""

    k: int
    rounds_limit: int | None
    suboptimality: float
    target: float | None
    deltas: int
    tokens: int
    quiet: int
    ages: Sequence[int]  # d_i^k, in id order
    rounds_per_second: float
    nodes: int


class LiveView:
    """Shows the latest progress on a terminal, and nothing at all anywhere else.

    A context manager: the cursor comes back however the run ends.
    """

    def __init__(
        self,
        *,
        title: str = "",
        topology: str = "",
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # rich would take FORCE_COLOR for a terminal; a pipe stays quiet all the same
        self._console = console or Console(force_terminal=sys.stdout.isatty())
        self._title, self._topology, self._clock = title, topology, clock
        self._live: Live | None = None
        self._first: float | None = None
        self._latest: Progress | None = None
        self._drawn_at = -math.inf

    def start(self) -> None:
        """Take the lower end of the terminal."""
        if self._console.is_terminal and not self._console.is_dumb_terminal and not self._live:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()

    def update(self, progress: Progress) -> None:
        """Show this from now on; cheap when called often."""
        if self._live is None:
            return
        if self._first is None and _is_positive(progress.suboptimality):
            self._first = progress.suboptimality
        now = self._clock()
        if now - self._drawn_at >= _INTERVAL:
            self._draw(self._live, progress)
            self._drawn_at = now
        self._latest = progress

    def stop(self) -> None:
        """Leave the last progress standing and give the cursor back."""
        live, self._live = self._live, None
        if live is None:
            return
        try:
            if self._latest is not None:
                live.update(self._render(self._latest))
        finally:
            live.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _draw(self, live: Live, progress: Progress) -> None:
        try:
            live.update(self._render(progress), refresh=True)
        except BaseException:
            self.stop()
            raise

    def _render(self, progress: Progress) -> Group:
        fancy = self._console.encoding.lower().startswith("utf")
        facts = Table.grid(padding=(0, 2))
        facts.add_column(style="dim", no_wrap=True)
        facts.add_column(no_wrap=True)
        facts.add_row("round", _rounds(progress))
        facts.add_row("suboptimality", _gap(progress))
        done = closeness(progress.suboptimality, first=self._first, target=progress.target)
        if done is not None:
            bar = Table.grid(padding=(0, 1))
            bar.add_row(ProgressBar(total=1.0, completed=done, width=_BAR), f"{share(done):>6}")
            facts.add_row("", bar)
        facts.add_row("messages", _messages(progress))
        side_by_side = Table.grid(padding=(0, 3))
        side_by_side.add_row(facts, ages(progress.ages, self._topology, fancy=fancy))
        title = Text(self._title, style="bold", no_wrap=True, overflow="ellipsis")
        return Group(title, side_by_side) if self._title else Group(side_by_side)


def closeness(value: float, *, first: float | None, target: float | None) -> float | None:
    """The way from the first value to the target on a log scale, from 0 to 1; None without ends."""
    if first is None or target is None or not _is_positive(target) or first <= target:
        return None
    if not _is_positive(value):
        return 1.0 if value <= 0 else 0.0
    return min(1.0, max(0.0, math.log(first / value) / math.log(first / target)))


def ages(values: Sequence[int], topology: str, *, fancy: bool = True) -> Text:
    """A cell per worker, bright when it just spoke and fading with its silence."""
    shape = grid_shape(topology, len(values))
    width = _ROW if shape is None else shape[1]
    glyphs = _GLYPHS if fancy else _ASCII
    text = Text(no_wrap=True)
    for i, age in enumerate(values):
        if i and i % width == 0:
            text.append("\n")
        level = min(max(0, age).bit_length(), len(glyphs) - 1)
        text.append(2 * glyphs[level] + " ", style=_STYLES[level])
    text.append("\n")
    text.append(f"silent for 0 {glyphs[0]} {glyphs[3]} {glyphs[-1]} 32+ rounds", style="dim")
    return text


def _rounds(progress: Progress) -> str:
    limit = "" if progress.rounds_limit is None else f" of {count(progress.rounds_limit)}"
    return f"{count(progress.k + 1)}{limit}   {progress.rounds_per_second:.3g} rounds/s"


def _gap(progress: Progress) -> str:
    target = "" if progress.target is None else f"   target {small(progress.target)}"
    return f"{small(progress.suboptimality)}{target}"


def _messages(progress: Progress) -> str:
    skipped = progress.tokens + progress.quiet
    words = (
        f"{some(progress.deltas, 'delta')}, {share(skipped / max(1, progress.deltas + skipped))}"
    )
    return f"{words} skipped" + (f" ({some(progress.tokens, 'token')})" if skipped else "")


def _is_positive(value: float) -> bool:
    return math.isfinite(value) and value > 0
