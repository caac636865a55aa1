"""The spanning tree: of the graph's edges, as shallow as any, and the same for everybody."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlag_node.graphs import Graph, parse_topology, spanning_tree


@given(st.data())
def test_it_spans_the_graph_and_no_tree_is_less_deep(
    connected_graphs: st.SearchStrategy[Graph], data: st.DataObject
) -> None:
    graph = data.draw(connected_graphs)
    tree = spanning_tree(graph.nodes, graph.edges)
    parents = {i: j for i, j in enumerate(tree.parent) if j is not None}
    edges = {(min(pair), max(pair)) for pair in parents.items()}
    assert len(edges) == graph.nodes - 1
    assert edges <= set(graph.edges)
    assert nx.is_connected(nx.Graph(list(edges)))

    full = nx.Graph(graph.edges)
    assert tree.depth == nx.radius(full) == max(tree.level)
    assert dict(enumerate(tree.level)) == nx.single_source_shortest_path_length(full, tree.root)
    assert tree.parent[tree.root] is None
    assert tree.level[tree.root] == 0
    for i, j in parents.items():
        assert tree.level[i] == tree.level[j] + 1
        assert i in tree.children[j]
    assert all(list(below) == sorted(below) for below in tree.children)
    assert sum(map(len, tree.children)) == graph.nodes - 1


@given(st.data())
def test_of_all_centres_the_least_remote_is_root_and_then_the_lowest_id(
    connected_graphs: st.SearchStrategy[Graph], data: st.DataObject
) -> None:
    graph = data.draw(connected_graphs)
    full = nx.Graph(graph.edges)
    total = {i: sum(nx.single_source_shortest_path_length(full, i).values()) for i in full}
    best = min((total[i], i) for i in nx.center(full))
    assert spanning_tree(graph.nodes, graph.edges).root == best[1]


@pytest.mark.parametrize(
    ("topology", "root", "depth"),
    [
        ("path:2", 0, 1),
        ("path:5", 2, 2),
        ("path:6", 2, 3),
        ("star:6", 0, 1),
        ("complete:5", 0, 1),
        ("ring:7", 0, 3),
        ("grid:5x5", 12, 4),
        ("grid:2x3", 1, 2),
    ],
)
def test_the_root_is_in_the_middle(topology: str, root: int, depth: int) -> None:
    graph = parse_topology(topology, seed=0)
    tree = spanning_tree(graph.nodes, graph.edges)
    assert (tree.root, tree.depth) == (root, depth)


def test_a_worker_reached_from_two_hangs_below_the_lower_id() -> None:
    graph = parse_topology("grid:3x3", seed=0)
    tree = spanning_tree(graph.nodes, graph.edges)
    assert tree.root == 4
    assert tree.parent == (1, 4, 1, 4, None, 4, 3, 4, 5)
    assert tree.children[3] == (6,)
