"""Graphs and habits for property tests, and the run that all others must equal."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence

import networkx as nx
from hypothesis import strategies as st

from dlag_node.rounds import Engine, Outgoing
from dlag_node.wire.frames import RoundFrame
from tests.rounds.crashes import Habits, wandering

Edge = tuple[int, int]  # from, to
LONGEST = 6  # R


@st.composite
def connected(draw: st.DrawFn, *, most: int = 5) -> nx.Graph:
    """A random tree, and some more edges."""
    nodes = draw(st.integers(2, most))
    graph = nx.Graph([(draw(st.integers(0, i - 1)), i) for i in range(1, nodes)])
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    graph.add_edges_from((i, j) for i, j in draw(st.lists(pairs, max_size=4)) if i != j)
    return graph


@st.composite
def habits(draw: st.DrawFn, *, rounds: int = 8, silence: bool = True) -> Habits:
    """Tokens alone, in rounds of any lengths; or promises, turns, or both, in rounds of one."""
    kinds = ["tokens", "promises", "turns", "meetings"] if silence else ["tokens"]
    kind = draw(st.sampled_from(kinds))
    length = draw(st.integers(1, rounds))
    if kind == "tokens":
        return Habits(tuple(draw(st.lists(st.integers(0, 3), min_size=1, max_size=length))))
    counts = (draw(st.sampled_from([1, 1, 2, 3])),) * length
    if kind == "meetings":
        return Habits(counts, meet=draw(st.integers(2, 4)))
    longest = draw(st.sampled_from([1, 2, 2, 3, LONGEST]))
    return Habits(counts, longest, meet=int(kind == "turns"))


def engines_on(
    graph: nx.Graph, habits: Habits | Sequence[int], *, tol: float | None = None
) -> list[Engine]:
    """One wanderer a node."""
    return [
        wandering(i, sorted(graph[i]), habits, diameter=nx.diameter(graph), tol=tol)
        for i in sorted(graph)
    ]


def run_in_order(engines: list[Engine], rounds: int) -> dict[Edge, list[int]]:
    """Everybody speaks, then everybody hears: the simulator in ten lines.

    Returns the exchanges in which something was sent, by edge.
    """
    sent: dict[Edge, list[int]] = defaultdict(list)
    while any(engine.rounds < rounds for engine in engines):
        spoken = [engine.advance() if engine.rounds < rounds else None for engine in engines]
        for engine, outgoing in zip(engines, spoken, strict=True):
            if isinstance(outgoing, Outgoing):
                for j in filter(outgoing.is_for, engine.barrier.neighbors):
                    assert engines[j].deliver(engine.node, outgoing.frame)
                    sent[engine.node, j].append(outgoing.frame.seq)
    return sent


def run_unfairly(
    engines: list[Engine],
    rounds: int,
    seed: int,
    look: Callable[[], object],
    *,
    slow: int | None = None,
) -> None:
    """Frames arrive in any order, and one node goes as far as it can while the others sleep.

    The `slow` one moves when nothing else does. Nothing is sent twice, and all of it is taken.
    """
    draw = random.Random(seed)
    flying: list[tuple[Edge, RoundFrame]] = []
    last = -1  # who moved
    while True:
        able = [e for e in engines if e.ready and e.rounds < rounds]
        quick = [e for e in able if e.node != slow]
        if flying and (not quick or draw.random() < 0.4):
            (i, j), frame = flying.pop(draw.randrange(len(flying)))
            assert engines[j].deliver(i, frame)
        elif able:
            again = [e for e in quick if e.node == last and draw.random() < 0.9]
            engine = draw.choice(again or quick or able)
            last, outgoing = engine.node, engine.advance()
            if isinstance(outgoing, Outgoing):
                for j in filter(outgoing.is_for, engine.barrier.neighbors):
                    flying.append(((last, j), outgoing.frame))
        else:
            break
        look()
    assert {engine.rounds for engine in engines} == {rounds}


def held(engine: Engine, neighbor: int) -> int:
    """How many of a neighbor's frames wait at the barrier."""
    return sum(neighbor in slot for slot in engine.barrier._held.values())
