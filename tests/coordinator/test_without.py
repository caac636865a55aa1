"""Plans without some of their workers."""

from __future__ import annotations

import numpy as np
import pytest

from coordinator.plan import Plan, RunSettings
from dlag_node.errors import ConfigError

WHOLE = Plan(RunSettings(topology="grid:3x3"))


def test_the_others_keep_their_samples_and_their_edges() -> None:
    lost = (2, 5)
    plan = Plan(RunSettings(topology="grid:3x3", without="5,2"))
    kept = [i for i in range(9) if i not in lost]
    assert plan.nodes == 7
    old_edges = {(i, j) for i, j in WHOLE.graph.edges if i in kept and j in kept}
    assert {(kept[i], kept[j]) for i, j in plan.graph.edges} == old_edges
    assert plan.n0 == WHOLE.n0 - sum(len(WHOLE.parts[i]) for i in lost)
    for new, old in enumerate(kept):
        (rows, labels), (old_rows, old_labels) = plan.shard(new), WHOLE.shard(old)
        assert np.array_equal(labels, old_labels)
        assert np.array_equal(rows.matrix(), old_rows.matrix())
        enrol, _ = plan.enrolment(new)
        assert enrol.n0 == plan.n0
    # every sample of the smaller problem is somebody's
    assert sorted(np.concatenate(plan.parts)) == list(range(plan.n0))


@pytest.mark.parametrize(
    ("topology", "without", "words"),
    [
        ("path:5", "2", "falls into 2 parts: 0, 1; 3, 4; expected the rest to be connected"),
        ("star:4", "0", r"without \[0\] the graph falls into 3 parts: 1; 2; 3;"),
        ("ring:5", "5", "there is no node 5: ids are 0 to 4"),
        ("ring:5", "x", "without = 'x': expected ids, for instance 7,9"),
        ("ring:5", "1,,2", "expected ids"),
        ("ring:5", "-1", "expected ids"),
        ("ring:5", "0,1,2,3", "of 5 nodes: expected 2 or more to be left"),
    ],
)
def test_what_cannot_be_left_out_is_named(topology: str, without: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Plan(RunSettings(topology=topology, without=without))
