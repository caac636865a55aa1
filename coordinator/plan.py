"""The plan of a run, pure: who is whose neighbor, who holds which samples, which constants."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from uuid import uuid4

from coordinator.datasets import Dataset, load_dataset
from coordinator.shards import split
from coordinator.survey import surveyed_nodes
from coordinator.without import data_left, graph_left, parse_without
from dlag_node.errors import ConfigError
from dlag_node.graphs.spectrum import Spectrum, spectrum_of
from dlag_node.graphs.topology import Graph, parse_topology
from dlag_node.graphs.weights import gossip_matrix
from dlag_node.problems import Array, Rows, loss_named, shard_bytes, stored_entries
from dlag_node.wire.control import Assignment, Census, Enrol, Peer, Report
from dlag_node.wire.limits import MAX_CENSUS_EDGES, MAX_CENSUS_NODES, MAX_NODES, PROTOCOL


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What an operator asks for; every text is in the form that the command line takes."""

    method: str = "auto"
    preset: str = "paper"
    topology: str = "grid:5x5"
    weights: str = "metropolis"
    problem: str = "logistic"
    lam: float = 0.01
    data: str = "heart"
    data_dir: str | None = None
    shards: str = "uneven:1,10"
    without: str = ""  # ids of workers that are lost, with their samples
    rounds: int = 5_000
    tol: float | None = None
    max_seconds: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ConfigError(f"rounds = {self.rounds}: expected at least 1")
        for name in ("tol", "max_seconds"):
            value = getattr(self, name)
            if value is not None and not (isfinite(value) and value > 0):
                raise ConfigError(f"{name} = {value}: expected a positive number")
        if self.seed < 0:
            raise ConfigError(f"seed = {self.seed}: expected a whole number of at least 0")


class Plan:
    """Everything that is decided once, from the settings alone; only the run's name is drawn."""

    def __init__(self, settings: RunSettings) -> None:
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
        data_dir = None if settings.data_dir is None else Path(settings.data_dir)
        self.dataset: Dataset = load_dataset(settings.data, self.loss, data_dir=data_dir)
        self.parts = split(settings.shards, self.dataset.labels, nodes=everyone, seed=settings.seed)
        if self.lost:
            self.dataset, self.parts = data_left(self.dataset, self.parts, self.lost)

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
    def n0(self) -> int:
        """The number of samples in all."""
        return len(self.dataset.labels)

    def shard(self, node: int) -> tuple[Rows, Array]:
        """Worker i's rows and labels."""
        part = self.parts[node]
        return self.dataset.rows.take(part), self.dataset.labels[part]

    def enrolment(self, node: int) -> tuple[Enrol, bytes]:
        """What worker i is told of its shard, and the shard's bytes."""
        rows, labels = self.shard(node)
        body = shard_bytes(rows, labels)
        enrol = Enrol(
            run=self.run,
            node=node,
            problem=self.loss.name,
            lam=float(self.settings.lam),
            n0=self.n0,
            samples=rows.samples,
            dim=rows.dim,
            entries=stored_entries(rows),
            size=len(body),
            sha256=hashlib.sha256(body).hexdigest(),
        )
        return enrol, body

    def assignments(self, reports: Sequence[Report]) -> list[Assignment]:
        """Every worker's assignment, from what all of them reported (in id order)."""
        mu_min = min(report.mu for report in reports)
        L_max = max(report.L for report in reports)
        L_sample = max(report.L_sample for report in reports)
        census = self._census(reports)
        common = asdict(self.settings) | {
            "protocol": PROTOCOL,
            "edges": self.graph.edges,
            "data": self.dataset.sha256,
            "mu_min": mu_min,
            "L_max": L_max,
            "L_sample": L_sample,
            "census": None if census is None else asdict(census),
        }
        del common["data_dir"]  # where the file lies is no part of what was agreed
        diameter = self.graph.diameter()
        text = json.dumps(common, sort_keys=True)
        config = hashlib.sha256(text.encode()).hexdigest()
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
            L_sum=tuple(report.L_sum for report in reports),
            root_sum=tuple(report.root_sum for report in reports),
        )
