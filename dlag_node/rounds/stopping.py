"""When a node is done: what it means that it has come to rest, and what all have agreed on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dlag_node.problems import norm
from dlag_node.rounds.agreement import Agreement

Array = NDArray[np.float64]

# Rounds without news happen on the way, too: a step of a line search that is not taken, a neighbor
# that is silent. A node that drifts slowly leaves the ball within them.
REST_ROUNDS = 10


class Stillness:
    """Whether theta_i has come to rest.

    That is when for the last ten rounds it has not left a ball around one of its own values:

        ||theta_i^k - theta_i^l|| <= tol max(1, ||theta_i^k||)    for l <= k < l + 10, and so on

    The ball is drawn anew around the theta that leaves it. What the node sends plays no part: one
    that is silent and still moves is not at rest.
    """

    STATE = ("_centre", "_rounds")

    def __init__(self, tol: float) -> None:
        self._tol = tol
        self._centre: Array = np.zeros(0)  # none yet
        self._rounds = 0  # in this ball

    def look(self, theta: Array) -> bool:
        """theta_i at the end of a round; whether it is at rest."""
        if self._centre.size and norm(theta - self._centre) <= self._tol * max(1.0, norm(theta)):
            self._rounds += 1
        else:
            self._centre, self._rounds = theta.copy(), 0
        return self._rounds >= REST_ROUNDS


class Stopping:
    """A node's side of stopping: its own rest, if there is a `tol`, and the agreement of all."""

    STATE = ("agreement", "stillness")

    def __init__(self, diameter: int, tol: float | None = None, *, hop: int = 1) -> None:
        self.agreement = Agreement(diameter, hop=hop)
        self.stillness = None if tol is None else Stillness(tol)

    def close(self, theta: Array, heard: list[int] | None) -> None:
        """The end of a round, in which the neighbors told this."""
        self.agreement.close(heard, calm=self.stillness is not None and self.stillness.look(theta))
