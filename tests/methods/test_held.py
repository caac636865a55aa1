"""Every method where nodes hold their own samples, and tell mu_i and L_i only."""

from __future__ import annotations

import numpy as np
import pytest

from coordinator.plan import Plan, RunSettings
from dlag_node.errors import ConfigError
from dlag_node.methods import METHODS
from dlag_node.methods.flow import Method
from dlag_node.methods.tree import TreeDescent
from dlag_node.rounds.worker import engine_for, problem_of
from dlag_node.wire.control import Report

NEED_MORE = {"adfs": "two sums over each node's samples", "dsba": "the largest norm of a sample"}


def method_of(method: str, *, held: bool) -> Method:
    plan = Plan(RunSettings(topology="path:3", method=method, shards="even"))
    words = [plan.enrolment(i) for i in range(3)]
    problems = [problem_of(*each) for each in words]
    reports = [Report.of("", problem, held=held) for problem in problems]
    assignment = plan.assignments(reports)[1]
    return engine_for(words[1][0], assignment, problems[1]).method


def parameters(method: str, *, held: bool) -> dict[str, float | int | str]:
    return method_of(method, held=held).parameters


@pytest.mark.parametrize("method", METHODS)
def test_a_method_has_the_same_parameters_or_says_what_it_lacks(method: str) -> None:
    if method not in NEED_MORE:
        assert parameters(method, held=True) == parameters(method, held=False)
        return
    with pytest.raises(ConfigError, match=f"{method} needs {NEED_MORE[method]}, which nodes that"):
        parameters(method, held=True)


def test_without_the_trace_the_tree_s_first_step_is_one_that_cannot_be_too_long() -> None:
    pooled = Plan(RunSettings(topology="path:3", shards="even")).pooled()
    tree = method_of("tree:curvature=none", held=True)
    assert isinstance(tree, TreeDescent)
    step = tree._guess(tree.theta)(np.ones(1))[0]
    assert 0.1 / pooled.L < step <= 1.0 / pooled.L
