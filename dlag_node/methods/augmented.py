"""ADFS's augmented graph: its constants, and the law by which all workers draw its edges alike.

Worker i is a centre with mass sigma_i = mu_i and one virtual node a sample, with mass L_ij. A
virtual edge has the authors' weight, proportional to its virtual node's mass,

    mu_ij^2 = tau_i L_ij,    tau_i = lambda_2(Lap) / (sigma_i kappa_i),
    kappa_i = 1 + sum_j L_ij / sigma_i

a physical one the weight 1. That is why two sums over a worker's samples are enough for everybody:
sum_j L_ij and sum_j sqrt(1 + L_ij/sigma_i). With the cost of an edge

    c_e  = sqrt((1/sigma_k + 1/sigma_l) R_e),    R_e the effective resistance of e = {k, l}
    c_ij = sqrt((1/sigma_i + 1/L_ij) mu_ij^2) = sqrt(tau_i (1 + L_ij/sigma_i))

an edge is drawn with probability p = c / (sum of all c), the best for these weights, which makes
rho = sqrt(sigma_A) / (sum of all c). One number in [0, 1) decides a draw for all: a physical edge,
or a worker by the sum of its c_ij; where in the worker's interval it fell says which sample, and
only that worker knows how.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dlag_node.errors import ConfigError
from dlag_node.methods.flow import Array
from dlag_node.methods.worker import Everyone
from dlag_node.problems import eigenvalues
from dlag_node.problems import inverse as inverse_of
from dlag_node.problems import total as sum_of


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """What all workers agree on; `bounds` are the ends of the intervals of edges, then workers."""

    edges: tuple[tuple[int, int], ...]
    resistance: Array  # R_e
    p_edge: Array
    p_worker: Array  # of all of its samples together
    tau: Array
    total: float  # of all c: a sample's probability is c_ij / total
    sigma_A: float
    rho: float
    bounds: Array

    def drawn(self, u: Array) -> tuple[NDArray[np.intp], Array]:
        """Which interval each u in [0, 1) falls into, and where in it, in [0, 1).

        The first intervals are the edges', the others the workers'.
        """
        last = len(self.bounds) - 1
        at = np.minimum(np.searchsorted(self.bounds, u, side="right"), last)
        low = np.where(at > 0, self.bounds[at - 1], 0.0)
        return at, (u - low) / (self.bounds[at] - low)


@lru_cache(maxsize=1)  # a simulator asks once a worker
def law_of(everyone: Everyone) -> Law:
    """The law of this mesh."""
    sigma = np.array(everyone.mu)
    L_sum, root_sum = everyone.sums("adfs")
    if not L_sum.min() > 0:
        raise ConfigError(f"adfs: the samples of worker {int(L_sum.argmin())} are all zero")
    ends = np.array(everyone.edges)
    Lap = _laplacian(ends, len(sigma))
    values = eigenvalues(Lap)
    tau = values[1] / (sigma + L_sum)  # sigma_i kappa_i = sigma_i + sum_j L_ij
    inverse = inverse_of(Lap + 1.0 / len(sigma))  # that of Lap on all but the constants
    k, m = ends[:, 0], ends[:, 1]
    resistance = inverse[k, k] + inverse[m, m] - 2.0 * inverse[k, m]
    c_edge = np.sqrt((1.0 / sigma[k] + 1.0 / sigma[m]) * resistance)
    c_worker = np.sqrt(tau) * root_sum
    total = sum_of(c_edge) + sum_of(c_worker)
    sigma_A = _smallest(Lap, sigma, L_sum, tau)
    p_edge, p_worker = c_edge / total, c_worker / total
    bounds = np.cumsum(np.concatenate([p_edge, p_worker]))
    return Law(
        edges=everyone.edges,
        resistance=resistance,
        p_edge=p_edge,
        p_worker=p_worker,
        tau=tau,
        total=total,
        sigma_A=sigma_A,
        rho=float(np.sqrt(sigma_A)) / total,
        bounds=bounds,
    )


def _laplacian(ends: np.ndarray, nodes: int) -> Array:
    Lap = np.zeros((nodes, nodes))
    for k, m in ends:
        Lap[k, m] = Lap[m, k] = -1.0
    np.fill_diagonal(Lap, -Lap.sum(axis=1))
    return Lap


def _smallest(Lap: Array, sigma: Array, L_sum: Array, tau: Array) -> float:
    """sigma_A, the smallest nonzero eigenvalue of S^-1/2 Lap_augmented S^-1/2, S the masses.

    An eigenvector either has 0 at a worker's centre and its eigenvalue is tau_i, or is the same on
    all virtual nodes of a worker, which are then as good as one with mass sum_j L_ij.
    """
    weights = np.diag(tau * L_sum)
    lumped = np.block([[Lap + weights, -weights], [-weights, weights]])
    scale = 1.0 / np.sqrt(np.concatenate([sigma, L_sum]))
    values = eigenvalues(scale[:, None] * lumped * scale)
    return float(min(values[1], tau.min()))
