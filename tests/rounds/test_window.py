"""The window: how far ahead a neighbor can be, what its frames cover, and what must be kept."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlag_node.errors import RemoteProtocolError
from dlag_node.methods.flow import Schedule
from dlag_node.rounds.window import Window
from dlag_node.wire.frames import Delta, Skip
from tests.rounds.crashes import Habits
from tests.rounds.meshes import connected, engines_on, habits, held, run_unfairly

SEQS = st.integers(0, 100)
LEADS = st.integers(1, 9)


def window_of(lead: int) -> Window:
    return Window([2], Schedule(lead - 1, lead=lead))


@given(theirs=SEQS, ours=SEQS, lead=LEADS)
def test_what_is_taken_is_what_a_neighbor_sends_to_one_who_is_there(
    theirs: int, ours: int, lead: int
) -> None:
    window = window_of(lead)
    assert (theirs in window.wanted(ours)) == (0 <= theirs - ours <= lead)
    if theirs <= ours + lead:
        window.refuse(2, Skip(theirs), ours)  # it fits, or is a repeat
    else:
        with pytest.raises(RemoteProtocolError, match=f"can be {lead} ahead, never more"):
            window.refuse(2, Skip(theirs), ours)


@given(sent=st.integers(10, 100), lead=LEADS)
def test_what_may_be_in_doubt_is_what_the_one_furthest_behind_wants(sent: int, lead: int) -> None:
    window = window_of(lead)
    furthest_behind = sent - lead
    assert window.in_doubt(sent) == min(window.wanted(furthest_behind))
    assert window.unheard_from(furthest_behind) == sent + 1


@pytest.mark.parametrize(
    ("stride", "promise", "covered"),
    [(1, 0, []), (1, 1, [8]), (1, 3, [8, 9, 10]), (4, 0, []), (4, 1, [11]), (4, 3, [11, 15, 19])],
)
def test_a_promise_covers_the_next_exchanges_of_its_vector(
    stride: int, promise: int, covered: list[int]
) -> None:
    window = Window([2], Schedule(3, stride=stride, lead=4))
    frame = Delta(7, np.ones(3), promise=promise)
    assert [*window.covered(frame)] == covered
    assert window.last_covered(frame) == max(covered, default=7)


def test_a_promise_longer_than_any_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="exchange 7 with a promise of 4, expected 3"):
        Window([2], Schedule(3, lead=4)).covered(Delta(7, np.ones(3), promise=4))


@pytest.mark.parametrize(
    ("lead", "stride", "rounds"),
    [(1, 1, 1), (3, 1, 3), (7, 1, 7), (1, 4, 1), (2, 4, 1), (12, 8, 2), (8, 8, 1), (9, 8, 2)],
)
def test_how_many_rounds_a_neighbor_is_behind(lead: int, stride: int, rounds: int) -> None:
    assert Window([2], Schedule(lead=lead, stride=stride)).rounds_behind == rounds


@given(graph=connected(most=6), habits=habits(), seed=st.integers(0, 10**6))
def test_nobody_gets_further_ahead_than_the_schedule_says(
    graph: nx.Graph, habits: Habits, seed: int
) -> None:
    """Whoever can go on goes as far as it can; words arrive late, and in any order."""
    engines = engines_on(graph, habits)
    far = dict(nx.all_pairs_shortest_path_length(graph))
    lead = habits.schedule.lead

    def look() -> None:
        at = [engine.seq for engine in engines]
        for i, js in far.items():
            assert all(at[i] - at[j] <= lead * distance for j, distance in js.items())
            assert all(held(engines[i], j) <= lead + 1 for j in graph[i])

    run_unfairly(engines, len(habits.counts), seed, look)


def eager(longest: int, stride: int, who: str) -> Habits:
    return Habits((stride,) * 3 * (longest + 2), longest, promising=who)


@pytest.mark.parametrize("longest", [0, 1, 2, 3, 6])
@pytest.mark.parametrize("stride", [1, 3])
def test_the_lead_is_attained_and_so_is_what_is_held(longest: int, stride: int) -> None:
    """One promises all that it can and is slow; the other always speaks."""
    habits = eager(longest, stride, "even")
    slow, quick = engines = engines_on(nx.path_graph(2), habits)
    lead = habits.schedule.lead
    assert lead == (longest + 1 if stride == 1 else 1 + (longest > 0))
    ahead, most = [], []

    def look() -> None:
        ahead.append(quick.seq - slow.seq)
        most.append(held(slow, 1))

    run_unfairly(engines, len(habits.counts), 0, look, slow=0)
    assert max(ahead) == lead
    assert max(most) == lead + 1  # R + 2 in rounds of one exchange


@pytest.mark.parametrize("longest", [0, 1, 2, 3, 6])
def test_any_two_are_as_many_leads_apart_as_edges(longest: int) -> None:
    """All promise all that they can, at once: each waits for the one before it."""
    habits = eager(longest, 1, "all")
    engines = engines_on(nx.path_graph(4), habits)
    ahead = []
    run_unfairly(
        engines,
        len(habits.counts),
        0,
        lambda: ahead.append(engines[3].seq - engines[0].seq),
        slow=0,
    )
    assert max(ahead) == 3 * habits.schedule.lead
