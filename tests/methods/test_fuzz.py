"""Any method with any admissible parameters, on any graph and data: it converges, or says what to
change.

What "converges" means for a run of so many rounds is `tame`: it may be slow, and it may rise before
it falls, but it does not blow up unnoticed. Warnings are errors here as everywhere.
"""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from dlag_node.methods import METHODS
from tests.methods.fuzzing import Ending, cases, ending_of

ROUNDS = 60
LONG = 600  # for runs that rise
EXAMPLES = int(os.environ.get("DLAG_FUZZ_EXAMPLES", "8"))  # a method

ADVICE = re.compile(r"\b(lower|raise|loosen|change|scale|take another)\b")


def tame(ending: Ending, factor: float) -> bool:
    """Whether the last quarter's worst f(theta_i) - f* is at most so many times the worst before.

    Before are the start, max(f(0), max_i f(theta_i^0)) - f*, and the first three quarters.
    """
    last = len(ending.errors) // 4
    before = max(ending.start, *ending.errors[:-last])
    # at the optimum from the start there is only rounding, some ulps of f
    return max(ending.errors[-last:]) <= factor * before + 1e-9


@pytest.mark.parametrize("name", METHODS)
def test_a_run_converges_or_ends_with_what_to_change(name: str) -> None:
    @settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
    @given(st.data())
    def judge(data: st.DataObject) -> None:
        case = data.draw(cases((name,)))
        ending = ending_of(case, ROUNDS)
        if ending.refused:
            event(f"{name}: refused")
            return
        assert ending.finite
        if not ending.failed and not tame(ending, 10.0):
            ending = ending_of(case, LONG)  # rising still: later it has fallen, or given up
        if ending.failed:
            event(f"{name}: failed")
            assert ADVICE.search(ending.failed), ending.failed
            return
        event(f"{name}: tame")
        assert ending.finite
        assert np.isfinite(ending.errors).all()
        assert tame(ending, 10.0) or max(ending.errors) <= 1e6 * ending.start

    judge()
