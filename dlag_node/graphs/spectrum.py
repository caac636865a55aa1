"""The spectrum of U: sigma_1 >= ... >= sigma_{n-1} > sigma_n = 0, and the eigengap zeta."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dlag_node.errors import ConfigError
from dlag_node.graphs.weights import Array
from dlag_node.problems import eigenvalues

# An eigenvalue of a symmetric n x n matrix comes out within about n ulps of sigma_1; this many
# times as much is still zero to us.
_ROUNDING = 16


@dataclass(frozen=True, slots=True)
class Spectrum:
    """sigma_1 >= ... >= sigma_n of a gossip matrix, in `values`; the last is exactly 0."""

    values: tuple[float, ...]

    @property
    def sigma_1(self) -> float:
        """sigma_1(U), the largest eigenvalue."""
        return self.values[0]

    @property
    def sigma_gap(self) -> float:
        """sigma_{n-1}(U), the smallest eigenvalue but the null one."""
        return self.values[-2]

    @property
    def zeta(self) -> float:
        """zeta(U) = sigma_{n-1}(U) / sigma_1(U), the normalized eigengap."""
        return self.sigma_gap / self.sigma_1


def spectrum_of(U: Array) -> Spectrum:
    """The spectrum of U, after checking Assumption 2: U symmetric, U >= 0, null(U) = span{1}."""
    if U.ndim != 2 or U.shape[0] != U.shape[1] or U.shape[0] < 2:
        raise ConfigError(f"U of shape {U.shape}: expected n x n with n >= 2")
    if not np.isfinite(U).all():
        raise ConfigError("U contains a value that is not finite")
    n = U.shape[0]
    scale = float(np.abs(U).sum(axis=1).max())  # >= sigma_1, by Gershgorin
    zero = _ROUNDING * n * float(np.finfo(np.float64).eps) * scale
    if (skew := float(np.abs(U - U.T).max())) > zero:
        raise ConfigError(f"U is not symmetric: |U_ij - U_ji| reaches {skew:g}")
    rising = eigenvalues(U)
    if rising[0] < -zero:
        raise ConfigError(f"U has the eigenvalue {rising[0]:g}: expected none below 0")
    if (drift := float(np.abs(U.sum(axis=1)).max())) > zero:
        raise ConfigError(f"a row of U sums to {drift:g}: expected U 1 = 0")
    if not rising[1] > zero:
        raise ConfigError(
            f"sigma_(n-1) of U is {rising[1]:g}: expected it above 0 "
            "(the null space must be span{1}; is the graph connected?)"
        )
    return Spectrum((*rising[:0:-1].tolist(), 0.0))
