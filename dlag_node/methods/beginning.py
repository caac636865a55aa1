"""Beginning elsewhere than at 0: all workers at one theta, with multipliers that sum to zero.

Given theta and, for each worker, its gradient less the mean of all,

    g_i = grad f_i(theta) - (1/n) sum_j grad f_j(theta),    so that sum_i g_i = 0,

a method sets its state such that, were theta the minimiser, it would stay there: the dual methods
by x_i = g_i, since theta = grad f_i^*(x_i) then; EXTRA, exact diffusion and ADMM by what they have
accumulated at that point. The sums over all workers that a method keeps at zero are so from the
start, to rounding.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from dlag_node.methods.flow import Array


@runtime_checkable
class Beginnable(Protocol):
    """A method that can begin at a theta; `g` as above. Before its first round only."""

    def begin_at(self, theta: Array, g: Array) -> None:
        """Set the state of this worker."""
