"""The plan of a run, pure: who is whose neighbor, who holds which samples, which constants."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from coordinator.datasets import Dataset
from coordinator.draft import Dealt, Draft
from coordinator.settings import RunSettings
from coordinator.shards import Index
from dlag_node.errors import ConfigError
from dlag_node.problems import Array, Problem, Rows
from dlag_node.wire.control import Assignment, Enrol, Report

__all__ = ["Plan", "RunSettings"]

_NO_DATA = (
    "--data nodes: only a coordinator takes that (dlag-coordinator, with dlag-node --data FILE on "
    "each node); expected heart or a file"
)


class Plan:
    """A draft that lacks nothing: its samples are dealt out, on a graph that is given.

    Who has one has all of the data, as a laboratory does; a ConfigError where the nodes would have
    to be asked. A coordinator can do with less, a `Draft`.
    """

    def __init__(self, settings: RunSettings, dataset: Dataset | None = None) -> None:
        draft = Draft(settings, dataset)
        if draft.dealt is None:
            raise ConfigError(_NO_DATA)
        if draft.layout is None:
            raise ConfigError(
                f"topology {settings.topology!r} is measured by the nodes of a "
                "dlag-coordinator; expected one that is known before, as grid:5x5 or a file"
            )
        self._draft, self._layout = draft, draft.layout
        self.run = draft.run
        self.settings = settings
        self.nodes, self.lost, self.loss = draft.nodes, draft.lost, draft.loss
        self.graph, self.U = draft.layout.graph, draft.layout.U
        self.spectrum = draft.layout.spectrum
        self._take(draft.dealt)

    def _take(self, dealt: Dealt) -> None:
        self._dealt = dealt
        self.dataset, self.parts, self.terms = dealt.dataset, dealt.parts, dealt.terms

    def by(self, method: str) -> Plan:
        """The same plan, of a run by another method."""
        other = copy(self)
        other._draft = self._draft.by(method)
        other.settings = other._draft.settings
        return other

    def dealt_as(self, parts: Sequence[Index]) -> Plan:
        """The same plan, with these samples for each worker."""
        other = copy(self)
        other._take(self._dealt.among(parts))
        other._draft = copy(self._draft)
        other._draft.dealt = other._dealt
        return other

    @property
    def n0(self) -> int:
        """The number of samples in all."""
        return self.terms.n0

    @property
    def dim(self) -> int:
        """The number of entries of theta."""
        return self.terms.dim + self.terms.agreement.extra

    def shard(self, node: int) -> tuple[Rows, Array]:
        """Worker i's rows and labels, as they are dealt out."""
        return self._dealt.shard(node)

    def problem(self, node: int) -> Problem:
        """Worker i's f_i, of the samples that it is dealt."""
        return self._problem(*self.shard(node))

    def pooled(self) -> Problem:
        """The pooled objective f, of all samples that are dealt."""
        return self._problem(self.dataset.rows, self.dataset.labels)

    def enrolment(self, node: int) -> tuple[Enrol, bytes]:
        """What worker i is told of the run and of its shard, and the shard's bytes."""
        return self._draft.enrolment(node, self.terms)

    def assignments(self, reports: Sequence[Report]) -> list[Assignment]:
        """Every worker's assignment, from what all of them reported (in id order)."""
        return self._draft.assignments(reports, self.terms, self._layout)

    def _problem(self, rows: Rows, labels: Array) -> Problem:
        agreed = self.terms.agreement
        made = (agreed.rows(rows), agreed.labels(labels))
        return Problem(*made, self.loss, n0=self.n0, lam=self.settings.lam)
