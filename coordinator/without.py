"""A plan without some of its workers: the graph, the shards and the objective that are left."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from coordinator.datasets import Dataset
from coordinator.shards import Index
from dlag_node.errors import ConfigError
from dlag_node.graphs.topology import Graph


def parse_without(text: str, nodes: int) -> tuple[int, ...]:
    """The ids in `7,9`, ascending; ConfigError unless they are some, but not all, of the workers'.

    An empty text names nobody.
    """
    words = text.split(",") if text else []
    if not all(word.isascii() and word.isdecimal() for word in words):
        raise ConfigError(f"without = {text!r}: expected ids, for instance 7,9")
    lost = sorted({int(word[:10]) for word in words})
    for i in lost:
        if i >= nodes:
            raise ConfigError(f"without = {text!r}: there is no node {i}: ids are 0 to {nodes - 1}")
    if nodes - len(lost) < 2:
        raise ConfigError(f"without = {text!r} of {nodes} nodes: expected 2 or more to be left")
    return tuple(lost)


def graph_left(graph: Graph, lost: Collection[int]) -> Graph:
    """The graph without these workers; the others keep their order and are numbered anew."""
    kept = [i for i in range(graph.nodes) if i not in lost]
    parts = _components(graph, kept)
    if len(parts) > 1:
        named = "; ".join(", ".join(map(str, part)) for part in parts)
        raise ConfigError(
            f"without {sorted(lost)} the graph falls into {len(parts)} parts: {named}; "
            "expected the rest to be connected"
        )
    number = {i: new for new, i in enumerate(kept)}
    edges = [(number[i], number[j]) for i, j in graph.edges if i in number and j in number]
    return Graph(len(kept), tuple(edges))


def data_left(
    data: Dataset, parts: Sequence[Index], lost: Collection[int]
) -> tuple[Dataset, list[Index]]:
    """The samples of the others, and who has which of them."""
    kept = [part for i, part in enumerate(parts) if i not in lost]
    left = np.sort(np.concatenate(kept))
    rows, labels = data.rows.take(left), data.labels[left]
    return (
        replace(data, table=replace(data.table, rows=rows, labels=labels), labels=labels),
        [np.searchsorted(left, part) for part in kept],
    )


def _components(graph: Graph, kept: Sequence[int]) -> list[list[int]]:
    """Who can reach whom among those that are left, in their old ids."""
    unseen, parts = set(kept), []
    for root in kept:
        if root not in unseen:
            continue
        unseen.discard(root)
        reached = [root]
        for i in reached:
            fresh = unseen.intersection(graph.neighbors(i))
            unseen -= fresh
            reached += sorted(fresh)
        parts.append(sorted(reached))
    return parts
