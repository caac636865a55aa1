"""A run folder as a sequence of pictures, one a round, from the very records the nodes wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlag_lab.folder import RunFolder
from dlag_lab.result import Floats, Ints
from dlag_lab.summary import on_the_wire
from dlag_lab.watch.picture import Picture, mesh_of
from dlag_node.rounds.record import Record
from dlag_node.wire.watching import Fault


class Replay:
    """All rounds of a run; picture 0 is the mesh before the first one."""

    def __init__(self, folder: RunFolder) -> None:
        self._result = result = folder.load()
        wire = on_the_wire(result.summary)
        self.mesh = mesh_of(result.run, live=False, rounds=result.rounds, wire=wire)
        records = [folder.records(i)[: result.rounds] for i in range(result.nodes)]
        self._edges = _Edges(result.edges, records)
        table = result.records
        lengths = np.array([[len(each) for each in row] for row in table.exchanges])
        self._exchanges = _sums(lengths.reshape(table.shape))
        self._compute, self._wait = _sums(table.compute), _sums(table.wait)
        counts = {
            "deltas": table.deltas,
            "tokens": table.skips,
            "quiet": table.quiet,
            "payload_bytes": table.payload_bytes,
            "sent_bytes": table.sent_bytes,
        }
        self._totals = {name: _sums(each).sum(axis=1) for name, each in counts.items()}
        self.faults: list[tuple[int, Fault]] = sorted(
            ((i, fault) for i in range(result.nodes) for fault in folder.faults(i)),
            key=lambda each: each[1].at,
        )

    def curves(self) -> dict[str, list[list[Any]]]:
        """The whole run's curves: suboptimality, and costs."""
        gap = [
            [k + 1, value] for k, value in enumerate(_finite(self._result.trajectory.suboptimality))
        ]
        totals = self._totals
        skipped = totals["tokens"] + totals["quiet"]
        costs = zip(
            range(1, self._result.rounds + 1),
            *(each[1:].tolist() for each in (totals["deltas"], skipped, totals["sent_bytes"])),
            _finite(self._result.records.step.max(axis=1)),
            strict=True,
        )
        return {"gap": gap, "costs": [list(each) for each in costs]}

    def picture(self, k: int) -> Picture:
        """The mesh after k rounds."""
        nodes = self._result.nodes
        table = self._result.records
        begun = k > 0
        return Picture(
            k=k,
            round=[k] * nodes,
            age=table.age[k - 1].tolist() if begun else [0] * nodes,
            residual=_finite(table.step[k - 1]) if begun else [None] * nodes,
            restarts=self._restarts(k),
            unheard=[None] * nodes,
            finished=[k == self._result.rounds] * nodes,
            exchanges=self._exchanges[k].tolist(),
            compute=self._compute[k].tolist(),
            wait=self._wait[k].tolist(),
            told=self._edges.told[k].tolist(),
            tokened=self._edges.tokened[k].tolist(),
            waited=self._edges.waited[k].tolist(),
            refused=0,
            **{name: int(total[k]) for name, total in self._totals.items()},
        )

    def _restarts(self, k: int) -> list[int]:
        lives = [0] * self._result.nodes
        for node, fault in self.faults:
            if fault.rounds <= k:
                lives[node] = max(lives[node], fault.life)
        return lives


class _Edges:
    """Sums by edge and direction, [rounds + 1 x edges x 2]."""

    def __init__(
        self, edges: Sequence[tuple[int, int]], records: Sequence[Sequence[Record]]
    ) -> None:
        rounds = len(records[0])
        ends = [(e, s, edge[s], edge[1 - s]) for e, edge in enumerate(edges) for s in (0, 1)]
        told: Ints = np.zeros((rounds, len(edges), 2), dtype=np.int64)
        tokened: Ints = np.zeros_like(told)
        waited: Floats = np.zeros((rounds, len(edges), 2))
        neighbors = [sorted(b for _, _, a, b in ends if a == i) for i in range(len(records))]
        for e, side, a, b in ends:
            at = neighbors[a].index(b)
            for k, record in enumerate(records[a]):
                deltas, tokens, _ = record.by_neighbor(len(neighbors[a]))
                told[k, e, side], tokened[k, e, side] = deltas[at], tokens[at]
                waited[k, e, side] = (record.waits or {}).get(b, 0.0)
        self.told, self.tokened, self.waited = _sums(told), _sums(tokened), _sums(waited)


def _sums(values: NDArray[Any]) -> NDArray[Any]:
    """Sums over the rounds so far, with the nothing before the first one."""
    return np.concatenate([np.zeros_like(values[:1]), np.cumsum(values, axis=0)])


def _finite(values: Floats) -> list[float | None]:
    """As JSON can say it: what is no number becomes null."""
    return [each if np.isfinite(each) else None for each in values.tolist()]
