"""W = I - U: the averaging with the neighbors that methods outside the dual family use."""

from __future__ import annotations

from dlag_node.graphs.spectrum import Spectrum
from dlag_node.methods.flow import Array, Inbox
from dlag_node.methods.gossip import Neighborhood

# The eigenvalues of W = I - U lie in (-1, 1] as long as those of U lie in [0, 2).
_STABLE = 2.0


class Averaging:
    """Row i of W = I - scale U, symmetric with W 1 = 1.

    `scale` is 1 for U = I - W (metropolis, max-degree), whose eigenvalues are below 2. Those of the
    Laplacian are not: I - U would blow up what the workers disagree on. There `scale` is
    1/sigma_1(U), so that the eigenvalues of W lie in [0, 1]; its entries are not negative either,
    since sigma_1 of a Laplacian is above its largest degree.
    """

    def __init__(self, hood: Neighborhood, spectrum: Spectrum) -> None:
        self.scale = 1.0 if spectrum.sigma_1 < _STABLE else 1.0 / spectrum.sigma_1
        self._hood = hood

    def difference(self, own: Array, inbox: Inbox) -> Array:
        """Column i of v (I - W): what v_i has more than the average around it."""
        mixed = self._hood.apply(own, inbox)
        assert mixed is not None  # `own` is there
        return mixed if self.scale == 1.0 else self.scale * mixed
