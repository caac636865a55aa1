"""A comparison while it runs: how many runs are done, and how far the present one is."""

from __future__ import annotations

import sys
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from dlag_lab.live import Progress as RunProgress
from dlag_lab.live import closeness
from dlag_lab.units import count, small


class CompareView:
    """Two bars on a terminal, and nothing at all anywhere else; a context manager."""

    def __init__(self, runs: int, *, console: Console | None = None) -> None:
        # as in LiveView: a pipe stays quiet whatever FORCE_COLOR says
        console = console or Console(force_terminal=sys.stdout.isatty())
        shown = console.is_terminal and not console.is_dumb_terminal
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[words]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not shown,
            transient=True,
        )
        self._runs = runs
        self._all = self._bars.add_task("all runs", total=runs, words=f"0 of {runs}")
        self._done = 0

    def of_run(self, method: str, seed: int) -> RunLine:
        """The line of the run that begins now."""
        return RunLine(self._bars, f"{method}, seed {seed}")

    def done(self) -> None:
        """One more run has its outcome."""
        self._done += 1
        words = f"{self._done} of {self._runs}"
        self._bars.update(self._all, completed=self._done, words=words)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()


class RunLine:
    """The second bar: the way to the target on a log scale, or the share of the rounds."""

    def __init__(self, bars: Progress, title: str) -> None:
        self._bars, self._title = bars, title
        self._task: TaskID | None = None
        self._first: float | None = None

    def update(self, progress: RunProgress) -> None:
        """Show this from now on."""
        if self._task is None:
            return
        self._first = self._first or progress.suboptimality
        way = closeness(progress.suboptimality, first=self._first, target=progress.target)
        if way is None:
            way = (progress.k + 1) / (progress.rounds_limit or progress.k + 1)
        words = f"round {count(progress.k + 1)}, {small(progress.suboptimality)}"
        self._bars.update(self._task, completed=way, words=words)

    def __enter__(self) -> Self:
        self._task = self._bars.add_task(self._title, total=1.0, words="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._task is not None:
            self._bars.remove_task(self._task)
            self._task = None
