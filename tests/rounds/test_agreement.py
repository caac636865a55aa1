"""Agreeing to stop: any graph, any pattern of calm, any requests from outside."""

from __future__ import annotations

import random

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlag_node.graphs.topology import Graph
from dlag_node.rounds.agreement import WHYS, Agreement

Requests = dict[int, list[tuple[int, str]]]  # after a round: who is asked, and why


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Connected, with 2 to 9 nodes: a random tree and some more edges."""
    nodes = draw(st.integers(2, 9))
    edges = {(draw(st.integers(0, i - 1)), i) for i in range(1, nodes)}
    pair = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    edges |= {(min(p), max(p)) for p in draw(st.lists(pair, max_size=6)) if p[0] != p[1]}
    return Graph(nodes, tuple(sorted(edges)))


def run(
    graph: Graph, calm: list[list[bool]], requests: Requests, *, slack: int = 0
) -> tuple[list[int | None], list[Agreement]]:
    """calm[k][i]: whether node i is calm at the end of round k + 1; returns when each stopped."""
    nodes = [Agreement(graph.diameter() + slack) for _ in range(graph.nodes)]
    stopped: list[int | None] = [None] * graph.nodes
    for k, row in enumerate(calm, 1):
        words = [node.word for node in nodes]
        for i, node in enumerate(nodes):
            if stopped[i] is None:
                node.close([words[j] for j in graph.neighbors(i)], calm=row[i])
                if node.over:
                    stopped[i] = k
        for i, why in requests.get(k, []):
            if stopped[i] is None:
                nodes[i].announce(why)
    return stopped, nodes


@settings(max_examples=300, deadline=None)
@given(graph=graphs(), seed=st.integers(0, 10**6), often=st.floats(0.5, 1.0), data=st.data())
def test_all_stop_in_the_same_round_and_never_before_all_were_calm_at_once(
    graph: Graph, seed: int, often: float, data: st.DataObject
) -> None:
    draw = random.Random(seed)
    T = graph.diameter()
    slack = data.draw(st.integers(0, 2), label="the diameter is said to be so much larger")
    calm = [[draw.random() < often for _ in range(graph.nodes)] for _ in range(8 * T + 20)]
    stopped, nodes = run(graph, calm, {}, slack=slack)
    assert len(set(stopped)) == 1
    if stopped[0] is not None:
        # known T rounds before the end, of a round T before that
        assert all(calm[stopped[0] - 2 * (T + slack) - 1])
        assert {node.why for node in nodes} == {"tol"}


@settings(max_examples=200, deadline=None)
@given(graph=graphs(), seed=st.integers(0, 10**6), before=st.integers(0, 12))
def test_calm_that_lasts_ends_the_run_twice_the_diameter_later_at_the_latest(
    graph: Graph, seed: int, before: int
) -> None:
    draw = random.Random(seed)
    T, n = graph.diameter(), graph.nodes
    calm = [[draw.random() < 0.7 for _ in range(n)] for _ in range(before)]
    calm += [[True] * n] * (2 * T + 1)
    stopped, _ = run(graph, calm, {})
    assert None not in stopped
    assert len(set(stopped)) == 1


@settings(max_examples=300, deadline=None)
@given(graph=graphs(), seed=st.integers(0, 10**6), asked=st.integers(1, 4), calm=st.booleans())
def test_whoever_is_asked_and_however_many_the_earliest_stop_is_everybodys(
    graph: Graph, seed: int, asked: int, calm: bool
) -> None:
    draw = random.Random(seed)
    T, n = graph.diameter(), graph.nodes
    requests: Requests = {}
    for _ in range(asked):
        after = draw.randrange(1, 2 * T + 6)
        requests.setdefault(after, []).append((draw.randrange(n), draw.choice(WHYS[1:])))
    rows = [[calm and draw.random() < 0.95 for _ in range(n)] for _ in range(4 * T + 12)]
    stopped, nodes = run(graph, rows, requests)
    assert len(set(stopped)) == 1
    assert stopped[0] is not None
    assert stopped[0] <= min(requests) + T
    assert len({node.why for node in nodes}) == 1
    if not calm:
        first = min(requests)
        assert stopped[0] == first + T
        assert nodes[0].why == min((why for _, why in requests[first]), key=WHYS.index)


def test_a_count_of_the_diameter_alone_would_stop_too_early() -> None:
    """The far end of a path is never calm: with T - 1 in place of T nobody would notice."""
    graph = Graph(4, ((0, 1), (1, 2), (2, 3)))
    calm = [[True, True, True, False]] * 40
    assert run(graph, calm, {})[0] == [None] * 4
    stopped, _ = run(graph, calm, {}, slack=-1)
    assert None not in stopped[:2]


def run_in_silence(
    graph: Graph, calm: list[list[bool]], requests: Requests, *, longest: int, hop: int, seed: int
) -> list[int | None]:
    """Whoever speaks, and does not count, may promise up to `longest` rounds of silence."""
    draw = random.Random(seed)
    nodes = [Agreement(graph.diameter(), hop=hop) for _ in range(graph.nodes)]
    stopped: list[int | None] = [None] * graph.nodes
    left = [0] * graph.nodes
    for k, row in enumerate(calm, 1):
        words = [0] * graph.nodes
        for i, node in enumerate(nodes):
            if left[i]:
                left[i] -= 1
                continue
            words[i] = node.word
            if node.may_promise:
                left[i] = draw.choice([0, longest, draw.randint(0, longest)])
        for i, node in enumerate(nodes):
            if stopped[i] is None:
                node.close([words[j] for j in graph.neighbors(i)], calm=row[i])
                if node.over:
                    stopped[i] = k
        for i, why in requests.get(k, []):
            if stopped[i] is None:
                nodes[i].announce(why)
    return stopped


LONGEST = st.sampled_from([0, 1, 2, 3, 6])


@settings(max_examples=200, deadline=None)
@given(graph=graphs(), seed=st.integers(0, 10**6), longest=LONGEST, before=st.integers(0, 12))
def test_promises_end_where_calm_lasts_and_all_stop_in_the_same_round(
    graph: Graph, seed: int, longest: int, before: int
) -> None:
    draw = random.Random(seed)
    T, n, hop = graph.diameter(), graph.nodes, longest + 1
    calm = [[draw.random() < 0.7 for _ in range(n)] for _ in range(before)]
    calm += [[True] * n] * (longest + T + 1 + T * hop)
    stopped = run_in_silence(graph, calm, {}, longest=longest, hop=hop, seed=seed)
    assert len(set(stopped)) == 1
    assert stopped[0] is not None
    assert all(calm[stopped[0] - T - T * hop - 1])


@settings(max_examples=200, deadline=None)
@given(graph=graphs(), seed=st.integers(0, 10**6), longest=LONGEST, asked=st.integers(1, 3))
def test_who_is_asked_is_heard_by_all_through_any_silence(
    graph: Graph, seed: int, longest: int, asked: int
) -> None:
    draw = random.Random(seed)
    T, n, hop = graph.diameter(), graph.nodes, longest + 1
    rounds = [draw.randrange(1, 12) for _ in range(asked)]
    requests: Requests = {}
    for after in rounds:
        requests.setdefault(after, []).append((draw.randrange(n), "asked"))
    calm = [[False] * n] * (12 + T * hop)
    stopped = run_in_silence(graph, calm, requests, longest=longest, hop=hop, seed=seed)
    assert stopped == [min(rounds) + T * hop] * n


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_the_diameter_alone_is_too_short_a_notice_where_silence_is_promised(longest: int) -> None:
    graph = Graph(4, ((0, 1), (1, 2), (2, 3)))
    ends = [
        run_in_silence(
            graph, [[False] * 4] * 40, {9: [(0, "asked")]}, longest=longest, hop=hop, seed=seed
        )
        for hop in (1, longest, longest + 1)
        for seed in range(40)
    ]
    assert any(len(set(stopped)) > 1 for stopped in ends[:40])
    assert any(len(set(stopped)) > 1 for stopped in ends[40:80])
    assert all(len(set(stopped)) == 1 for stopped in ends[80:])


@pytest.mark.parametrize("T", [1, 3, 40, 500])
def test_a_word_is_small(T: int) -> None:
    node = Agreement(T)
    assert node.word == 0
    node.announce("asked")
    assert -3 * T <= node.word < 0
    left = []
    while not node.over:
        left.append(node.word)
        node.close([0], calm=False)
    assert len(set(left)) == T
    assert left[-1] == -3  # one round is left, and why


def test_a_round_without_news_is_not_counted() -> None:
    node = Agreement(2)
    node.announce("asked")
    for _ in range(5):
        node.close(None, calm=True)
    assert not node.over


@pytest.mark.parametrize(
    "graph", [nx.path_graph(7), nx.cycle_graph(9), nx.grid_2d_graph(4, 3), nx.star_graph(5)]
)
def test_the_diameter_is_that_of_networkx(graph: nx.Graph) -> None:
    plain = nx.convert_node_labels_to_integers(graph)
    edges = sorted((min(edge), max(edge)) for edge in plain.edges())
    assert Graph(len(plain), tuple(edges)).diameter() == nx.diameter(plain)
