"""What the paper's Theorem 3 and Corollary 1 promise, as plain formulas."""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from dlag_lab.result import Floats, Ints

THEOREM_S = 10.0  # Theorem 1's s, hence the sqrt(10) of Corollary 1
THEOREM_ETA_BETA = 2.0 / 15.0  # Theorem 1's eta, times beta


def importance(mu: Floats) -> Floats:
    """H_i = (1/mu_i) / (1/mu_min) = mu_min / mu_i, the importance factor of each worker."""
    factors: Floats = mu.min() / mu
    return factors


def scores(gamma: float, *, H: Floats, degrees: Ints, D: int) -> Floats:
    """The heterogeneity score h_d(gamma) for d = 1..D, at index d - 1.

        h_d(gamma) = 1 / (2 |E|) * sum_i m_i 1(H_i^2 <= gamma / d)

    with m_i worker i's `degrees`, which sum to 2 |E|: the share of directed edges whose sender
    speaks at most every d + 1 rounds.
    """
    allowed = gamma / np.arange(1, D + 1)
    rare = np.square(H)[None, :] <= allowed[:, None]
    shares: Floats = (rare * degrees).sum(axis=1) / degrees.sum()
    return shares


def bracket(h: Floats, K: int = 1) -> float:
    """K - sum_{d=1}^{D} (1/d - 1/(d+1)) h_d: Theorem 3's messages a round and directed edge."""
    d = np.arange(1, len(h) + 1)
    return K - float((h / (d * (d + 1.0))).sum())


def communication_bound(h: Floats, *, edges: int, rounds: float, K: int = 1) -> float:
    """Theorem 3: C <= (K - sum_d (1/d - 1/(d+1)) h_d) * 2 |E| * I, with I = `rounds`."""
    return bracket(h, K) * 2.0 * edges * rounds


def corollary_q(h: Floats) -> float:
    """Corollary 1: C_DLAG / C_SSDA <= q = sqrt(10) (1 - sum_d (1/d - 1/(d+1)) h_d)."""
    return sqrt(THEOREM_S) * bracket(h)


def predicted_rounds(*, s: float, kappa: float, eps: float) -> float:
    """sqrt(s kappa) log(1/eps), from the contraction by 1 - 1/sqrt(s kappa) a round.

    Deviation: the paper gives O(.) only. We take 1 for the hidden constant and for the Lyapunov
    function at k = 0, so this is an order of magnitude. s = 10 is DLAG's and MDLAG's by Theorem 1,
    s = 1 is SSDA's and MSDA's; kappa is kappa_F / zeta(U), or kappa_F / zeta(P_K(U)) for the two
    with several exchanges a round.
    """
    return sqrt(s * kappa) * log(1.0 / eps)
