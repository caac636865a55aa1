"""Nesterov's accelerated gradient descent with constant momentum, for the subproblem.

    theta_{k+1} = y_k - (1/L) (grad f_i(y_k) - x)
    y_{k+1}     = theta_{k+1} + momentum (theta_{k+1} - theta_k),
    momentum    = (sqrt(L) - sqrt(mu)) / (sqrt(L) + sqrt(mu))

from theta_0 = y_0 = the warm start. An epoch is one gradient: m sample gradients. `epochs:N`
returns theta_N; the other stop rules return the y whose gradient norm they found small enough, so
that n steps cost (n + 1) m.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dlag_node.solvers.calls import Call, Outcome
from dlag_node.solvers.subproblem import Scale, Subproblem, dense_gradient, sparse_gradient

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class AGD:
    """Accelerated gradient descent for one subproblem."""

    def __init__(self, sub: Subproblem) -> None:
        L, mu = sub.problem.L, sub.problem.mu
        self._sub = sub
        self._step = 1.0 / L
        self._momentum = (sqrt(L) - sqrt(mu)) / (sqrt(L) + sqrt(mu))

    def solve(self, call: Call) -> Outcome:
        """One compiled loop over all epochs."""
        sub, stop, m = self._sub, call.stop, self._sub.samples
        kernel: Callable[..., tuple[int, float, float]] = sparse_loop if sub.sparse else dense_loop
        relative, absolute = (-1.0, -1.0) if stop.fixed else stop.bounds
        limit = stop.epochs if stop.fixed else call.max_epochs
        epochs, norm, wanted = kernel(
            *sub.arrays, sub.scale, sub.kept, sub.x, call.theta, sub.g,
            self._step, self._momentum, limit, relative, absolute,
        )  # fmt: skip
        if stop.fixed:
            return Outcome(call.theta, epochs * m, epochs)
        return Outcome(call.theta, (epochs + 1) * m, epochs, norm, wanted)


@njit(cache=True, nogil=True)
def dense_loop(
    A: Array,
    scale: Scale,
    kept: Array,
    x: Array,
    theta: Array,
    g: Array,
    step: float,
    momentum: float,
    limit: int,
    relative: float,
    absolute: float,
) -> tuple[int, float, float]:
    """Steps until ||g|| <= max(relative ||g^0||, absolute, floor), or `limit` of them.

    A negative `relative` means exactly `limit` steps. Returns steps taken, ||g|| and its bound.
    """
    y, target = theta.copy(), absolute
    for k in range(limit):
        norm, floor = dense_gradient(A, scale, kept, x, y, g)
        if relative >= 0.0:
            target = max(relative * norm, absolute) if k == 0 else target
            if not norm > max(target, floor):
                theta[:] = y
                return k, norm, max(target, floor)
        _step(theta, y, g, step, momentum)
    if relative < 0.0:
        return limit, 0.0, 0.0
    norm, floor = dense_gradient(A, scale, kept, x, y, g)
    theta[:] = y
    return limit, norm, max(target, floor)


@njit(cache=True, nogil=True)
def sparse_loop(
    values: Array,
    columns: Index,
    start: Index,
    scale: Scale,
    kept: Array,
    x: Array,
    theta: Array,
    g: Array,
    step: float,
    momentum: float,
    limit: int,
    relative: float,
    absolute: float,
) -> tuple[int, float, float]:
    """`dense_loop` for compressed rows."""
    y, target = theta.copy(), absolute
    for k in range(limit):
        norm, floor = sparse_gradient(values, columns, start, scale, kept, x, y, g)
        if relative >= 0.0:
            target = max(relative * norm, absolute) if k == 0 else target
            if not norm > max(target, floor):
                theta[:] = y
                return k, norm, max(target, floor)
        _step(theta, y, g, step, momentum)
    if relative < 0.0:
        return limit, 0.0, 0.0
    norm, floor = sparse_gradient(values, columns, start, scale, kept, x, y, g)
    theta[:] = y
    return limit, norm, max(target, floor)


@njit(cache=True, nogil=True)
def _step(theta: Array, y: Array, g: Array, step: float, momentum: float) -> None:
    """theta_k, y_k -> theta_{k+1}, y_{k+1}."""
    for t in range(theta.shape[0]):
        ahead = y[t] - step * g[t]
        y[t] = ahead + momentum * (ahead - theta[t])
        theta[t] = ahead
