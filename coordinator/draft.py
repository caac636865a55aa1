"""What settings decide of a run before its nodes have spoken, and what follows when they have.

A `Draft` may lack two things: samples, where the nodes hold their own, and the graph, where they
measure it. What nodes say of the one becomes `Terms`, of the other a `Layout`; with both at hand
everybody's assignment follows. Nothing here changes: who lacks something is given it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from coordinator.datasets import Dataset, load_dataset
from coordinator.settings import RunSettings
from coordinator.shards import Index, split
from coordinator.survey import surveyed_nodes
from coordinator.without import data_left, graph_left, parse_without
from dlag_node.data import Agreement, Summary, agree, summarise
from dlag_node.errors import ConfigError
from dlag_node.graphs.spectrum import Spectrum, spectrum_of
from dlag_node.graphs.topology import Graph, parse_topology
from dlag_node.graphs.weights import gossip_matrix
from dlag_node.problems import Array, Rows, loss_named, shard_bytes, stored_entries
from dlag_node.wire.control import Assignment, Census, Enrol, Peer, Report
from dlag_node.wire.limits import MAX_CENSUS_EDGES, MAX_CENSUS_NODES, MAX_NODES, PROTOCOL

T = TypeVar("T")

HELD = "nodes"  # in place of a data file: each node has its own
_DIGITS = 9  # of a constant: LAPACK's on two processors agree in 13 and more


@dataclass(frozen=True, slots=True)
class Terms:
    """What is settled once everybody's samples are known: how many, and what is done to them."""

    sizes: tuple[int, ...]  # m_i
    dim: int  # features of the nodes' tables
    agreement: Agreement

    @property
    def n0(self) -> int:
        """The number of samples in all."""
        return sum(self.sizes)


@dataclass(frozen=True, slots=True, eq=False)
class Dealt:
    """Samples that are dealt out, and who gets which of them."""

    dataset: Dataset
    parts: Sequence[Index]
    terms: Terms

    def shard(self, node: int) -> tuple[Rows, Array]:
        """Worker i's rows and labels, as they are dealt out."""
        part = self.parts[node]
        return self.dataset.rows.take(part), self.dataset.labels[part]

    def among(self, parts: Sequence[Index]) -> Dealt:
        """The same samples, dealt otherwise."""
        terms = replace(self.terms, sizes=tuple(len(part) for part in parts))
        return Dealt(self.dataset, parts, terms)


class Layout:
    """The network of the workers, with its U and the spectrum."""

    def __init__(self, graph: Graph, weights: str) -> None:
        if graph.nodes > MAX_NODES:
            raise ConfigError(f"{graph.nodes} nodes: the limit is {MAX_NODES}")
        self.graph = graph
        self.U: Array = gossip_matrix(graph, weights)
        self.spectrum: Spectrum = spectrum_of(self.U)

    @cached_property
    def diameter(self) -> int:
        """The longest way between two workers, in edges."""
        return self.graph.diameter()


