"""The averaging matrix W = I - U of methods outside the dual family, from worker i's row of U."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dlag_node.methods.flow import Array, Inbox
from dlag_node.methods.gossip import Neighborhood
from dlag_node.methods.worker import Worker


@dataclass(frozen=True, slots=True)
class Averaging:
    """Row i of W = I - U for a U with these largest and smallest nonzero eigenvalues."""

    hood: Neighborhood
    sigma_1: float
    sigma_gap: float

    @property
    def lowest(self) -> float:
        """lmin(W) = 1 - sigma_1(U)."""
        return 1.0 - self.sigma_1

    def mix(self, own: Array, inbox: Inbox) -> Array:
        """sum over j in N(i) of W_ij v_j, as v_i - sum U_ij v_j."""
        with np.errstate(over="ignore", invalid="ignore"):  # the guard judges the numbers
            return own - self.difference(own, inbox)

    def difference(self, own: Array, inbox: Inbox) -> Array:
        """Column i of v (I - W): what v_i has more than the average around it."""
        change = self.hood.apply(own, inbox)
        assert change is not None
        return change

    def halved(self) -> Averaging:
        """Row i of Wt = (I + W) / 2 = I - U/2."""
        return Averaging(self.hood.scaled(0.5), 0.5 * self.sigma_1, 0.5 * self.sigma_gap)


# Eigenvalues of U from here on make I - U unstable, or nearly so.
_UNSTABLE = 1.99


def plain_averaging(worker: Worker) -> Averaging:
    """W = I - U; or, where that would not be stable (the Laplacian), W = I - U / sigma_1(U).

    The scaled W has no negative eigenvalue, and no negative entry either, since sigma_1 of a
    Laplacian is above its largest degree.
    """
    return averaging(worker, sigma=_UNSTABLE, scaled_to=1.0)


def averaging(worker: Worker, *, sigma: float, scaled_to: float | None = None) -> Averaging:
    """W = I - U / max(1, sigma_1(U) / sigma), so that lmin(W) >= 1 - sigma.

    Where U must be scaled, its largest eigenvalue becomes `scaled_to`, or sigma itself.

    The methods need lmin(W) > -1, and smaller steps the nearer it comes. The metropolis and
    max-degree rules keep to it, if barely on dense bipartite graphs; U by the Laplacian is in
    other units, with a sigma_1 of up to n.
    """
    largest, gap = worker.spectrum.sigma_1, worker.spectrum.sigma_gap
    if largest <= sigma:
        return Averaging(worker.hood, largest, gap)
    goal = sigma if scaled_to is None else scaled_to
    return Averaging(worker.hood.scaled(goal / largest), goal, gap * goal / largest)
