"""What an experiment of the paper is: a comparison with a fixed list of methods, plus claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from coordinator.plan import RunSettings
from dlag_lab.compare_table import Row
from dlag_lab.paper.claims import Verdict
from dlag_lab.result import Ints, RunResult


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """One figure of the paper: its number there, and the panel of our figures that it shows."""

    number: int
    panel: str
    file: str
    cost: Callable[[RunResult], Ints] | None = None  # in the place of the panel's own count


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment; `methods` says what each method is called, the base of ratios first."""

    name: str
    title: str
    methods: Mapping[str, str]  # method to name
    settings: RunSettings
    target: float
    seeds: int
    figures: tuple[PaperFigure, ...]
    judge: Callable[[Sequence[Row]], list[Verdict]]
    notes: tuple[str, ...] = ()
