"""Mixing with the neighbors: the row of U that worker i knows, and P_K(U) by K exchanges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dlag_node.graphs.chebyshev import Chebyshev
from dlag_node.methods.flow import Array, Exchange, Flow, Inbox


@dataclass(frozen=True, slots=True)
class Neighborhood:
    """Row i of U: `own` is U_ii, `weights` holds U_ij for every neighbor j, in ascending id."""

    own: float
    weights: Mapping[int, float]

    def apply(self, own: Array | None, inbox: Inbox) -> Array | None:
        """sum over j in N(i) of U_ij v_j, in ascending id after i itself; None for all silent.

        The order is fixed because floating point sums depend on it: never the order of arrival.
        """
        total = None if own is None else self.own * own
        for j, weight in self.weights.items():
            v = inbox[j]
            if v is not None:
                total = weight * v if total is None else total + weight * v
        return total

    def scaled(self, factor: float) -> Neighborhood:
        """Row i of factor * U."""
        weights = {j: factor * weight for j, weight in self.weights.items()}
        return Neighborhood(factor * self.own, weights)


def accelerated_gossip(
    z: Array, P: Array, hood: Neighborhood, poly: Chebyshev | None
) -> Flow[Array]:
    """Worker i's column of z P_K(U), where P is already its column of z U.

    Procedure Accelerated Gossip of the paper's MDLAG: z_0 = z, z_1 = c_2 (z_0 - c_3 P), then

        z_{l+1} = 2 c_2 (z_l - c_3 z_l U) - z_{l-1},    l = 1, ..., K - 1

    with one exchange of z_l each, and z_0 - z_K / a_K at the end. Without a polynomial it is z U.
    """
    if poly is None:
        return P
    before, z_l = z, poly.c2 * (z - poly.c3 * P)
    for _ in range(1, poly.K):
        inbox = yield Exchange(z_l)
        mixed = hood.apply(z_l, inbox)
        assert mixed is not None
        before, z_l = z_l, 2.0 * poly.c2 * (z_l - poly.c3 * mixed) - before
    return z - z_l / poly.a[poly.K]
