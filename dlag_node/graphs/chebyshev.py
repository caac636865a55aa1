"""Accelerated gossip: the Chebyshev polynomial P_K(U) of MSDA and MDLAG, K exchanges a round."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import acosh, floor, isfinite, log, sqrt

import numpy as np

from dlag_node.errors import ConfigError
from dlag_node.graphs.spectrum import Spectrum
from dlag_node.graphs.weights import Array
from dlag_node.problems import matrix_product

_MOST_EXCHANGES = 10_000  # K, whoever asks for it; the floor rule gives 2,607 for path:4096
# 1/sqrt(zeta) this close below an integer counts as the integer: a star's Laplacian has zeta = 1/n,
# and the last bit of an eigenvalue must not decide how many exchanges a round has.
_FLOOR_SLACK = 1e-9
_ZETA_ONE = 1.0 - 1e-12  # from here on the eigengap is 1 up to rounding
_ANY_C2 = 3.0


@dataclass(frozen=True, slots=True)
class Chebyshev:
    """P_K(U) = I - T_K(c_2 (I - c_3 U)) / T_K(c_2), with T_K the Chebyshev polynomial of degree K.

    `a` holds a_0..a_K, a_l = T_l(c_2), by the recursion of MDLAG's Accelerated Gossip:
    a_0 = 1, a_1 = c_2, a_{l+1} = 2 c_2 a_l - a_{l-1}.

    Deviation: the paper's footnote and appendix write c_2 with gamma and leave c_3 out of P_K; we
    follow its algorithm.
    """

    K: int
    c2: float
    c3: float
    a: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.K <= _MOST_EXCHANGES:
            raise ConfigError(f"K = {self.K}: expected 1 to {_MOST_EXCHANGES} exchanges a round")
        if not (isfinite(self.c2) and self.c2 > 1):
            raise ConfigError(f"c_2 = {self.c2}: expected a finite number above 1")
        if not (isfinite(self.c3) and self.c3 > 0):
            raise ConfigError(f"c_3 = {self.c3}: expected a finite number above 0")
        a = [1.0, self.c2]
        for _ in range(1, self.K):
            a.append(2.0 * self.c2 * a[-1] - a[-2])
        if not isfinite(a[-1]):
            raise ConfigError(f"K = {self.K} with c_2 = {self.c2:g}: a_K overflows")
        object.__setattr__(self, "a", tuple(a))

    def matrix(self, U: Array) -> Array:
        """P_K(U), by the recursion of Accelerated Gossip on z = I."""
        identity = np.eye(U.shape[0])
        M = identity - self.c3 * U
        before, z = identity, self.c2 * M
        for _ in range(1, self.K):
            before, z = z, 2.0 * self.c2 * matrix_product(M, z) - before
        return identity - z / self.a[-1]

    def of_spectrum(self, spectrum: Spectrum) -> Spectrum:
        """The spectrum of P_K(U) from that of U."""
        m = 1.0 - self.c3 * np.array(spectrum.values[:-1])
        before, z = np.ones_like(m), self.c2 * m
        for _ in range(1, self.K):
            before, z = z, 2.0 * self.c2 * (m * z) - before
        return Spectrum((*np.sort(1.0 - z / self.a[-1])[::-1].tolist(), 0.0))


def chebyshev_for(spectrum: Spectrum, K: int | None = None) -> Chebyshev:
    """The polynomial for a gossip matrix of that spectrum, with the constants of MDLAG:

    c_2 = (1 + zeta) / (1 - zeta), c_3 = 2 / ((1 + zeta) sigma_1), K = floor(1 / sqrt(zeta)).

    A larger K buys a larger zeta(P_K(U)) for more exchanges, until P_K(U) is the average itself.
    """
    zeta = spectrum.zeta
    # zeta = 1, the complete graph: c_2 would be infinite. There the rule gives K = 1 and
    # P_1(U) = I - c_2 (I - c_3 U) / c_2, so c_2 cancels; with a K from the operator every
    # eigenvalue of c_2 (I - c_3 U) but the null one is 0, and any c_2 leaves zeta(P_K(U)) = 1.
    c2 = _ANY_C2 if zeta > _ZETA_ONE else (1.0 + zeta) / (1.0 - zeta)
    c3 = 2.0 / ((1.0 + zeta) * spectrum.sigma_1)
    if K is None:
        K = max(1, floor(1.0 / sqrt(zeta) + _FLOOR_SLACK))
    elif (most := _most_useful(c2)) < K:
        raise ConfigError(
            f"K = {K}: expected at most {most} for zeta = {zeta:.3g}, where P_K(U) is already "
            "the exact average up to rounding"
        )
    return Chebyshev(K, c2, c3)


def _most_useful(c2: float) -> int:
    """The least K with T_K(c_2) = cosh(K acosh c_2) >= 1/eps: then I - P_K(U) is all rounding."""
    return 1 + floor(log(2.0 / float(np.finfo(np.float64).eps)) / acosh(c2))
