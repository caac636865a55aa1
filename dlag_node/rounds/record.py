"""What one worker did in one round: the same line from the simulator and from the network."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

SENT = "D"
SKIPPED = "s"
QUIET = "q"
_UNSAID = {"quiet": 0, "overdue": 0}  # what a line leaves out, beside what is None


@dataclass(slots=True)
class Record:
    """Worker i's round k, as one JSON line.

    `exchanges` has one letter per exchange of the round (MDLAG's round has K): `D` for a delta to
    anybody, `s` for a token, which says aloud that there is none, and `q` for quiet: nothing was
    sent, because silence was promised or is the method's own. A neighbor that got no delta was
    skipped, by a token or in quiet: deltas + skips + quiet is exchanges times neighbors. Bytes are
    summed over the worker's edges. Only `compute`, `wait` and `waits`, in seconds, depend on the
    machine: everything else is equal wherever the run is made.

    `gap` and `bound` are the two sides of the paper's lazy condition (`methods.flow.RoundReport`).
    """

    node: int
    k: int
    exchanges: str
    deltas: int  # over directed edges: one delta over one edge is one message
    skips: int  # tokens, over directed edges
    payload_bytes: int  # the vectors alone
    sent_bytes: int  # whole frames of the rounds, tokens included
    gradients: int  # sample gradients
    step: float  # ||x^{k+1} - x^k||
    age: int  # d_i^k
    compute: float
    wait: float
    told: list[int] | None = None  # deltas to each neighbor, by id; None: each went to all of them
    waits: dict[int, float] | None = None  # by who came last; None: nobody was watching
    quiet: int = 0  # over directed edges: exchanges in which a neighbor got nothing
    overdue: int = 0  # promised silences that the lazy condition did not allow
    gap: float | None = None  # ||theta_hat_i - theta_i||^2, 0 of who told its theta
    bound: float | None = None  # B_i, its right-hand side
    tokens: list[int] | None = None  # to each neighbor, by id; None: each s went to all of them

    def by_neighbor(self, neighbors: int) -> tuple[list[int], list[int], list[int]]:
        """Deltas, tokens and exchanges of quiet to each of so many neighbors, by id."""
        exchanges = len(self.exchanges)
        told = self.told or [self.exchanges.count(SENT)] * neighbors
        if self.tokens is not None:
            tokens = self.tokens
        elif self.quiet:
            tokens = [self.exchanges.count(SKIPPED)] * neighbors
        else:  # who got no delta got a token, as in all older folders
            tokens = [exchanges - deltas for deltas in told]
        quiet = [exchanges - deltas - each for deltas, each in zip(told, tokens, strict=True)]
        return told, tokens, quiet

    def to_json(self) -> str:
        """One line, without the line's end."""
        line = {
            name: value
            for name, value in asdict(self).items()
            if value is not None and _UNSAID.get(name) != value
        }
        return json.dumps(line, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> Record:
        """The record that `to_json` wrote."""
        values = json.loads(line)
        waits = values.pop("waits", None)
        if not isinstance(waits, dict):  # a list, in older folders: how late each was
            return cls(**values)
        return cls(**values, waits={int(node): seconds for node, seconds in waits.items()})
