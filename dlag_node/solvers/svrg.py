"""SVRG (Johnson and Zhang 2013) in its proximal form, for the subproblem.

As in `katyusha`, f_i - <., x> is the average of the (m/n0) l_j, each L-smooth, plus
psi(theta) = (mu/2) ||theta||^2 - <x, theta>. An epoch with snapshot s takes 2m steps from w = s

    est = grad(s) + (m/n0) ( l'_j(<a_j, w>) - l'_j(<a_j, s>) ) a_j,       j drawn evenly
    w  <- ( w - step (est - x) ) / (1 + step mu)                          the prox with psi

and its last w is the next snapshot (Option I). The step is 1 / (10 L), with which Johnson and
Zhang's and Xiao and Zhang's rates are stated. Those rates ask for epochs of order L/mu; ours have
2m steps, like Katyusha's, and where L/mu is far above m it is practice that vouches for them.

Around the snapshot, W = w - s and g = grad(s) + mu s - x, a step is

    W <- q (W - step delta a_j) - h,      q = 1/(1 + step mu),  h = q step g

so that a coordinate untouched for t steps has W_t = q^t W - A_t h with A_t = 1 + q + ... + q^{t-1}:
sparse rows pay only for the coordinates that they touch.
"""

from __future__ import annotations

from collections.abc import Callable
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

_STEP = 0.1  # times 1/L
_TINY = 1e-290  # below this a coefficient is zero: subnormal numbers are slow


class Stride(NamedTuple):
    """The constants of the recursion."""

    q: float
    step: float


class SVRG:
    """SVRG for one subproblem: its constants and, for sparse rows, its tables."""

    def __init__(self, sub: Subproblem) -> None:
        self._sub = sub
        L = sub.problem.L_sample or sub.problem.mu  # no sample has a feature: any L will do
        self._stride = Stride(1.0 / (1.0 + _STEP / L * sub.problem.mu), _STEP / L)
        tables = (decay_table(sub.epoch_steps, self._stride.q),) if sub.sparse else ()
        self._tables: tuple[Array, ...] = tables

    def solve(self, call: Call) -> Outcome:
        """Epochs of 3m sample gradients each (for 2m steps); see `run_epochs`."""
        return run_epochs(self._sub, call, self.stepper(call.theta))

    def stepper(self, theta: Array) -> Callable[[Index, bool], None]:
        """The `advance` of `run_epochs`, beginning with s = theta."""
        sub = self._sub
        kernel: Callable[..., None] = sparse_epochs if sub.sparse else dense_epochs

        def advance(draws: Index, measured: bool) -> None:
            kernel(
                *sub.arrays, sub.scale, self._stride, *self._tables,
                sub.kept, sub.x, theta, sub.g, draws, measured,
            )  # fmt: skip

        return advance


@njit(cache=True, nogil=True)
def dense_epochs(
    A: Array,
    scale: Scale,
    stride: Stride,
    kept: Array,
    x: Array,
    theta: Array,
    g: Array,
    draws: Index,
    measured: bool,
) -> None:
    """One epoch for each row of `draws`; theta is the snapshot s, before and after."""
    q, dim = stride.q, g.shape[0]
    h, W = np.empty_like(g), np.empty_like(g)
    for epoch in range(draws.shape[0]):
        if epoch > 0 or not measured:
            dense_gradient(A, scale, kept, x, theta, g)
        for t in range(dim):
            h[t] = q * stride.step * g[t]
            W[t] = 0.0
        for k in range(draws.shape[1]):
            j = draws[epoch, k]
            s = kept[j, MARGIN] + dense_dot(A, j, W)
            slope = loss_slope(scale.code, s, kept[j, LABEL])
            kick = stride.step * scale.component * (slope - kept[j, SLOPE])
            for t in range(dim):
                W[t] = q * (W[t] - kick * A[j, t]) - h[t]
        for t in range(dim):
            theta[t] += W[t]


@njit(cache=True, nogil=True)
def decay_table(steps: int, q: float) -> Array:
    """(q^t, A_t) for t = 0..steps, both by their recursions: sums of positive terms."""
    lags = np.zeros((steps + 1, 2))
    lags[0, 0] = 1.0
    for t in range(steps):
        decay = lags[t, 0] * q
        lags[t + 1, 0] = decay if decay > _TINY else 0.0
        lags[t + 1, 1] = lags[t, 1] + lags[t, 0]
    return lags


@njit(cache=True, nogil=True)
def sparse_epochs(
    values: Array,
    columns: Index,
    start: Index,
    scale: Scale,
    stride: Stride,
    lags: Array,
    kept: Array,
    x: Array,
    theta: Array,
    g: Array,
    draws: Index,
    measured: bool,
) -> None:
    """One epoch for each row of `draws`; theta is the snapshot s, before and after."""
    dim, steps = g.shape[0], draws.shape[1]
    state, seen = np.empty((dim, 2)), np.empty(dim, np.int64)
    for epoch in range(draws.shape[0]):
        if epoch > 0 or not measured:
            sparse_gradient(values, columns, start, scale, kept, x, theta, g)
        for t in range(dim):
            state[t, 0], state[t, 1] = 0.0, stride.q * stride.step * g[t]
            seen[t] = 0
        _sparse_steps(values, columns, start, scale, stride, lags, kept, state, seen, draws[epoch])
        for t in range(dim):
            lag = steps - seen[t]
            theta[t] += lags[lag, 0] * state[t, 0] - lags[lag, 1] * state[t, 1]


@njit(cache=True, nogil=True)
def _sparse_steps(
    values: Array,
    columns: Index,
    start: Index,
    scale: Scale,
    stride: Stride,
    lags: Array,
    kept: Array,
    state: Array,
    seen: Index,
    draws: Index,
) -> None:
    """The steps of one epoch; `state` has (W, h) for each coordinate, W as of step `seen`."""
    for k in range(draws.shape[0]):
        j = draws[k]
        s = kept[j, MARGIN]
        for at in range(start[j], start[j + 1]):
            t = np.uint64(columns[at])  # unsigned: no test for an index counted from the end
            lag = np.uint64(k - seen[t])
            W = lags[lag, 0] * state[t, 0] - lags[lag, 1] * state[t, 1]
            state[t, 0], seen[t] = W, k
            s += values[at] * W
        slope = loss_slope(scale.code, s, kept[j, LABEL])
        kick = stride.step * scale.component * (slope - kept[j, SLOPE])
        for at in range(start[j], start[j + 1]):
            state[np.uint64(columns[at]), 0] -= kick * values[at]
