"""The plan of a run, pure: who is whose neighbor, who holds which samples, which constants."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from coordinator.datasets import Dataset, load_dataset
from coordinator.settings import RunSettings
from coordinator.shards import split
from coordinator.survey import surveyed_nodes
from coordinator.without import data_left, graph_left, parse_without
from dlag_node.data import Agreement, Summary, agree, summarise
from dlag_node.errors import ConfigError
from dlag_node.graphs.spectrum import Spectrum, spectrum_of
from dlag_node.graphs.topology import Graph, parse_topology
from dlag_node.graphs.weights import gossip_matrix
from dlag_node.problems import Array, Problem, Rows, loss_named, shard_bytes, stored_entries
from dlag_node.wire.control import Assignment, Census, Enrol, Peer, Report
from dlag_node.wire.limits import MAX_CENSUS_EDGES, MAX_CENSUS_NODES, MAX_NODES, PROTOCOL

__all__ = ["HELD", "Plan", "RunSettings", "Terms"]

T = TypeVar("T")

_DIGITS = 9  # of a constant: LAPACK's on two processors agree in 13 and more
HELD = "nodes"  # in place of a data file: each node has its own
_NO_DATA = (
    "--data nodes: only a coordinator takes that (dlag-coordinator, with dlag-node --data FILE on "
    "each node); expected heart or a file"
)


@dataclass(frozen=True, slots=True)
class Terms:
    """What is settled once everybody's samples are known: how many, and what is done to them."""

    sizes: tuple[int, ...]  # m_i
    dim: int  # features of the nodes' tables
    agreement: Agreement


