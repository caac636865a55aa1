"""The proximal step of one sample, which is one equation in one unknown.

    z + eta l'(<a, z>) a = psi    has    z = psi - eta l'(s) a,    s + C l'(s) = beta,
    C = eta ||a||^2,  beta = <a, psi>

The left side increases, with a slope of at least 1 for C >= 0 and of 1 + C sup l'' otherwise.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dlag_node.solvers.compiled import loss_bend, loss_slope

# Newton takes four or five steps, bisection from any bracket of doubles to its last bit fewer.
_STEPS = 2_100
_ROUNDING = 2.0 * float(np.finfo(np.float64).eps)


@njit(cache=True, nogil=True)
def margin_of(code: int, b: float, curvature: float, C: float, beta: float, start: float) -> float:
    """s with s + C l'(s) = beta, to rounding; C sup l'' > -1, and `start` is a first guess.

    Newton's method inside a bracket: r(s) = s + C l'(s) - beta has a slope of at least `slope`, so
    the root is between beta and beta - r(beta) / slope. A step that leaves the bracket, or is not
    shorter than half of the one before, gives way to bisection.
    """
    slope = min(1.0, 1.0 + C * curvature)
    other = beta - C * loss_slope(code, beta, b) / slope
    low, high = min(beta, other), max(beta, other)
    s = min(max(start, low), high)
    before = high - low
    for _ in range(_STEPS):
        pull = C * loss_slope(code, s, b)
        r = s + pull - beta
        if abs(r) <= _ROUNDING * (abs(s) + abs(pull) + abs(beta)):
            return s
        if r > 0.0:
            high = s
        else:
            low = s
        ahead = s - r / (1.0 + C * loss_bend(code, s, b))
        if not low < ahead < high or abs(ahead - s) > 0.5 * before:
            ahead = 0.5 * (low + high)
        if ahead == s:
            return s
        before = abs(ahead - s)
        s = ahead
    return s
