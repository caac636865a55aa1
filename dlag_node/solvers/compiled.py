"""The kernels of f_i as compiled code, for the inner loops of the solvers.

Who imports from here loads the compiler: a solver runs thousands of steps a round.
"""

from __future__ import annotations

from dlag_node.problems.compiling import compile_kernels
from dlag_node.problems.kernels import dense_dot, sparse_dot
from dlag_node.problems.losses import loss_bend, loss_slope

compile_kernels()

__all__ = ["dense_dot", "loss_bend", "loss_slope", "sparse_dot"]
