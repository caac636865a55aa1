"""The averaging matrix W = I - U of the primal methods, from worker i's row of U."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dlag_node.methods.flow import Array, Inbox
from dlag_node.methods.gossip import Neighborhood
from dlag_node.methods.worker import Worker


@dataclass(frozen=True, slots=True)
class Averaging:
    """Row i of W = I - U for a U whose largest eigenvalue is `sigma_1`."""

    hood: Neighborhood
    sigma_1: float

    @property
    def lowest(self) -> float:
        """lmin(W) = 1 - sigma_1(U)."""
        return 1.0 - self.sigma_1

    def mix(self, own: Array, inbox: Inbox) -> Array:
        """sum over j in N(i) of W_ij v_j, as v_i - sum U_ij v_j."""
        with np.errstate(over="ignore", invalid="ignore"):  # the guard judges the numbers
            change = self.hood.apply(own, inbox)
            assert change is not None
            return own - change

    def halved(self) -> Averaging:
        """Row i of Wt = (I + W) / 2 = I - U/2."""
        return Averaging(self.hood.scaled(0.5), 0.5 * self.sigma_1)


def averaging(worker: Worker, *, sigma: float) -> Averaging:
    """W = I - U / max(1, sigma_1(U) / sigma), so that lmin(W) >= 1 - sigma.

    The methods need lmin(W) > -1, and smaller steps the nearer it comes. The metropolis and
    max-degree rules keep to it, if barely on dense bipartite graphs; U by the Laplacian is in
    other units, with a sigma_1 of up to n.
    """
    largest = worker.spectrum.sigma_1
    if largest <= sigma:
        return Averaging(worker.hood, largest)
    return Averaging(worker.hood.scaled(sigma / largest), sigma)
