"""Connected graphs for hypothesis to draw."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from dlag_node.graphs import Graph


@st.composite
def _connected(draw: st.DrawFn) -> Graph:
    nodes = draw(st.integers(2, 12))
    tree = {(draw(st.integers(0, j - 1)), j) for j in range(1, nodes)}
    pairs = [(i, j) for j in range(nodes) for i in range(j)]
    return Graph(nodes, tuple(sorted(tree | draw(st.sets(st.sampled_from(pairs))))))


@pytest.fixture(scope="session")
def connected_graphs() -> st.SearchStrategy[Graph]:
    return _connected()
