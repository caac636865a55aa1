"""Mixing with the neighbors: the row of U that worker i knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dlag_node.methods.flow import Array, Inbox


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
