"""What worker i knows when its method begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dlag_node.errors import ConfigError
from dlag_node.graphs.spectrum import Spectrum
from dlag_node.graphs.weights import Array, symmetric
from dlag_node.methods.gossip import Neighborhood
from dlag_node.problems import Problem

_SHARED_STREAM = 0  # spawn key of the stream that all workers draw alike
_PRIVATE_STREAM = 1  # spawn key of the workers' own random streams


@dataclass(frozen=True, slots=True)
class Everyone:
    """The whole graph, and of every worker in id order what few methods need of all."""

    edges: tuple[tuple[int, int], ...]
    weights: tuple[float, ...]  # U_ij of every edge
    mu: tuple[float, ...]
    L: tuple[float, ...]
    L_sum: tuple[float, ...]  # sum_j L_ij
    root_sum: tuple[float, ...]  # sum_j sqrt(1 + L_ij / mu_i)

    @property
    def degrees(self) -> Array:
        """deg_i of every worker."""
        return np.bincount(np.array(self.edges).ravel(), minlength=len(self.mu)).astype(float)

    def matrix(self) -> Array:
        """U."""
        return symmetric(len(self.mu), self.edges, self.weights)


@dataclass(frozen=True, slots=True)
class Worker:
    """Worker i: its objective, its row of U, and the constants of the whole run."""

    node: int
    problem: Problem
    hood: Neighborhood
    spectrum: Spectrum  # of U
    mu_min: float
    L_max: float
    L_sample: float  # the largest over all nodes
    seed: int
    everyone: Everyone | None = None  # not told on large meshes

    @property
    def nodes(self) -> int:
        """n, the number of workers: U has that many eigenvalues."""
        return len(self.spectrum.values)

    def all_about_everyone(self, who: str) -> Everyone:
        """What was told of everyone; an error for `who` needs it on a mesh too large for that."""
        if self.everyone is None:
            raise ConfigError(
                f"{who} needs the whole graph, which is told on meshes of up to 1,000 nodes and "
                f"10,000 edges; this one has {self.nodes} nodes"
            )
        return self.everyone

    @property
    def kappa_F(self) -> float:
        """L_max / mu_min, the condition number of F."""
        return self.L_max / self.mu_min

    def shared_stream(self) -> np.random.Generator:
        """The stream from which all workers draw the same numbers."""
        sequence = np.random.SeedSequence(self.seed, spawn_key=(_SHARED_STREAM,))
        return np.random.default_rng(sequence)

    def random_stream(self) -> np.random.Generator:
        """Worker i's own stream, spawned from the seed of the run."""
        sequence = np.random.SeedSequence(self.seed, spawn_key=(_PRIVATE_STREAM, self.node))
        return np.random.default_rng(sequence)
