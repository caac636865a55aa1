"""MSDA (Scaman, Bach, Bubeck, Lee, Massoulie 2017): SSDA with P_K(U) in the place of U.

A round has K exchanges, K = floor(1/sqrt(zeta(U))): one of theta_i's delta, then K - 1 of the
Chebyshev recursion's vectors. Step and momentum follow from the spectrum of P_K(U).
"""

from __future__ import annotations

from dlag_node.methods.assembly import BASE, EXACT_AUTO, EXACT_PAPER, MULTI, assemble
from dlag_node.methods.dual import DualAscent
from dlag_node.methods.spec import MethodSpec, presets
from dlag_node.methods.worker import Worker

DEFAULTS = presets(paper=EXACT_PAPER, auto=EXACT_AUTO)


def build(spec: MethodSpec, worker: Worker) -> DualAscent:
    """MSDA for this worker."""
    return assemble(spec, worker, defaults=DEFAULTS, takes=BASE | MULTI)
