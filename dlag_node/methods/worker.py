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
_NOT_TOLD = "which nodes that hold their own samples do not tell: expected another method"


@dataclass(frozen=True, slots=True)
class Everyone:
    """The whole graph, and of every worker in id order what few methods need of all."""

    edges: tuple[tuple[int, int], ...]
    weights: tuple[float, ...]  # U_ij of every edge
    mu: tuple[float, ...]
    L: tuple[float, ...]
    L_sum: tuple[float, ...] | None  # sum_j L_ij; None: not told of samples that nodes hold
    root_sum: tuple[float, ...] | None  # sum_j sqrt(1 + L_ij / mu_i)

    def sums(self, who: str) -> tuple[Array, Array]:
        """L_sum and root_sum; an error for `who` needs them where they are not told."""
        if self.L_sum is None or self.root_sum is None:
            raise ConfigError(f"{who} needs two sums over each node's samples, {_NOT_TOLD}")
        return np.array(self.L_sum), np.array(self.root_sum)

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
    L_sample: float | None  # the largest over all nodes; None: not told
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

    def L_of_a_sample(self, who: str) -> float:
        """The largest smoothness of a sample; an error for `who` needs it where it is not told."""
        if self.L_sample is None:
            raise ConfigError(f"{who} needs the largest norm of a sample, {_NOT_TOLD}")
        return self.L_sample

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
