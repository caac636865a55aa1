"""f_i: values, gradients, Hessians and constants of worker i's own objective."""

from dlag_node.problems.labels import binary_labels
from dlag_node.problems.losses import LOGISTIC, SQUARED, Loss, loss_named
from dlag_node.problems.problem import Array, Problem
from dlag_node.problems.rows import DenseRows, Rows, SparseRows, rows_of

__all__ = [
    "LOGISTIC",
    "SQUARED",
    "Array",
    "DenseRows",
    "Loss",
    "Problem",
    "Rows",
    "SparseRows",
    "binary_labels",
    "loss_named",
    "rows_of",
]
