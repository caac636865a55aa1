"""What a run left behind, as arrays: one row a round, one column a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlag_node.rounds.record import QUIET, SENT, SKIPPED, Record

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Text = NDArray[np.str_]

COUNTS = (
    "deltas", "skips", "quiet", "payload_bytes", "sent_bytes", "gradients", "age", "overdue",
)  # fmt: skip
MEASURES = ("step", "compute", "wait")
CONDITION = ("gap", "bound")  # of the paper's lazy condition, where a method has it


@dataclass(frozen=True, slots=True)
class Records:
    """All records of a run, each field an array [rounds x nodes] that can only be read.

    What a record does not say of the lazy condition is NaN.
    """

    exchanges: Text
    deltas: Ints
    skips: Ints  # tokens
    quiet: Ints
    payload_bytes: Ints
    sent_bytes: Ints
    gradients: Ints
    age: Ints
    overdue: Ints
    step: Floats
    compute: Floats
    wait: Floats
    gap: Floats
    bound: Floats

    @classmethod
    def of(cls, per_node: Sequence[Sequence[Record]]) -> Records:
        """The workers' records, cut to the last round that every one of them completed."""
        rounds = min(map(len, per_node), default=0)
        kept = [each[:rounds] for each in per_node]

        def column(field: str, dtype: type) -> NDArray[Any]:
            values = [[getattr(record, field) for record in each] for each in kept]
            array: NDArray[Any] = np.array(values, dtype=dtype).reshape(len(kept), rounds).T
            array.flags.writeable = False
            return array

        counts = {field: column(field, np.int64) for field in COUNTS}
        measures = {field: column(field, np.float64) for field in (*MEASURES, *CONDITION)}
        return cls(exchanges=column("exchanges", np.str_), **counts, **measures)

    @property
    def shape(self) -> tuple[int, int]:
        """Rounds, nodes."""
        rounds, nodes = self.deltas.shape
        return rounds, nodes

    @property
    def skipped(self) -> Ints:
        """Messages that were not sent, over directed edges: a token in their place, or nothing."""
        return self.skips + self.quiet

    @property
    def silent(self) -> Ints:
        """Exchanges in which a worker had no delta for anybody."""
        tokens = np.strings.count(self.exchanges, SKIPPED)
        return tokens + np.strings.count(self.exchanges, QUIET)

    def first_exchange(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Who told its neighbors a delta in the first exchange of a round, and who had one at all.

        The first exchange is the lazy one: MDLAG's other K - 1 always carry a vector. A round
        without any exchange (ADFS has them) is neither sent nor skipped.
        """
        return np.strings.startswith(self.exchanges, SENT), self.exchanges != ""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """What the laboratory measured after each round: the worst worker, and their disagreement."""

    suboptimality: Floats
    consensus_error: Floats

    def rounds_to(self, target: float | None) -> int | None:
        """How many rounds were complete when the suboptimality first was at most the target."""
        if target is None:
            return None
        reached = np.flatnonzero(self.suboptimality <= target)
        return int(reached[0]) + 1 if reached.size else None


@dataclass(frozen=True)
class RunResult:
    """A run as it was asked for (`run`), as it went, and as it was summed up (empty if it was not).

    Records and trajectory have the same number of rounds.
    """

    run: Mapping[str, Any]
    records: Records
    trajectory: Trajectory
    summary: Mapping[str, Any]
    path: Path | None = None

    @property
    def method(self) -> str:
        """The method's name."""
        return str(self.run["method"])

    @property
    def rounds(self) -> int:
        """Rounds that every node completed."""
        return self.records.shape[0]

    @property
    def nodes(self) -> int:
        """Workers in the mesh."""
        return self.records.shape[1]

    @property
    def edges(self) -> list[tuple[int, int]]:
        """Undirected edges."""
        return [(int(i), int(j)) for i, j in self.run["edges"]]

    @property
    def target(self) -> float | None:
        """The suboptimality asked for."""
        target = self.run.get("target")
        return None if target is None else float(target)

    @property
    def shard_sizes(self) -> Ints | None:
        """Samples of each worker, when the run knows them."""
        sizes = self.run.get("shard_sizes")
        return None if sizes is None or len(sizes) != self.nodes else np.asarray(sizes, np.int64)

    @cached_property
    def degrees(self) -> Ints:
        """Neighbors of each worker."""
        ends = np.asarray(self.run["edges"], dtype=np.int64).reshape(-1)
        return np.bincount(ends, minlength=self.nodes)

    @property
    def skip_share(self) -> float:
        """Share of all messages that were skipped, over directed edges; 0 when there were none."""
        skipped = int(self.records.skipped.sum())
        return skipped / max(1, skipped + int(self.records.deltas.sum()))

    @property
    def lazy_share(self) -> Floats:
        """Share of each worker's rounds in whose first exchange, the lazy one, it was silent."""
        sent, had = self.records.first_exchange()
        silent: Floats = (had & ~sent).sum(axis=0) / np.maximum(1, had.sum(axis=0))
        return silent
