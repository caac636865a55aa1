"""Katyusha (Allen-Zhu 2017, Algorithm 1): accelerated variance reduction for the subproblem.

f_i - <., x> is the average over j of the smooth (m/n0) l_j(<a_j, .>), each L-smooth, plus
psi(theta) = (mu/2) ||theta||^2 - <x, theta>, which the proximal step takes exactly. For sigma = mu

    tau_1 = min( sqrt(2 m sigma / (3 L)), 1/2 ),  tau_2 = 1/2,  alpha = 1 / (3 tau_1 L)

an epoch with snapshot s and its smooth gradient grad(s) takes 2m steps k = 0, 1, ...

    v_{k+1} = tau_1 z_k + tau_2 s + (1 - tau_1 - tau_2) y_k
    est     = grad(s) + (m/n0) ( l'_j(<a_j, v_{k+1}>) - l'_j(<a_j, s>) ) a_j,     j drawn evenly
    z_{k+1} = ( z_k - alpha (est - x) ) / (1 + alpha sigma)                 the prox with psi
    y_{k+1} = v_{k+1} + tau_1 (z_{k+1} - z_k)                               Option II
    s       <- average of y_{k+1} with weights (1 + alpha sigma)^k          after the last step

(v is Allen-Zhu's x, a letter that is taken here.) z and y carry over to the next epoch; a call
begins with z = y = s = the warm start and returns the last s.

Written around the snapshot, Z = tau_1 (z - s), U = y - s, g = grad(s) + sigma s - x, the steps are

    Z <- q (Z - c delta a_j) - h,   U <- Z + tau_3 U,   S <- q S + U

with q = 1/(1 + alpha sigma), tau_3 = 1 - tau_1 - tau_2, c = alpha tau_1, h = q c g, and delta the
difference in est. S is the weighted sum of U with the weights taken from the end, q^{2m-1-k}: they
can underflow, never overflow. All of Z, U, S, h vanish at the solution, where nothing is left to
cancel.

Sparse rows: a coordinate that no drawn row touches for t steps obeys the recursion with delta = 0,

    Z_t = q^t Z - A_t h,   U_t = tau_3^t U + B_t Z - C_t h

and is brought up to date when a row touches it. S is linear in its initial values and in each kick
-c delta a_j given to Z: a kick with t steps to go adds E_t times itself to the final S, so S is
never brought up to date at all. The coefficients are sums of positive terms built by the recursion
itself, so their tables over t = 0..2m hold no cancellation; what underflows is set to zero.
"""

from __future__ import annotations

from collections.abc import Callable
from math import expm1, log1p, sqrt
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dlag_node.solvers.calls import Call, Outcome, run_epochs
from dlag_node.solvers.compiled import dense_dot, loss_slope
from dlag_node.solvers.subproblem import (
    LABEL,
    MARGIN,
    SLOPE,
    Scale,
    Subproblem,
    dense_gradient,
    sparse_gradient,
)

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_TAU2 = 0.5
_TINY = 1e-290  # below this a coefficient is zero: subnormal numbers are slow


class Pace(NamedTuple):
    """The constants of the recursion."""

    q: float
    tau1: float
    tau3: float
    c: float
    weights: float  # sum over k of q^{2m-1-k}


class Katyusha:
    """Katyusha for one subproblem: its constants and, for sparse rows, its tables."""

    def __init__(self, sub: Subproblem) -> None:
        self._sub = sub
        self._pace = pace_of(sub)
        tables = lag_tables(sub.epoch_steps, self._pace) if sub.sparse else ()
        self._tables: tuple[Array, ...] = tables

    def solve(self, call: Call) -> Outcome:
        """Epochs of 3m sample gradients each (for 2m steps); see `run_epochs`."""
        return run_epochs(self._sub, call, self.stepper(call.theta))

    def stepper(self, theta: Array) -> Callable[[Index, bool], None]:
        """The `advance` of `run_epochs`, beginning with z = y = s = theta."""
        sub = self._sub
        Z, U = np.zeros(sub.dim), np.zeros(sub.dim)
        kernel: Callable[..., None] = sparse_epochs if sub.sparse else dense_epochs

        def advance(draws: Index, measured: bool) -> None:
            kernel(
                *sub.arrays, sub.scale, self._pace, *self._tables,
                sub.kept, sub.x, theta, sub.g, Z, U, draws, measured,
            )  # fmt: skip

        return advance


