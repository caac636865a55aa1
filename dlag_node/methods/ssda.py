"""SSDA (Scaman, Bach, Bubeck, Lee, Massoulie 2017): accelerated dual ascent, everything sent.

Worker i, iteration k:

    theta_i = grad f_i^*(x_i), to gradient norm 1e-10                  (the paper's accuracy)
    y_i^+ = x_i - eta sum_{j in N(i)} U_ij theta_j,    eta = 1/beta
    x_i^+ = y_i^+ + (sqrt kappa - 1) / (sqrt kappa + 1) (y_i^+ - y_i)

It is DLAG without its lazy rule. What travels is the delta of theta_i, in every round. The preset
`theory` is the preset `paper`: eta = 1/beta and s = 1 are SSDA's own theory.
"""

from __future__ import annotations

from dlag_node.methods.assembly import BASE, EXACT_AUTO, EXACT_PAPER, assemble
from dlag_node.methods.dual import DualAscent
from dlag_node.methods.spec import MethodSpec, presets
from dlag_node.methods.worker import Worker

DEFAULTS = presets(paper=EXACT_PAPER, auto=EXACT_AUTO)


def build(spec: MethodSpec, worker: Worker) -> DualAscent:
    """SSDA for this worker."""
    return assemble(spec, worker, defaults=DEFAULTS, takes=BASE)
