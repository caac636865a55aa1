"""What an operator asks of a run, checked."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from dlag_node.data import check_scale
from dlag_node.errors import ConfigError


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What an operator asks for; every text is in the form that the command line takes."""

    method: str = "dlag:promise=2"
    preset: str = "paper"
    topology: str = "grid:5x5"
    weights: str = "metropolis"
    problem: str = "logistic"
    lam: float = 0.01
    data: str = "heart"
    data_dir: str | None = None
    label: str | None = None
    scale: str = "none"
    intercept: float = 0.0
    shards: str = "uneven:1,10"
    without: str = ""  # ids of workers that are lost, with their samples
    rounds: int = 5_000
    tol: float | None = None
    max_seconds: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("lam", "intercept", "tol", "max_seconds"):
            value = getattr(self, name)  # 1 and numpy's 1.0 are told, and hashed, as 1.0 is
            object.__setattr__(self, name, None if value is None else float(value))
        if self.rounds < 1:
            raise ConfigError(f"rounds = {self.rounds}: expected at least 1")
        for name in ("tol", "max_seconds"):
            value = getattr(self, name)
            if value is not None and not (isfinite(value) and value > 0):
                raise ConfigError(f"{name} = {value}: expected a positive number")
        if self.seed < 0:
            raise ConfigError(f"seed = {self.seed}: expected a whole number of at least 0")
        check_scale(self.scale)
        if not (np.isfinite(self.intercept) and self.intercept >= 0):
            raise ConfigError(f"intercept = {self.intercept}: expected a number of at least 0")
