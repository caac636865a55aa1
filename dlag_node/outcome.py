"""How a process ended, by the type of its error: told by itself, raised again by who started it.

A process that was given the name of a file in DLAG_ENDING leaves its ending there if it fails:

    {"error": "NeighborTimeout", "reason": "node 1 waited 120.1 s ...", "who": "node-001"}

A node that is watched tells it as a text, `NeighborTimeout: node 1 waited 120.1 s ...`. Out of
either nothing but a class of the tree in `errors.py` is ever made.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dlag_node import errors
from dlag_node.errors import ConfigError, DlagError, ProcessDied, RunAborted

VARIABLE = "DLAG_ENDING"
_SIGNALS_FROM = 128  # an exit code above it tells of a signal: shells and containers say it so

KINDS = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, DlagError)
}


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a process that failed: which error, why, and which process it was."""

    kind: type[DlagError]
    reason: str
    who: str

    @classmethod
    def of(cls, error: BaseException, who: str) -> Self:
        """What this error makes of a process that is called so, or by the node's id if known."""
        if not isinstance(error, DlagError):
            return cls(ProcessDied, f"{type(error).__name__}: {error}", who)
        kind = next(each for each in type(error).__mro__ if each in KINDS.values())
        return cls(kind, str(error), who if error.node is None else f"node-{error.node:03d}")

    @classmethod
    def told(cls, text: str, who: str) -> Self:
        """The inverse of `text`; what begins with no class of the tree is a reason as a whole."""
        name, colon, reason = text.partition(": ")
        if colon and name in KINDS:
            return cls(KINDS[name], reason, who)
        return cls(RunAborted, text, who)

    @classmethod
    def untold(cls, code: int, who: str) -> Self:
        """Of a process that has left no ending, by its exit code; below 0 is a signal's number."""
        if code == ConfigError.exit_code:
            return cls(ConfigError, f"ended with exit code {code}: wrong settings", who)
        if code < 0:
            return cls(ProcessDied, f"killed by signal {-code}", who)
        if code > _SIGNALS_FROM:
            return cls(ProcessDied, f"ended by signal {code - _SIGNALS_FROM}", who)
        return cls(ProcessDied, f"ended with exit code {code}, and has not said why", who)

    @property
    def text(self) -> str:
        """In one line, for logs and for the wire."""
        return f"{self.kind.__name__}: {self.reason}"

    @property
    def secondhand(self) -> bool:
        """Whether another process had the reason, and this one was only told."""
        return issubclass(self.kind, RunAborted)

    def error(self, more: str = "") -> DlagError:
        """The same error again, for who started the process; `more` says where to look."""
        return self.kind(f"{self.who}: {self.reason}" + (f" ({more})" if more else ""))

    def leave(self, path: Path) -> None:
        """Write it, the whole of it or nothing; OSError where that cannot be."""
        told = {"error": self.kind.__name__, "reason": self.reason, "who": self.who}
        raw = json.dumps(told).encode() + b"\n"
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            temporary.write_bytes(raw)
            temporary.replace(path)
        except OSError:
            # a mounted file, as Kubernetes' termination log, cannot be replaced; who reads half of
            # it knows that it is no ending
            temporary.unlink(missing_ok=True)
            path.write_bytes(raw)


def ending_of(path: Path, *, code: int, who: str) -> Ending:
    """How a process ended: as it says in `path`, and if it says nothing there, by its exit code."""
    try:
        told = json.loads(path.read_bytes())
        name, reason = told["error"], told["reason"]
    except (OSError, ValueError, TypeError, KeyError):
        return Ending.untold(code, who)
    return Ending.told(f"{name}: {reason}", who)


def cause_of(endings: Iterable[Ending]) -> Ending:
    """The first of them that has a reason of its own; where all were told, the first."""
    return min(endings, key=lambda each: each.secondhand)
