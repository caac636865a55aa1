"""The approximate dual gradient: argmin f_i(theta) - <theta, x>, warm started."""

from dlag_node.solvers.choice import solver_for
from dlag_node.solvers.oracle import SOLVERS, Oracle, Solution
from dlag_node.solvers.stops import Stop, parse_stop
from dlag_node.solvers.warm import WarmUp, warm_up

__all__ = ["SOLVERS", "Oracle", "Solution", "Stop", "WarmUp", "parse_stop", "solver_for", "warm_up"]
