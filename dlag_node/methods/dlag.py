"""DLAG, Algorithm 1 of the paper: lazy and approximate dual gradients.

Worker i, iteration k:

    theta_i ~ grad f_i^*(x_i), a few epochs of Katyusha from the last theta_i    line 3
    if the lazy condition fails or the age is D: send Q_i = theta_i - theta_hat_i,
        theta_hat_i <- theta_i; else send nothing                                lines 4 to 12
    P_i <- P_i + sum over the senders j in N(i) of U_ij Q_j                      lines 13, 14
    y_i^+ = x_i - eta P_i                                                        line 15
    x_i^+ = y_i^+ + (sqrt(s kappa) - 1) / (sqrt(s kappa) + 1) (y_i^+ - y_i)      line 16

gamma = c = 0 turns it into SSDA.
"""

from __future__ import annotations

from dlag_node.methods.assembly import BASE, LAZY, LAZY_AUTO, LAZY_PAPER, LAZY_THEORY, assemble
from dlag_node.methods.dual import DualAscent
from dlag_node.methods.spec import MethodSpec, presets
from dlag_node.methods.worker import Worker

DEFAULTS = presets(paper=LAZY_PAPER, theory=LAZY_THEORY, auto=LAZY_AUTO)


def build(spec: MethodSpec, worker: Worker) -> DualAscent:
    """DLAG for this worker."""
    return assemble(spec, worker, defaults=DEFAULTS, takes=BASE | LAZY)