class Draft:
    """Everything that is decided once, from the settings; the run's name is drawn."""

    def __init__(self, settings: RunSettings, dataset: Dataset | None = None) -> None:
        self.settings = settings
        self.run = uuid4().hex  # names this very run: frames of another one are refused
        surveyed = surveyed_nodes(settings.topology)
        whole = None if surveyed else parse_topology(settings.topology, seed=settings.seed)
        everyone = surveyed or (0 if whole is None else whole.nodes)
        self.lost = parse_without(settings.without, everyone)
        self.layout: Layout | None = None  # to be chosen, by what the nodes measure
        if whole is not None:
            self.layout = self.lay_out(graph_left(whole, self.lost) if self.lost else whole)
        elif self.lost:
            raise ConfigError(f"without = {settings.without}: expected a topology that is known")
        self.nodes = everyone - len(self.lost)  # n, the number of workers
        self.loss = loss_named(settings.problem)
        self.dealt: Dealt | None = None  # the nodes hold their own samples
        if settings.data != HELD:
            self.dealt = self._deal(dataset or _load(settings), everyone)

    def by(self, method: str) -> Draft:
        """The same draft, of a run by another method."""
        other = copy(self)
        other.settings = replace(self.settings, method=method)
        return other

    def lay_out(self, graph: Graph) -> Layout:
        """This graph, with the weights that the settings ask for."""
        return Layout(graph, self.settings.weights)

    def settle(self, said: Sequence[Summary]) -> Terms:
        """What all nodes say of their samples, in id order; ConfigError if it does not fit."""
        agreement = self._agreement({f"node {i}": each for i, each in enumerate(said)})
        return Terms(tuple(each.samples for each in said), said[0].dim, agreement)

    def enrolment(self, node: int, terms: Terms) -> tuple[Enrol, bytes]:
        """What worker i is told of the run and of its shard, and the shard's bytes.

        There are none where it holds its samples itself.
        """
        samples, entries, body, sha256 = terms.sizes[node], None, b"", ""
        if self.dealt is not None:
            rows, labels = self.dealt.shard(node)
            samples, entries, body = rows.samples, stored_entries(rows), shard_bytes(rows, labels)
            sha256 = hashlib.sha256(body).hexdigest()
        enrol = Enrol(
            run=self.run,
            node=node,
            problem=self.loss.name,
            lam=float(self.settings.lam),
            n0=terms.n0,
            samples=samples,
            dim=terms.dim,
            entries=entries,
            size=len(body),
            sha256=sha256,
            agreement=terms.agreement,
        )
        return enrol, body

    def assignments(
        self, reports: Sequence[Report], terms: Terms, layout: Layout
    ) -> list[Assignment]:
        """Every worker's assignment, from what all of them reported (in id order)."""
        mu_min = min(report.mu for report in reports)
        L_max = max(report.L for report in reports)
        L_sample = _all_of(max, [report.L_sample for report in reports])
        census = _census(reports, layout)
        constants = {"mu_min": mu_min, "L_max": L_max, "L_sample": L_sample}
        config = self._hash(terms, layout, census, constants)
        return [
            Assignment(
                config=config,
                method=self.settings.method,
                preset=self.settings.preset,
                rounds=self.settings.rounds,
                tol=self.settings.tol,
                max_seconds=self.settings.max_seconds,
                diameter=layout.diameter,
                seed=self.settings.seed,
                own_weight=float(layout.U[i, i]),
                peers=tuple(
                    Peer(j, reports[j].address, float(layout.U[i, j]))
                    for j in layout.graph.neighbors(i)
                ),
                spectrum=layout.spectrum.values,
                mu_min=mu_min,
                L_max=L_max,
                L_sample=L_sample,
                census=census,
            )
            for i in range(self.nodes)
        ]

    def _deal(self, data: Dataset, nodes: int) -> Dealt:
        """Deal the samples to all workers; those of the ones that are lost are lost."""
        settings = self.settings
        parts = split(settings.shards, data.labels, nodes=nodes, seed=settings.seed)
        summary = summarise(data.table, settings.scale, who=data.name)
        agreement = self._agreement({data.name: summary})
        if self.lost:  # what was agreed with them stays: the others' thetas are of that scaling
            data, parts = data_left(data, parts, self.lost)
        terms = Terms(tuple(len(part) for part in parts), summary.dim, agreement)
        return Dealt(data, parts, terms)

    def _agreement(self, said: Mapping[str, Summary]) -> Agreement:
        settings = self.settings
        return agree(said, loss=self.loss, scale=settings.scale, intercept=settings.intercept)

    def _hash(
        self,
        terms: Terms,
        layout: Layout,
        census: Census | None,
        constants: Mapping[str, float | None],
    ) -> str:
        """Of all that was agreed: the same wherever the same settings and samples are planned.

        So where files lie is no part of it, and constants count to a few digits: another processor
        has others in the last bits.
        """
        settings = self.settings
        common = asdict(settings) | {
            "protocol": PROTOCOL,
            "edges": layout.graph.edges,
            "data": None if self.dealt is None else self.dealt.dataset.sha256,
            "agreement": repr(terms),
            "constants": _rounded(constants),
            "census": None if census is None else _rounded(asdict(census)),
        }
        del common["data_dir"], common["topology"]  # the edges are what it says, or its file
        if settings.label is not None and Path(settings.data).suffix == ".npy":
            del common["label"]  # a file, too, and in the hash of the data
        return hashlib.sha256(json.dumps(common, sort_keys=True).encode()).hexdigest()


def _census(reports: Sequence[Report], layout: Layout) -> Census | None:
    """What everybody may know of everybody; None where it would be too much to tell."""
    edges = layout.graph.edges
    if layout.graph.nodes > MAX_CENSUS_NODES or len(edges) > MAX_CENSUS_EDGES:
        return None
    return Census(
        edges=tuple(edges),
        weights=tuple(float(layout.U[i, j]) for i, j in edges),
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