def pace_of(sub: Subproblem) -> Pace:
    """tau_1, alpha and what follows from them; 2m stands for the steps of an epoch."""
    steps, sigma = sub.epoch_steps, sub.problem.mu
    L = sub.problem.L_sample or sigma  # no sample has a feature: any L will do
    tau1 = min(sqrt(steps * sigma / (3 * L)), 0.5)
    alpha = 1.0 / (3.0 * tau1 * L)
    q = 1.0 / (1.0 + alpha * sigma)
    weights = -expm1(-steps * log1p(alpha * sigma)) / (q * alpha * sigma)
    return Pace(q, tau1, 1.0 - tau1 - _TAU2, alpha * tau1, weights)


@njit(cache=True, nogil=True)
def dense_epochs(
    A: Array,
    scale: Scale,
    pace: Pace,
    kept: Array,
    x: Array,
    theta: Array,
    g: Array,
    Z: Array,
    U: Array,
    draws: Index,
    measured: bool,
) -> None:
    """One epoch for each row of `draws`; theta is the snapshot s, before and after."""
    h, S, V = np.empty_like(g), np.empty_like(g), np.empty_like(g)
    for epoch in range(draws.shape[0]):
        if epoch > 0 or not measured:
            dense_gradient(A, scale, kept, x, theta, g)
        _dense_steps(A, scale, pace, kept, g, Z, U, h, S, V, draws[epoch])
        _move(pace, theta, S, Z, U)


@njit(cache=True, nogil=True)
def _dense_steps(
    A: Array,
    scale: Scale,
    pace: Pace,
    kept: Array,
    g: Array,
    Z: Array,
    U: Array,
    h: Array,
    S: Array,
    V: Array,
    draws: Index,
) -> None:
    """The steps of one epoch; V = v - s = Z + tau_3 U is what the next margin needs."""
    q, tau3 = pace.q, pace.tau3
    dim = g.shape[0]
    for t in range(dim):
        h[t] = q * pace.c * g[t]
        S[t] = 0.0
        V[t] = Z[t] + tau3 * U[t]
    for k in range(draws.shape[0]):
        j = draws[k]
        s = kept[j, MARGIN] + dense_dot(A, j, V)
        slope = loss_slope(scale.code, s, kept[j, LABEL])
        kick = pace.c * scale.component * (slope - kept[j, SLOPE])
        for t in range(dim):
            Z[t] = q * (Z[t] - kick * A[j, t]) - h[t]
            U[t] = Z[t] + tau3 * U[t]
            S[t] = q * S[t] + U[t]
            V[t] = Z[t] + tau3 * U[t]


@njit(cache=True, nogil=True)
def _move(pace: Pace, theta: Array, S: Array, Z: Array, U: Array) -> None:
    """The new snapshot s + S / sum of weights; Z and U are written around it from now on."""
    for t in range(theta.shape[0]):
        step = S[t] / pace.weights
        theta[t] += step
        Z[t] -= pace.tau1 * step
        U[t] -= step


