"""The window: what follows from "a neighbor can be one exchange ahead, never two"."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlag_node.errors import RemoteProtocolError
from dlag_node.rounds.window import LEAD, Window

SEQS = st.integers(0, 100)


@given(theirs=SEQS, ours=SEQS)
def test_what_is_taken_is_what_a_neighbor_sends_to_one_who_is_there(theirs: int, ours: int) -> None:
    window = Window([2])
    assert (theirs in window.wanted(ours)) == (0 <= theirs - ours <= LEAD)
    if theirs <= ours + LEAD:
        window.refuse(2, theirs, ours)  # it fits, or is a repeat
    else:
        with pytest.raises(RemoteProtocolError, match="never two"):
            window.refuse(2, theirs, ours)


@given(sent=st.integers(1, 100))
def test_what_may_be_in_doubt_is_what_the_one_furthest_behind_wants(sent: int) -> None:
    window = Window([2])
    furthest_behind = sent - LEAD
    assert window.in_doubt(sent) == min(window.wanted(furthest_behind))
    assert window.unheard_from(furthest_behind) == sent + 1


@settings(max_examples=60)
@given(
    extra=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=4),
    turns=st.lists(st.integers(0, 4), min_size=20, max_size=200),
)
def test_nobody_who_waits_for_who_is_due_gets_further_ahead(
    extra: list[tuple[int, int]], turns: list[int]
) -> None:
    """Five nodes move in any order; one leaves exchange q when all who are due have sent q."""
    graph = nx.path_graph(5)
    graph.add_edges_from((i, j) for i, j in extra if i != j)
    at = [0] * 5  # the exchange whose frame each has sent last
    for i in turns:
        if all(at[j] >= at[i] for j in Window(sorted(graph[i])).due(at[i])):
            at[i] += 1
        assert all(abs(at[i] - at[j]) <= LEAD for i, j in graph.edges)
