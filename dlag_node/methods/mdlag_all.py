"""MDLAG with all K exchanges of a round lazy: the question that the paper leaves open.

Each vector z_l of the accelerated gossip goes through a lazy channel of its own, whose copy is what
the neighbors last heard of z_l in an earlier round. With the paper's rule the bound of z_l is a_l^2
times that of theta, since z_l is about a_l times as large; the rule `steps` needs no such factor.
The sum over all workers of z_0 - z_K / a_K stays zero: only copies are mixed.
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
    """MDLAG with K lazy exchanges for this worker."""
    return assemble(spec, worker, defaults=DEFAULTS, takes=BASE | LAZY | MULTI, lazy_gossip=True)
