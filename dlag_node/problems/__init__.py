"""f_i: values, gradients, Hessians and constants of worker i's own objective."""

from dlag_node.problems.losses import LOGISTIC, SQUARED, Loss, loss_named
from dlag_node.problems.problem import FACTORED_DIM, Array, Problem
from dlag_node.problems.rows import DenseRows, Rows, SparseRows, rows_of
from dlag_node.problems.shard import shard_bytes, shard_from, stored_entries
from dlag_node.problems.spectra import eigenvalues, inverse
from dlag_node.problems.sums import dot, matrix_product, norm, square, total

__all__ = [
    "FACTORED_DIM",
    "LOGISTIC",
    "SQUARED",
    "Array",
    "DenseRows",
    "Loss",
    "Problem",
    "Rows",
    "SparseRows",
    "dot",
    "eigenvalues",
    "inverse",
    "loss_named",
    "matrix_product",
    "norm",
    "rows_of",
    "shard_bytes",
    "shard_from",
    "square",
    "stored_entries",
    "total",
]
