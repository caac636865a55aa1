"""Which solver suits a shard: by its loss, its shape and how well it is conditioned."""

from __future__ import annotations

from math import log, sqrt

from dlag_node.problems import SQUARED, Problem, stored_entries

CLOSED_UP_TO = 1_000  # features: a factor of d^3 / 3 operations, made once


def solver_for(problem: Problem, reduction: float) -> str:
    """The solver that takes the fewest operations to bring a subproblem's gradient to `reduction`.

    A quadratic f_i has a closed form. A Newton step costs a gradient, the Hessian (m d^2 products,
    fewer where rows are sparse) and a factorisation, and one or two of them do; accelerated
    gradient descent needs about sqrt(kappa_i) ln(1 / reduction) gradients of m d products.
    """
    d = problem.dim
    if problem.loss is SQUARED and d <= CLOSED_UP_TO:
        return "closed"
    entries = stored_entries(problem.rows) or problem.samples * d
    newton = 2.0 * (entries * (1.0 + entries / problem.samples) + d**3 / 3.0)
    descent = 2.0 * entries * sqrt(problem.L / problem.mu) * log(1.0 / reduction)
    return "newton" if newton <= descent else "agd"
