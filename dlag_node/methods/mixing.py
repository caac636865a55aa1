"""The gossip matrix that a dual method mixes with, and Proposition 1's constants for it.

The dual function of the run is G(xi) = sum_i f_i^*(x_i) with x = xi sqrt(P), P being U or P_K(U).
f_i^* is 1/mu_i-smooth and 1/L_i-strongly convex, so with M = diag(mu_i) and L = diag(L_i)

    beta  = lambda_max(M^{-1/2} P M^{-1/2})     <= sigma_1(P) / mu_min
    alpha = lambda_{n-1}(L^{-1/2} P L^{-1/2})   >= sigma_{n-1}(P) / L_max

The right-hand sides are the paper's; the left-hand sides are exact (docs/beyond.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dlag_node.graphs.chebyshev import Chebyshev
from dlag_node.graphs.spectrum import Spectrum, spectrum_of
from dlag_node.graphs.weights import Array, curvature_weights
from dlag_node.methods.gossip import Neighborhood
from dlag_node.methods.theory import DualConstants, dual_constants
from dlag_node.methods.worker import Worker
from dlag_node.problems import eigenvalues


@dataclass(frozen=True, slots=True, eq=False)
class Mixing:
    """Row i of U, U's spectrum, and U itself where somebody asked for more than the run gives."""

    hood: Neighborhood
    spectrum: Spectrum
    U: Array | None = None

    def constants(self, worker: Worker, poly: Chebyshev | None, *, tight: bool) -> DualConstants:
        """alpha and beta of Proposition 1 for U or P_K(U), as the paper bounds them or tight."""
        spectrum = self.spectrum if poly is None else poly.of_spectrum(self.spectrum)
        paper = dual_constants(
            spectrum, mu_min=worker.mu_min, L_max=worker.L_max, multi=poly is not None
        )
        if not tight:
            return paper
        everyone = worker.all_about_everyone("constants=tight")
        U = everyone.matrix() if self.U is None else self.U
        alpha, beta = extremes(U if poly is None else poly.matrix(U), everyone.mu, everyone.L)
        return paper.with_extremes(alpha=alpha, beta=beta)


def mixing_for(worker: Worker, weights: str) -> Mixing:
    """The run's own U (`given`), or the one by `curvature`."""
    if weights == "given":
        return Mixing(worker.hood, worker.spectrum)
    everyone = worker.all_about_everyone("weights=curvature")
    U = curvature_weights(worker.nodes, everyone.edges, everyone.mu)
    i = worker.node
    hood = Neighborhood(float(U[i, i]), {j: float(U[i, j]) for j in worker.hood.weights})
    return Mixing(hood, spectrum_of(U), U)


def extremes(
    P: Array, mu: Array | tuple[float, ...], L: Array | tuple[float, ...]
) -> tuple[float, float]:
    """alpha and beta of a gossip matrix P for these mu_i and L_i, exactly."""
    by_mu, by_L = (1.0 / np.sqrt(np.asarray(each)) for each in (mu, L))
    beta = eigenvalues(by_mu[:, None] * P * by_mu)[-1]
    alpha = eigenvalues(by_L[:, None] * P * by_L)[1]
    return float(alpha), float(beta)
