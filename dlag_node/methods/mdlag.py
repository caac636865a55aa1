"""MDLAG, the paper's Multi-DLAG: DLAG with P_K(U) in the place of U.

A round has K exchanges; the first is lazy (Q_i or silence), the K - 1 of the accelerated gossip are
not. gamma = c = 0 turns it into MSDA.
"""

from __future__ import annotations

from dlag_node.methods.assembly import (
    BASE,
    LAZY,
    LAZY_AUTO,
    LAZY_PAPER,
    LAZY_THEORY,
    MULTI,
    assemble,
)
from dlag_node.methods.dual import DualAscent
from dlag_node.methods.spec import MethodSpec, presets
from dlag_node.methods.worker import Worker

DEFAULTS = presets(paper=LAZY_PAPER, theory=LAZY_THEORY, auto=LAZY_AUTO)


def build(spec: MethodSpec, worker: Worker) -> DualAscent:
    """MDLAG for this worker."""
    return assemble(spec, worker, defaults=DEFAULTS, takes=BASE | LAZY | MULTI)
