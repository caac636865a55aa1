"""Nodes that hold their own samples: all are waited for; then it fits, or all hear who does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.draft import Draft
from coordinator.plan import Plan, RunSettings
from coordinator.roster import Reply, Roster, Stage
from dlag_node.data import Spread, Summary
from dlag_node.errors import ConfigError
from dlag_node.wire.control import FROM_COORDINATOR, Assignment, Enrol, Fetch, Join, Report
from dlag_node.wire.frames import Abort, Refuse
from dlag_node.wire.limits import MAX_CONTROL_BYTES, MAX_NODES, PROTOCOL
from dlag_node.wire.schema import pack, unpack

SETTINGS = RunSettings(topology="path:3", data="nodes", scale="minmax", intercept=1.0)


def peer(node: int) -> bytes:
    return b"\0peer" + bytes([node])


def said(node: int, **change: object) -> Summary:
    low, high = np.array([0.0, -node]), np.array([1.0 + node, 5.0])
    good = Summary(
        samples=10 + node,
        dim=2,
        names="ab" * 32,
        labels=(1.0,) if node == 0 else (1.0, 2.0),
        scale="minmax",
        spread=Spread(low.tobytes(), high.tobytes()),
    )
    return replace(good, **change)


def join(roster: Roster, node: int, **change: object) -> list[Reply]:
    return roster.handle(peer(node), Join(PROTOCOL, node, held=said(node, **change)))


def reason(replies: list[Reply]) -> str:
    ((_, word),) = replies
    assert isinstance(word, Refuse)
    return word.reason


def test_everybody_is_enrolled_when_the_last_has_joined() -> None:
    roster = Roster(Draft(SETTINGS))
    assert join(roster, 2) == []
    assert join(roster, 0) == []
    replies = join(roster, 1)
    assert [to for to, _ in replies] == [peer(i) for i in range(3)]
    for i, (_, enrol) in enumerate(replies):
        assert isinstance(enrol, Enrol)
        assert (enrol.node, enrol.samples, enrol.n0, enrol.dim) == (i, 10 + i, 33, 2)
        assert enrol.held
        assert enrol.chunks == 0
        assert enrol.agreement.classes == (1.0, 2.0)
        assert enrol.agreement.intercept == 1.0
        shift, factor = enrol.agreement.scaling(2)
        assert shift.tolist() == [1.5, 1.5]
        assert factor.tolist() == [1 / 1.5, 1 / 3.5]
    assert reason(roster.handle(peer(1), Fetch(0))) == "chunk 0 of a shard of 0"
    for i in range(2):
        assert roster.handle(peer(i), Report("tcp://h:1", 10 + i, 0.1, 1.0)) == []
    replies = roster.handle(peer(2), Report("tcp://h:1", 12, 0.1, 2.0))
    for _, word in replies:
        assert isinstance(word, Assignment)
        assert word.L_sample is None
        assert word.census is not None
        assert word.census.L_sum is word.census.root_sum is None


def test_nothing_comes_before_an_enrolment() -> None:
    roster = Roster(Draft(SETTINGS))
    join(roster, 0)
    assert reason(roster.handle(peer(0), Fetch(0))) == "chunk 0 before an Enrol"
    report = Report("tcp://h:1", 10, 0.1, 1.0)
    assert reason(roster.handle(peer(0), report)) == "a Report before an Enrol"
    assert roster.count(Stage.REPORTED) == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"dim": 3, "spread": Spread(bytes(24), bytes(24))},
            "the number of features: 2 on node 0, node 1; 3 on node 2",
        ),
        ({"names": None}, "names: sha256 abababababab on node 0, node 1; no names on node 2"),
        ({"labels": (0.0, 1.0)}, "the labels: 1 on node 0; 1, 2 on node 1; 0, 1 on node 2"),
        ({"scale": "none", "spread": None}, "--scale: minmax on node 0, node 1; none on node 2"),
    ],
)
def test_a_mesh_that_does_not_agree_ends_for_all_with_the_names(
    change: dict[str, object], words: str
) -> None:
    roster = Roster(Draft(SETTINGS))
    for i in range(2):
        join(roster, i)
    replies = join(roster, 2, **change)
    assert [type(word) for _, word in replies] == [Abort] * 3
    assert roster.failure is not None
    assert words in roster.failure


def test_a_node_with_the_wrong_idea_of_who_holds_the_data_is_refused() -> None:
    held, dealt = Roster(Draft(SETTINGS)), Roster(Draft(RunSettings(topology="path:3")))
    replies = held.handle(peer(0), Join(PROTOCOL, 0))
    assert reason(replies) == "a node with no data: expected dlag-node with --data"
    assert reason(join(dealt, 0)) == "a node with its own data: expected dlag-node without --data"
    assert not held.members
    assert not dealt.members


def test_one_that_joins_again_says_the_same_again() -> None:
    roster = Roster(Draft(SETTINGS))
    join(roster, 0)
    assert join(roster, 0, samples=50) == []  # nothing is settled yet: the newer word holds
    join(roster, 1)
    ((_, enrol), *_) = join(roster, 2)
    assert isinstance(enrol, Enrol)
    assert (enrol.samples, enrol.n0) == (50, 73)
    assert join(roster, 0, samples=50) == [(peer(0), enrol)]
    assert reason(join(roster, 0)) == "the data of node 0 have changed since it joined"


def test_the_laboratory_deals_out_data_and_takes_no_other() -> None:
    with pytest.raises(ConfigError, match="--data nodes: only a coordinator takes that"):
        Plan(SETTINGS)
    assert Draft(SETTINGS).dealt is None


def test_the_laboratory_takes_a_graph_that_is_known() -> None:
    with pytest.raises(ConfigError, match=r"topology 'measured:3' is measured by the nodes"):
        Plan(RunSettings(topology="measured:3"))
    assert Draft(RunSettings(topology="measured:3")).layout is None


def test_what_nodes_say_makes_terms_and_the_draft_stays_as_it_is() -> None:
    draft = Draft(SETTINGS)
    terms = draft.settle([said(i) for i in range(3)])
    assert (terms.sizes, terms.n0, terms.dim) == ((10, 11, 12), 33, 2)
    assert draft.dealt is None
    roster = Roster(draft)
    assert roster.terms is None
    for i in range(3):
        join(roster, i)
    assert roster.terms == terms
    assert Roster(draft).terms is None


WORDS = st.one_of(
    st.builds(
        Join,
        st.just(PROTOCOL),
        st.none() | st.integers(0, 3),
        held=st.none() | st.builds(said, st.integers(0, 3), samples=st.integers(1, 40)),
    ),
    st.builds(Fetch, st.integers(-1, 2)),
    st.builds(Report, st.just("tcp://h:1"), st.integers(1, 40), st.just(0.1), st.just(1.0)),
)


@given(script=st.lists(st.tuples(st.integers(0, 3), WORDS), max_size=40))
def test_any_words_in_any_order_are_answered(script: list[tuple[int, Join | Fetch]]) -> None:
    roster = Roster(Draft(SETTINGS))
    for who, message in script:
        for _, reply in roster.handle(peer(who), message):
            raw = pack(reply)
            limits = {"limit": MAX_CONTROL_BYTES, "longest": MAX_NODES}
            assert unpack(raw, FROM_COORDINATOR, peer="us", **limits) == reply
