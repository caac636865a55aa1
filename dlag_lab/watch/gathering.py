"""A mesh pieced together from what its nodes publish; pure, with the time handed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dlag_lab.watch.picture import Picture, mesh_heard, mesh_of
from dlag_lab.watch.series import Series
from dlag_node.wire.watching import Fault, Status

_FAULTS_KEPT = 500
_RUN_OVER_SECONDS = 5.0  # of silence; before that the words of another run are not heard


@dataclass(slots=True)
class _Life:
    """One node: its last words, and the sums of its earlier processes."""

    last: Status
    heard_at: float
    before: list[Status] = field(default_factory=list)  # the last words of each of those

    def sum(self, name: str) -> Any:
        """One of the sums, over all processes that were heard."""
        return sum(getattr(each.sums, name) for each in (*self.before, self.last))

    def near(self, neighbor: int) -> tuple[int, int, float]:
        """Deltas and tokens to that neighbor, and seconds that it was waited for."""
        found = [
            near
            for status in (*self.before, self.last)
            for near in status.near
            if near.node == neighbor
        ]
        return (
            sum(each.deltas for each in found),
            sum(each.tokens for each in found),
            sum(each.wait for each in found),
        )


class Gathering:
    """All nodes of one run, as far as they were heard."""

    def __init__(self, run: Mapping[str, Any] | None = None) -> None:
        """`run` is what a run folder knows of the mesh; without it the nodes' own words count."""
        self._known = None if run is None else mesh_of(run, live=True, rounds=None)
        self.mesh = self._known
        self.faults: list[tuple[int, Fault]] = []  # node and fault, the latest last
        self.faults_heard = 0
        self.costs = Series()  # deltas, skipped, bytes, residual
        self._lives: dict[int, _Life] = {}
        self._run = ""
        self._heard_at = 0.0

    def take(self, status: Status, now: float) -> None:
        """A node's word."""
        if status.run != self._run:
            if self._lives and now - self._heard_at < _RUN_OVER_SECONDS:
                return
            self._begin(status.run)
        if self._known is not None and status.node >= self._known.nodes:
            return
        self._heard_at = now
        life = self._lives.get(status.node)
        if life is None:
            life = self._lives[status.node] = _Life(status, now)
            self._note_faults(status, 0)
        elif status.restarts > life.last.restarts:
            life.before.append(life.last)
            self._note_faults(status, 0)
        elif status.restarts == life.last.restarts:
            self._note_faults(status, life.last.faults)
        else:
            return  # words of a process that is dead
        new = life.last is status or {n.node for n in life.last.near} != {
            n.node for n in status.near
        }
        life.last, life.heard_at = status, now
        if new and self._known is None:
            self._describe()

    def picture(self, now: float) -> Picture | None:
        """How the mesh stands now; None before anybody was heard."""
        mesh = self.mesh
        if mesh is None or not self._lives:
            return None
        lives = [self._lives.get(i) for i in range(mesh.nodes)]
        near = [self._both_ways(edge) for edge in mesh.edges]
        return Picture(
            k=min(life.last.rounds if life else 0 for life in lives),
            round=[life.last.rounds if life else 0 for life in lives],
            age=[life.last.age if life else 0 for life in lives],
            residual=[life.last.residual if life else None for life in lives],
            restarts=[life.last.restarts if life else 0 for life in lives],
            unheard=[
                None if life is None or life.last.finished else round(now - life.heard_at, 1)
                for life in lives
            ],
            finished=[life is not None and life.last.finished for life in lives],
            exchanges=[life.sum("exchanges") if life else 0 for life in lives],
            compute=[life.sum("compute") if life else 0.0 for life in lives],
            wait=[life.sum("wait") if life else 0.0 for life in lives],
            told=[[there[0], back[0]] for there, back in near],
            tokened=[[there[1], back[1]] for there, back in near],
            waited=[[there[2], back[2]] for there, back in near],
            deltas=self._sum("deltas"),
            tokens=self._sum("tokens"),
            quiet=self._sum("quiet"),
            payload_bytes=self._sum("payload_bytes"),
            sent_bytes=self._sum("sent_bytes"),
            refused=self._sum("refused"),
        )

    def note_costs(self, picture: Picture) -> None:
        """Keep a point of the curves."""
        residuals = [each for each in picture.residual if each is not None]
        worst = max(residuals, default=None)
        skipped = picture.tokens + picture.quiet
        self.costs.add(picture.k, [picture.deltas, skipped, picture.sent_bytes, worst])

    def _begin(self, run: str) -> None:
        self._run = run
        self._lives.clear()
        self.faults.clear()
        self.costs = Series()
        self.mesh = self._known

    def _note_faults(self, status: Status, before: int) -> None:
        new = min(status.faults - before, len(status.latest))
        if new > 0:
            self.faults += [(status.node, fault) for fault in status.latest[-new:]]
            self.faults_heard += new
            del self.faults[:-_FAULTS_KEPT]

    def _describe(self) -> None:
        edges = {
            (min(i, near.node), max(i, near.node))
            for i, life in self._lives.items()
            for near in life.last.near
        }
        nodes = 1 + max((*self._lives, *(j for _, j in edges)))
        self.mesh = mesh_heard(self._run, nodes, sorted(edges))

    def _both_ways(self, edge: tuple[int, int]) -> list[tuple[int, int, float]]:
        i, j = edge
        return [
            self._lives[a].near(b) if a in self._lives else (0, 0, 0.0) for a, b in ((i, j), (j, i))
        ]

    def _sum(self, name: str) -> int:
        total: int = sum(life.sum(name) for life in self._lives.values())
        return total
