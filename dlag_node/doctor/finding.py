"""What a check has found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Level(Enum):
    """How it is: fine, to be looked at, or in the way of a run."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's: what was looked at, how it is, and what would help."""

    level: Level
    check: str
    value: str
    remedy: str = ""

    def __str__(self) -> str:
        line = f"{self.level.value:<4}  {self.check:<11} {self.value}"
        return line if self.level is Level.OK else f"{line}: {self.remedy}"


def ok(check: str, value: str) -> Finding:
    """All is well."""
    return Finding(Level.OK, check, value)


def warn(check: str, value: str, remedy: str) -> Finding:
    """A run will work, and could work better."""
    return Finding(Level.WARN, check, value, remedy)


def fail(check: str, value: str, remedy: str) -> Finding:
    """A run will not work."""
    return Finding(Level.FAIL, check, value, remedy)