@njit(cache=True, nogil=True)
def lag_tables(steps: int, pace: Pace) -> tuple[Array, Array, Array]:
    """Coefficients over the lag t = 0..steps: rows (q^t, A_t, tau_3^t, B_t, C_t); E_t; (D, F).

    With delta = 0 the recursion gives, all beginning at t = 0 with q^0 = tau_3^0 = 1 and zeros,

        A_{t+1} = A_t + q^t                 D_{t+1} = q D_t + tau_3^{t+1}
        B_{t+1} = q^{t+1} + tau_3 B_t       E_{t+1} = q E_t + B_{t+1}
        C_{t+1} = A_{t+1} + tau_3 C_t       F_{t+1} = q F_t + C_{t+1}

    and the final S is D U + E Z - F h for the initial Z and U, plus E_t for each kick.
    """
    lags, echo = np.zeros((steps + 1, 5)), np.zeros(steps + 1)
    lags[0, 0] = lags[0, 2] = 1.0
    D = F = 0.0
    for t in range(steps):
        decay, fade = lags[t, 0] * pace.q, lags[t, 2] * pace.tau3
        lags[t + 1, 0] = decay if decay > _TINY else 0.0
        lags[t + 1, 1] = lags[t, 1] + lags[t, 0]
        lags[t + 1, 2] = fade if fade > _TINY else 0.0
        lags[t + 1, 3] = lags[t + 1, 0] + pace.tau3 * lags[t, 3]
        lags[t + 1, 4] = lags[t + 1, 1] + pace.tau3 * lags[t, 4]
        echo[t + 1] = pace.q * echo[t] + lags[t + 1, 3]
        D = pace.q * D + lags[t + 1, 2]
        F = pace.q * F + lags[t + 1, 4]
    return lags, echo, np.array([D, F])


@njit(cache=True, nogil=True)
def sparse_epochs(
    values: Array,
    columns: Index,
    start: Index,
    scale: Scale,
    pace: Pace,
    lags: Array,
    echo: Array,
    ends: Array,
    kept: Array,
    x: Array,
    theta: Array,
    g: Array,
    Z: Array,
    U: Array,
    draws: Index,
    measured: bool,
) -> None:
    """One epoch for each row of `draws`; theta is the snapshot s, before and after."""
    S, seen, steps = np.empty_like(g), np.empty(g.shape[0], np.int64), draws.shape[1]
    state = np.empty((g.shape[0], 4))
    for epoch in range(draws.shape[0]):
        if epoch > 0 or not measured:
            sparse_gradient(values, columns, start, scale, kept, x, theta, g)
        for t in range(g.shape[0]):
            h = pace.q * pace.c * g[t]
            state[t, 0], state[t, 1], state[t, 2] = Z[t], U[t], h
            state[t, 3] = ends[0] * U[t] + echo[steps] * Z[t] - ends[1] * h
            seen[t] = 0
        _sparse_steps(
            values, columns, start, scale, pace, lags, echo, kept, state, seen, draws[epoch]
        )
        for t in range(g.shape[0]):
            Z[t], U[t] = _caught_up(lags, np.uint64(steps - seen[t]), state, np.uint64(t))
            S[t] = state[t, 3]
        _move(pace, theta, S, Z, U)


@njit(cache=True, nogil=True)
def _sparse_steps(
    values: Array,
    columns: Index,
    start: Index,
    scale: Scale,
    pace: Pace,
    lags: Array,
    echo: Array,
    kept: Array,
    state: Array,
    seen: Index,
    draws: Index,
) -> None:
    """The steps of one epoch; `state` has (Z, U, h, S) a coordinate, Z and U as of step `seen`."""
    steps = draws.shape[0]
    for k in range(steps):
        j = draws[k]
        s = kept[j, MARGIN]
        for at in range(start[j], start[j + 1]):
            t = np.uint64(columns[at])  # unsigned: no test for an index counted from the end
            Z, U = _caught_up(lags, np.uint64(k - seen[t]), state, t)
            state[t, 0], state[t, 1], seen[t] = Z, U, k
            s += values[at] * (Z + pace.tau3 * U)
        slope = loss_slope(scale.code, s, kept[j, LABEL])
        kick = pace.c * scale.component * (slope - kept[j, SLOPE])
        last = kick * echo[steps - k]  # its share in the final S
        for at in range(start[j], start[j + 1]):
            t = np.uint64(columns[at])
            state[t, 0] -= kick * values[at]
            state[t, 3] -= last * values[at]


@njit(cache=True, nogil=True)
def _caught_up(lags: Array, lag: np.uint64, state: Array, t: np.uint64) -> tuple[float, float]:
    """Z and U of coordinate t after `lag` steps in which no drawn row touched it."""
    Z, U, h = state[t, 0], state[t, 1], state[t, 2]
    return (
        lags[lag, 0] * Z - lags[lag, 1] * h,
        lags[lag, 2] * U + lags[lag, 3] * Z - lags[lag, 4] * h,
    )
