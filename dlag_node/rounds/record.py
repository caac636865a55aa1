"""What one worker did in one round: the same line from the simulator and from the network."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

SENT = "D"
SKIPPED = "s"
QUIET = "q"


@dataclass(slots=True)
class Record:
    """Worker i's round k, as one JSON line.

    `exchanges` has one letter per exchange of the round, `D` for a delta to anybody and `s` for a
    skip to all (MDLAG's round has K letters). Bytes are summed over the worker's edges. Only
    `compute`, `wait` and `waits`, in seconds, depend on the machine: everything else is equal
    wherever the run is made.
    """

    node: int
    k: int
    exchanges: str
    deltas: int  # over directed edges: one delta over one edge is one message
    skips: int
    payload_bytes: int  # the vectors alone
    sent_bytes: int  # whole frames of the rounds, skip tokens included
    gradients: int  # sample gradients
    step: float  # ||x^{k+1} - x^k||
    age: int  # d_i^k
    compute: float
    wait: float
    told: list[int] | None = None  # deltas to each neighbor, by id; None: each went to all of them
    waits: dict[int, float] | None = None  # by who came last; None: nobody was watching
    quiet: int = 0
    overdue: int = 0
    gap: float | None = None
    bound: float | None = None

    def to_json(self) -> str:
        """One line, without the line's end."""
        line = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(line, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> Record:
        """The record that `to_json` wrote."""
        values = json.loads(line)
        waits = values.pop("waits", None)
        if not isinstance(waits, dict):  # a list, in older folders: how late each was
            return cls(**values)
        return cls(**values, waits={int(node): seconds for node, seconds in waits.items()})