class Plan:
    """Everything that is decided once, from the settings and the samples; the run's name is drawn.

    Samples are dealt out, from a dataset, or the nodes hold them (`--data nodes`): then the terms
    are settled when all nodes have said what they hold.
    """

    def __init__(self, settings: RunSettings, dataset: Dataset | None = None) -> None:
        self.settings = settings
        self.run = uuid4().hex  # names this very run: frames of another one are refused
        self._graph: Graph | None = None
        surveyed = surveyed_nodes(settings.topology)
        whole = None if surveyed else parse_topology(settings.topology, seed=settings.seed)
        everyone = surveyed or (0 if whole is None else whole.nodes)
        self.lost = parse_without(settings.without, everyone)
        if whole is not None:
            self.lay_out(graph_left(whole, self.lost) if self.lost else whole)
        elif self.lost:
            raise ConfigError(f"without = {settings.without}: expected a topology that is known")
        self.nodes = everyone - len(self.lost)  # n, the number of workers
        self.loss = loss_named(settings.problem)
        self._dataset: Dataset | None = None
        self._terms: Terms | None = None
        if settings.data != HELD:
            self._deal(dataset or _load(settings), everyone)

    def _deal(self, data: Dataset, nodes: int) -> None:
        """Deal the samples to all workers; those of the ones that are lost are lost."""
        settings = self.settings
        self.parts = split(settings.shards, data.labels, nodes=nodes, seed=settings.seed)
        summary = summarise(data.table, settings.scale, who=data.name)
        agreement = self._agreement({data.name: summary})
        if self.lost:  # what was agreed with them stays: the others' thetas are of that scaling
            data, self.parts = data_left(data, self.parts, self.lost)
        self._dataset = data
        self._terms = Terms(tuple(len(part) for part in self.parts), summary.dim, agreement)

    def settle(self, said: Sequence[Summary]) -> None:
        """Take what all nodes say of their samples, in id order; ConfigError if it does not fit."""
        agreement = self._agreement({f"node {i}": each for i, each in enumerate(said)})
        self._terms = Terms(tuple(each.samples for each in said), said[0].dim, agreement)

    def by(self, method: str) -> Plan:
        """The same plan, of a run by another method."""
        other = copy(self)
        other.settings = replace(self.settings, method=method)
        return other

    def _agreement(self, said: Mapping[str, Summary]) -> Agreement:
        settings = self.settings
        return agree(said, loss=self.loss, scale=settings.scale, intercept=settings.intercept)

    def lay_out(self, graph: Graph) -> None:
        """Take this graph, with its U and the spectrum."""
        if graph.nodes > MAX_NODES:
            raise ConfigError(f"{graph.nodes} nodes: the limit is {MAX_NODES}")
        self._graph = graph
        self.U = gossip_matrix(graph, self.settings.weights)
        self.spectrum: Spectrum = spectrum_of(self.U)

    @property
    def surveyed(self) -> bool:
        """Whether the graph is still to be chosen, by what the nodes measure."""
        return self._graph is None

    @property
    def graph(self) -> Graph:
        """The network of the workers."""
        if self._graph is None:
            raise ConfigError(
                f"topology {self.settings.topology!r} is measured by the nodes of a "
                "dlag-coordinator; expected one that is known before, as grid:5x5 or a file"
            )
        return self._graph

    @property
    def held(self) -> bool:
        """Whether the nodes hold their own samples."""
        return self.settings.data == HELD

    @property
    def dataset(self) -> Dataset:
        """The samples that are dealt out."""
        if self._dataset is None:
            raise ConfigError(_NO_DATA)
        return self._dataset

    @property
    def terms(self) -> Terms:
        """What was settled."""
        if self._terms is None:
            raise ConfigError(_NO_DATA)
        return self._terms

    @property
    def n0(self) -> int:
        """The number of samples in all."""
        return sum(self.terms.sizes)

    @property
    def dim(self) -> int:
        """The number of entries of theta."""
        return self.terms.dim + self.terms.agreement.extra

    def shard(self, node: int) -> tuple[Rows, Array]:
        """Worker i's rows and labels, as they are dealt out."""
        part = self.parts[node]
        return self.dataset.rows.take(part), self.dataset.labels[part]

    def problem(self, node: int) -> Problem:
        """Worker i's f_i, of the samples that it is dealt."""
        return self._problem(*self.shard(node))

    def pooled(self) -> Problem:
        """The pooled objective f, of all samples that are dealt."""
        return self._problem(self.dataset.rows, self.dataset.labels)

    def _problem(self, rows: Rows, labels: Array) -> Problem:
        agreed = self.terms.agreement
        made = (agreed.rows(rows), agreed.labels(labels))
        return Problem(*made, self.loss, n0=self.n0, lam=self.settings.lam)

    def enrolment(self, node: int) -> tuple[Enrol, bytes]:
        """What worker i is told of the run and of its shard, and the shard's bytes.

        There are none where it holds its samples itself.
        """
        samples, entries, body, sha256 = self.terms.sizes[node], None, b"", ""
        if not self.held:
            rows, labels = self.shard(node)
            samples, entries, body = rows.samples, stored_entries(rows), shard_bytes(rows, labels)
            sha256 = hashlib.sha256(body).hexdigest()
        enrol = Enrol(
            run=self.run,
            node=node,
            problem=self.loss.name,
            lam=float(self.settings.lam),
            n0=self.n0,
            samples=samples,
            dim=self.terms.dim,
            entries=entries,
            size=len(body),
            sha256=sha256,
            agreement=self.terms.agreement,
        )
        return enrol, body

    def assignments(self, reports: Sequence[Report]) -> list[Assignment]:
        """Every worker's assignment, from what all of them reported (in id order)."""
        mu_min = min(report.mu for report in reports)
        L_max = max(report.L for report in reports)
        L_sample = _all_of(max, [report.L_sample for report in reports])
        census = self._census(reports)
        diameter = self.graph.diameter()
        config = self._hash(mu_min=mu_min, L_max=L_max, L_sample=L_sample, census=census)
        return [
            Assignment(
                config=config,
                method=self.settings.method,
                preset=self.settings.preset,
                rounds=self.settings.rounds,
                tol=self.settings.tol,
                max_seconds=self.settings.max_seconds,
                diameter=diameter,
                seed=self.settings.seed,
                own_weight=float(self.U[i, i]),
                peers=tuple(
                    Peer(j, reports[j].address, float(self.U[i, j]))
                    for j in self.graph.neighbors(i)
                ),
                spectrum=self.spectrum.values,
                mu_min=mu_min,
                L_max=L_max,
                L_sample=L_sample,
                census=census,
            )
            for i in range(self.nodes)
        ]

    def _hash(self, *, census: Census | None, **constants: float | None) -> str:
        """Of all that was agreed: the same wherever the same settings and samples are planned.

        So where files lie is no part of it, and constants count to a few digits: another processor
        has others in the last bits.
        """
        settings = self.settings
        common = asdict(settings) | {
            "protocol": PROTOCOL,
            "edges": self.graph.edges,
            "data": None if self.held else self.dataset.sha256,
            "agreement": repr(self.terms),
            "constants": _rounded(constants),
            "census": None if census is None else _rounded(asdict(census)),
        }
        del common["data_dir"], common["topology"]  # the edges are what it says, or its file
        if settings.label is not None and Path(settings.data).suffix == ".npy":
            del common["label"]  # a file, too, and in the hash of the data
        return hashlib.sha256(json.dumps(common, sort_keys=True).encode()).hexdigest()

    def _census(self, reports: Sequence[Report]) -> Census | None:
        """What everybody may know of everybody; None where it would be too much to tell."""
        edges = self.graph.edges
        if self.nodes > MAX_CENSUS_NODES or len(edges) > MAX_CENSUS_EDGES:
            return None
        return Census(
            edges=tuple(edges),
            weights=tuple(float(self.U[i, j]) for i, j in edges),
            mu=tuple(report.mu for report in reports),
            L=tuple(report.L for report in reports),
            L_sum=_all_of(tuple, [report.L_sum for report in reports]),
            root_sum=_all_of(tuple, [report.root_sum for report in reports]),
        )


def _load(settings: RunSettings) -> Dataset:
    folder = None if settings.data_dir is None else Path(settings.data_dir)
    return load_dataset(settings.data, data_dir=folder, label=settings.label)


def _all_of(fold: Callable[[list[float]], T], said: Sequence[float | None]) -> T | None:
    """What all of them said, folded; None where one of them kept it to itself."""
    told = [each for each in said if each is not None]
    return fold(told) if len(told) == len(said) else None


def _rounded(values: Any) -> Any:
    """Every float within, to _DIGITS digits."""
    if isinstance(values, float):
        return f"{values:.{_DIGITS}g}"
    if isinstance(values, Mapping):
        return {name: _rounded(each) for name, each in values.items()}
    if isinstance(values, tuple):
        return [_rounded(each) for each in values]
    return values
