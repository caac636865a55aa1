"""The roster without a socket: who joins, what each is told, and who is turned away."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.draft import Draft
from coordinator.plan import Plan, RunSettings
from coordinator.roster import Roster, Stage
from dlag_node.errors import ConfigError
from dlag_node.problems import Problem, shard_from
from dlag_node.wire.control import (
    FROM_COORDINATOR,
    Assignment,
    Chunk,
    Enrol,
    Failed,
    Fetch,
    Finished,
    FromCoordinator,
    FromNode,
    Full,
    Join,
    Measured,
    Report,
    Started,
    Survey,
    Waiting,
)
from dlag_node.wire.frames import Abort, Refuse, Who
from dlag_node.wire.limits import CHUNK_BYTES, MAX_CONTROL_BYTES, MAX_NODES, MAX_TEXT, PROTOCOL
from dlag_node.wire.schema import pack, unpack

DRAFT = Draft(RunSettings(topology="grid:2x3", seed=4))
PLAN = Plan(DRAFT.settings)  # by which nobody is asked: the same words
N = DRAFT.nodes


def peer(node: int) -> bytes:
    return b"\0peer" + bytes([node])


def joined(draft: Draft = DRAFT) -> Roster:
    """Everybody has joined, in order."""
    roster = Roster(draft)
    for i in range(draft.nodes):
        ((_, enrol),) = roster.handle(peer(i), Join(PROTOCOL, None))
        assert isinstance(enrol, Enrol)
        assert enrol.node == i
    return roster


def report_of(draft: Draft, node: int) -> Report:
    assert draft.dealt is not None
    rows, labels = draft.dealt.shard(node)
    n0, lam = draft.dealt.terms.n0, draft.settings.lam
    problem = Problem(rows, labels, draft.loss, n0=n0, lam=lam)
    return Report(
        f"tcp://10.0.0.{node}:99",
        problem.samples,
        problem.mu,
        problem.L,
        problem.L_sample,
        problem.L_sum,
        problem.root_sum,
    )


def assigned() -> Roster:
    roster = joined()
    for i in range(N):
        roster.handle(peer(i), report_of(DRAFT, i))
    return roster


def refusal(replies: list[tuple[bytes, FromCoordinator]], to: bytes) -> str:
    ((told, refuse),) = replies
    assert told == to
    assert isinstance(refuse, Refuse)
    return refuse.reason


def fetched(roster: Roster, node: int, enrol: Enrol) -> bytes:
    body = b""
    for k in range(enrol.chunks):
        ((to, chunk),) = roster.handle(peer(node), Fetch(k))
        assert to == peer(node)
        assert isinstance(chunk, Chunk)
        assert chunk.chunk == k
        assert len(pack(chunk)) <= MAX_CONTROL_BYTES
        body += chunk.body
    return body


def test_a_run_from_the_first_join_to_the_last_goodbye() -> None:
    roster = Roster(DRAFT)
    labels = []
    for i in range(N):
        ((to, enrol),) = roster.handle(peer(i), Join(PROTOCOL, None))
        assert to == peer(i)
        assert isinstance(enrol, Enrol)
        assert (enrol.run, enrol.node, enrol.n0) == (DRAFT.run, i, 270)
        body = fetched(roster, i, enrol)
        assert hashlib.sha256(body).hexdigest() == enrol.sha256
        rows, mine = shard_from(body, samples=enrol.samples, dim=enrol.dim, entries=enrol.entries)
        assert np.array_equal(rows.matrix(), PLAN.shard(i)[0].matrix())
        labels.append(mine)
    assert sum(map(len, labels)) == 270

    for i in range(N - 1):
        assert roster.handle(peer(i), report_of(DRAFT, i)) == []
    replies = roster.handle(peer(N - 1), report_of(DRAFT, N - 1))
    assert [to for to, _ in replies] == [peer(i) for i in range(N)]
    for i, (_, each) in enumerate(replies):
        assert isinstance(each, Assignment)
        assert [p.node for p in each.peers] == list(PLAN.graph.neighbors(i))
        assert [p.address for p in each.peers] == [f"tcp://10.0.0.{p.node}:99" for p in each.peers]
        raw = pack(each)
        assert (
            unpack(raw, FROM_COORDINATOR, limit=len(raw), longest=MAX_NODES, peer="coordinator")
            == each
        )

    for stage, message in ((Stage.STARTED, Started()), (Stage.FINISHED, Finished(5))):
        for i in range(N):
            assert roster.count(stage) == i
            assert not roster.finished
            assert roster.handle(peer(i), message) == []
    assert roster.started
    assert roster.finished
    assert roster.failure is None
    assert roster.refused == 0


@given(order=st.permutations(range(N)), wishes=st.lists(st.booleans(), min_size=N, max_size=N))
def test_everybody_gets_a_place_whatever_the_wishes(order: list[int], wishes: list[bool]) -> None:
    roster = Roster(DRAFT)
    given_out = []
    for i, wishing in zip(order, wishes, strict=True):
        wanted = i if wishing and i not in given_out else None
        ((_, enrol),) = roster.handle(peer(i), Join(PROTOCOL, wanted))
        assert isinstance(enrol, Enrol)
        assert wanted is None or enrol.node == wanted
        given_out.append(enrol.node)
    assert sorted(given_out) == list(range(N))


@pytest.mark.parametrize(
    ("join", "words"),
    [
        (Join(PROTOCOL, 2), "id 2 is taken: ids are 0 to 5"),
        (Join(PROTOCOL, 6), "id 6 does not exist: ids are 0 to 5"),
        (Join(PROTOCOL, -1), "id -1 does not exist: ids are 0 to 5"),
        (Join(PROTOCOL, 2**64 - 1), "id 18446744073709551615 does not exist: ids are 0 to 5"),
        (Join(PROTOCOL + 1, None), f"protocol version {PROTOCOL + 1}, this is {PROTOCOL}"),
        (Join(-(2**63), 0), f"protocol version {-(2**63)}, this is {PROTOCOL}"),
    ],
)
def test_a_join_that_cannot_be_is_refused_with_the_reason(join: Join, words: str) -> None:
    roster = Roster(DRAFT)
    roster.handle(peer(2), Join(PROTOCOL, 2))
    assert refusal(roster.handle(b"late", join), b"late") == words
    assert list(roster.members) == [2]
    assert roster.refused == 1


def test_a_node_too_many_hears_that_it_is_not_needed() -> None:
    roster = joined()
    assert roster.handle(b"late", Join(PROTOCOL, None)) == [(b"late", Full(6))]
    assert (roster.surplus, roster.refused) == (1, 0)


def test_a_node_too_many_that_wants_a_certain_place_is_refused() -> None:
    roster = joined()
    reply = roster.handle(b"late", Join(PROTOCOL, 3))
    assert refusal(reply, b"late") == "id 3 is taken: ids are 0 to 5"
    assert (roster.surplus, roster.refused) == (0, 1)


@pytest.mark.parametrize(
    "message",
    [
        Fetch(0),
        Report("tcp://h:1", 1, 0.1, 1.0, 1.0, 1.0, 1.0),
        Started(),
        Finished(1),
        Failed("no"),
        Waiting(),
    ],
    ids=lambda message: type(message).__name__,
)
def test_who_joined_another_coordinator_is_told_so_if_it_waits_and_else_left_alone(
    message: FromNode,
) -> None:
    """It may be one of a run that goes on without us: its end is not ours."""
    roster = joined()
    waits = isinstance(message, Fetch | Report | Waiting)
    assert roster.handle(b"stranger", message) == ([(b"stranger", Who())] if waits else [])
    assert roster.failure is None
    assert not roster.finished


def test_who_waits_and_is_known_is_not_answered() -> None:
    roster = joined()
    assert roster.handle(next(iter(roster.members.values())).peer, Waiting()) == []


def test_a_repeated_join_gets_the_same_place() -> None:
    roster = Roster(DRAFT)
    first = roster.handle(peer(0), Join(PROTOCOL, 3))
    assert roster.handle(peer(0), Join(PROTOCOL, 3)) == first
    assert roster.handle(peer(0), Join(PROTOCOL, 5)) == first  # it has a place already
    assert list(roster.members) == [3]


@pytest.mark.parametrize("chunk", [-1, 1, 2, 2**63])
def test_a_chunk_out_of_range_is_refused(chunk: int) -> None:
    reply = joined().handle(peer(0), Fetch(chunk))
    assert refusal(reply, peer(0)) == f"chunk {chunk} of a shard of 1"


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_a_large_shard_comes_in_chunks_and_is_whole_again(tmp_path: Path, sparse: bool) -> None:
    """300 samples a node: 500 features are 1.2 MB, and so are 250 stored entries of 2,000."""
    rng = np.random.default_rng(1)
    dim, stored = (2_000, 250) if sparse else (500, 500)
    with (tmp_path / "large").open("w") as file:
        for j in range(600):
            columns = np.sort(rng.choice(dim, stored, replace=False)) + 1
            words = (f"{c}:{v:.3f}" for c, v in zip(columns, rng.normal(size=stored), strict=True))
            print(1 - 2 * (j % 2), *words, file=file)
    draft = Draft(
        RunSettings(topology="path:2", data=str(tmp_path / "large"), shards="even", lam=0.1)
    )
    roster = joined(draft)
    for i in range(2):
        ((_, enrol),) = roster.handle(peer(i), Join(PROTOCOL, None))
        assert isinstance(enrol, Enrol)
        assert (enrol.entries is not None) is sparse
        assert enrol.chunks == -(-enrol.size // CHUNK_BYTES) > 1
        body = fetched(roster, i, enrol)
        assert len(body) == enrol.size
        assert hashlib.sha256(body).hexdigest() == enrol.sha256
        rows, labels = shard_from(body, samples=300, dim=enrol.dim, entries=enrol.entries)
        assert draft.dealt is not None
        mine, my_labels = draft.dealt.shard(i)
        assert (rows.matrix() != mine.matrix()).sum() == 0
        assert np.array_equal(labels, my_labels)


def test_one_that_failed_ends_the_run_for_all() -> None:
    roster = joined()
    replies = roster.handle(peer(3), Failed("out of memory"))
    assert replies == [(peer(i), Abort("node 3: out of memory")) for i in range(N)]
    assert roster.failure == "node 3: out of memory"
    roster.handle(peer(4), Failed("me too"))
    assert roster.failure == "node 3: out of memory"  # the first reason is the reason


def test_the_longest_reason_still_fits() -> None:
    for _, abort in joined().handle(peer(3), Failed("x" * MAX_TEXT)):
        raw = pack(abort)
        assert unpack(raw, FROM_COORDINATOR, limit=MAX_CONTROL_BYTES, peer="coordinator") == abort


def test_reports_that_do_not_add_up_end_the_run() -> None:
    roster = joined()
    for i in range(N - 1):
        roster.handle(peer(i), report_of(DRAFT, i))
    last = report_of(DRAFT, N - 1)
    replies = roster.handle(
        peer(N - 1),
        Report(
            last.address,
            last.samples + 1,
            last.mu,
            last.L,
            last.L_sample,
            last.L_sum,
            last.root_sum,
        ),
    )
    assert {type(each) for _, each in replies} == {Abort}
    assert roster.failure == "the nodes report 271 samples, the data has 270"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Started(), "a Started from a node that has joined"),
        (Finished(1), "a Finished from a node that has joined"),
    ],
)
def test_a_node_cannot_skip_its_report(message: FromNode, words: str) -> None:
    """Else the others' reports were taken for those of all: somebody else's samples add up."""
    roster = joined()
    assert refusal(roster.handle(peer(0), message), peer(0)) == words
    for i in range(1, N - 1):
        roster.handle(peer(i), report_of(DRAFT, i))
    missing = PLAN.n0 - sum(report_of(DRAFT, i).samples for i in range(1, N - 1))
    assert roster.handle(peer(N - 1), Report("tcp://h:1", missing, 0.1, 1.0, 1.0, 1.0, 1.0)) == []
    assert roster.failure is None


def test_nobody_reports_twice() -> None:
    """Else one node could have all assignments sent out again and again, or changed."""
    roster = assigned()
    reply = roster.handle(peer(1), report_of(DRAFT, 1))
    assert refusal(reply, peer(1)) == "a Report from a node that has reported"
    roster.handle(peer(1), Started())
    reply = roster.handle(peer(1), report_of(DRAFT, 1))
    assert refusal(reply, peer(1)) == "a Report from a node that has started"
    assert roster.count(Stage.STARTED) == 1


def test_a_node_that_begins_again_gets_its_place_and_the_others_are_not_disturbed() -> None:
    """It crashed before it knew its neighbors; its routing id is the same."""
    roster = joined()
    for i in range(N - 1):
        roster.handle(peer(i), report_of(DRAFT, i))
    ((to, enrol),) = roster.handle(peer(1), Join(PROTOCOL, 1))
    assert isinstance(enrol, Enrol)
    assert (to, enrol.node) == (peer(1), 1)
    assert fetched(roster, 1, enrol) == PLAN.enrolment(1)[1]
    # the last one reports, and all have to wait for the one that has begun again
    assert roster.handle(peer(N - 1), report_of(DRAFT, N - 1)) == []
    moved = replace(report_of(DRAFT, 1), address="tcp://10.0.0.1:77")
    replies = roster.handle(peer(1), moved)
    assert [to for to, _ in replies] == [peer(i) for i in range(N)]
    assignments = [each for _, each in replies if isinstance(each, Assignment)]
    told = {p.address for each in assignments for p in each.peers if p.node == 1}
    assert told == {"tcp://10.0.0.1:77"}


def test_one_that_begins_again_after_all_were_told_is_told_the_same_alone() -> None:
    roster = assigned()
    for i in (0, 2):
        roster.handle(peer(i), Started())
    first = PLAN.assignments([report_of(DRAFT, i) for i in range(N)])[1]
    roster.handle(peer(1), Join(PROTOCOL, 1))
    moved = replace(report_of(DRAFT, 1), address="tcp://10.0.0.1:77")
    assert roster.handle(peer(1), moved) == [(peer(1), first)]
    assert roster.handle(peer(1), Started()) == []
    assert roster.count(Stage.STARTED) == 3


def test_what_a_restarted_node_says_again_is_no_offence() -> None:
    roster = assigned()
    for message in (Started(), Started(), Finished(5), Started(), Finished(5)):
        assert roster.handle(peer(1), message) == []
    assert roster.count(Stage.FINISHED) == 1
    assert roster.refused == 0


MESSAGES = st.one_of(
    st.builds(Join, st.integers(0, 2), st.none() | st.integers(-1, N)),
    st.builds(Fetch, st.integers(-1, 2)),
    st.builds(
        Report,
        st.just("tcp://h:1"),
        st.integers(1, 270),
        st.just(0.1),
        *[st.just(1.0)] * 4,
    ),
    st.builds(Started),
    st.builds(Finished, st.integers(0, 9)),
)


@given(script=st.lists(st.tuples(st.integers(0, N), MESSAGES), max_size=40))
def test_any_words_in_any_order_are_answered(script: list[tuple[int, FromNode]]) -> None:
    roster = Roster(DRAFT)
    for who, message in script:
        for _, reply in roster.handle(peer(who), message):
            raw = pack(reply)
            back = unpack(
                raw, FROM_COORDINATOR, limit=MAX_CONTROL_BYTES, longest=MAX_NODES, peer="us"
            )
            assert back == reply
    assert len(roster.members) <= N


MEASURED = RunSettings(topology="measured:3", seed=4)


def surveying() -> tuple[Roster, Survey]:
    """All three have reported, and are asked for the ways."""
    roster = joined(Draft(MEASURED))
    for i in range(3):
        replies = roster.handle(peer(i), report_of(roster.draft, i))
    assert [to for to, _ in replies] == [peer(0), peer(1), peer(2)]
    survey = replies[0][1]
    assert isinstance(survey, Survey)
    assert survey.addresses == tuple(f"tcp://10.0.0.{i}:99" for i in range(3))
    return roster, survey


def test_a_measured_graph_comes_from_what_all_have_measured() -> None:
    roster, survey = surveying()
    assert roster.layout is None
    rows = [[0.0, 0.01, 0.01], [0.01, 0.0, 0.01], [-111.0, 0.02, 0.0]]
    assert roster.handle(peer(0), Measured.of(survey.number, rows[0])) == []
    assert roster.handle(peer(1), Measured.of(survey.number, rows[1])) == []
    told = roster.handle(peer(2), Measured.of(survey.number, rows[2]))
    assert roster.layout is not None
    assert roster.layout.graph.edges == ((0, 1), (1, 2))  # node 2 calls, and cannot reach node 0
    assert all(isinstance(each, Assignment) for _, each in told)
    # told again where one has missed it
    roster.handle(peer(1), Join(PROTOCOL, None))
    ((_, again),) = roster.handle(peer(1), report_of(roster.draft, 1))
    assert again == told[1][1]


def test_one_that_comes_back_in_a_survey_begins_it_again() -> None:
    roster, survey = surveying()
    roster.handle(peer(0), Measured.of(survey.number, [0.0, 0.01, 0.01]))
    roster.handle(peer(1), Join(PROTOCOL, None))
    moved = replace(report_of(roster.draft, 1), address="tcp://10.0.9.9:99")
    replies = roster.handle(peer(1), moved)
    again = replies[2][1]
    assert isinstance(again, Survey)
    assert again.addresses[1] == "tcp://10.0.9.9:99"
    assert roster.handle(peer(2), Measured.of(survey.number, [0.01, 0.01, 0.0])) == []
    for i in range(3):
        told = roster.handle(peer(i), Measured.of(again.number, [0.01, 0.01, 0.01]))
    assert isinstance(told[0][1], Assignment)


def test_a_place_without_a_connected_graph_is_told_as_a_table_to_all() -> None:
    roster, survey = surveying()
    rows = [[0.0, 0.01, -110.0], [0.01, 0.0, 0.01], [-111.0, -111.0, 0.0]]
    for i in range(3):
        told = roster.handle(peer(i), Measured.of(survey.number, rows[i]))
    assert roster.failure is not None
    assert re.search(r"^2 +1 +tcp://10.0.0.1:99 +tcp://10.0.0.2:99 +Conn", roster.failure, re.M)
    assert [type(each) for _, each in told] == [Abort] * 3


def test_a_row_of_times_of_another_length_is_refused() -> None:
    roster, survey = surveying()
    reason = refusal(roster.handle(peer(0), Measured.of(survey.number, [0.0])), peer(0))
    assert reason == "1 times measured"


@pytest.mark.parametrize(
    "topology", ["measured", "measured:", "measured:1", "measured:257", "measured:x"]
)
def test_a_measured_graph_needs_the_number_of_nodes(topology: str) -> None:
    with pytest.raises(ConfigError, match="expected measured:N with N from 2 to 256"):
        Draft(RunSettings(topology=topology))


def test_a_topology_that_was_renamed_says_what_it_is_called_now() -> None:
    with pytest.raises(ConfigError, match="'auto:9': auto:N is called measured:N now"):
        Draft(RunSettings(topology="auto:9"))
