"""The constants that the paper's theorems give for a problem and a gossip matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, sqrt

from dlag_node.graphs.spectrum import Spectrum


@dataclass(frozen=True, slots=True)
class DualConstants:
    """Proposition 1 for the gossip matrix with this spectrum: U, or P_K(U) for MDLAG."""

    alpha: float  # strong convexity of G on 1-orthogonal xi: sigma_{n-1} / L_max
    beta: float  # smoothness of G: sigma_1 / mu_min
    sigma_1: float
    mu_min: float
    kappa_F: float  # L_max / mu_min
    fading: float  # the kappa in the exponentials of gamma and c

    @property
    def kappa(self) -> float:
        """beta / alpha = kappa_F / zeta."""
        return self.beta / self.alpha

    def with_extremes(self, *, alpha: float, beta: float) -> DualConstants:
        """The same with these alpha and beta in the place of the paper's bounds."""
        return replace(self, alpha=alpha, beta=beta)

    def momentum(self, s: float) -> float:
        """(sqrt(s kappa) - 1) / (sqrt(s kappa) + 1)."""
        root = sqrt(s * self.kappa)
        return (root - 1.0) / (root + 1.0)

    def efold(self, eta_beta: float, s: float) -> float:
        """In so many rounds the steps shrink by a factor of e, if gradients are exact; a bound.

        For a quadratic G and eta = eta_beta / beta, the slowest mode is the one of curvature alpha:
        z^2 - (1 + momentum) (1 - eta alpha) z + momentum (1 - eta alpha) = 0. Where its roots are
        complex, |z|^2 is below momentum, about 1 - 2 / sqrt(s kappa). Where they are real, the
        larger is about 1 - eta alpha / (1 - momentum) = 1 - eta_beta sqrt(s) / (2 sqrt kappa). Both
        take at most 2 sqrt(s kappa) / min(1, eta_beta) rounds, as does Theorem 1's rate of L^k.
        """
        return 2.0 * sqrt(s * self.kappa) / min(1.0, eta_beta)

    def gain(self, eta_beta: float, s: float) -> float:
        """The largest step to which subproblems solved to a gradient norm of 1 lead; a bound.

        A theta_i is then off by 1/mu_min, the gossip makes at most 2 sigma_1 of that, eta has
        1/beta = mu_min / sigma_1, and the momentum adds up some sqrt(s kappa) of them.
        """
        return 2.0 * eta_beta * sqrt(s * self.kappa)

    def gamma(self, D: int) -> float:
        """Theorem 1: alpha beta mu_min^2 / (288 D ||sqrt U||^4) * exp(-2 D / sqrt kappa)."""
        return self._scale / (288.0 * D) * exp(-2.0 * D / sqrt(self.fading))

    def c(self, D: int) -> float:
        """Theorem 1: alpha beta mu_min^2 / (1200 D ||sqrt U||^4) * exp(-2 (D+1) / sqrt kappa)."""
        return self._scale / (1200.0 * D) * exp(-2.0 * (D + 1) / sqrt(self.fading))

    @property
    def _scale(self) -> float:
        """alpha beta mu_min^2 / ||sqrt U||^4, where ||sqrt U||^4 = sigma_1^2."""
        return self.alpha * self.beta * self.mu_min**2 / self.sigma_1**2


def dual_constants(
    spectrum: Spectrum, *, mu_min: float, L_max: float, multi: bool = False
) -> DualConstants:
    """alpha and beta of Proposition 1.

    The exponentials of Theorem 1 have kappa; those of the theorem on MDLAG (`multi`, alpha and
    beta from the spectrum of P_K(U)) have kappa_F, which is a little smaller than its kappa'.
    """
    alpha, beta = spectrum.sigma_gap / L_max, spectrum.sigma_1 / mu_min
    return DualConstants(
        alpha=alpha,
        beta=beta,
        sigma_1=spectrum.sigma_1,
        mu_min=mu_min,
        kappa_F=L_max / mu_min,
        fading=L_max / mu_min if multi else beta / alpha,
    )


def certified_reduction(c: float, kappa_i: float) -> float:
    """How far a subproblem's gradient norm must fall so that Lemma 1's contraction is certain.

    With mu ||theta - theta*|| <= ||grad|| <= L ||theta - theta*||, a fall by R makes
    ||theta^k - theta*||^2 <= (kappa_i R)^2 ||theta^{k-1} - theta*||^2, so R = sqrt(c/2) / kappa_i
    gives the factor c/2 that the proof of Lemma 1 asks for.
    """
    return sqrt(c / 2.0) / kappa_i
