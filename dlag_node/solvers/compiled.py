"""The kernels of f_i as compiled code, for the inner loops of the solvers.

Who imports from here loads the compiler: a solver runs thousands of steps a round.
"""

from __future__ import annotations

from dlag_node.problems import kernels, losses
from dlag_node.problems.compiling import compile_kernels

compile_kernels()

dense_dot, sparse_dot = kernels.dense_dot, kernels.sparse_dot
loss_slope, loss_bend = losses.loss_slope, losses.loss_bend

__all__ = ["dense_dot", "loss_bend", "loss_slope", "sparse_dot"]
