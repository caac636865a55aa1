"""Nodes that crash at any instant and come back, on a network that breaks: the bits of a calm run.

The real NodeState and Links, one order or message at a time, so that a process can die between any
two of them: with a checkpoint written and the frame after it not sent, with its goodbye said to one
neighbor and not to the other. It comes back from the newer checkpoint, or from the older one where
the newer is unreadable. Whatever happens, the run ends, everywhere after the same round, and with
the bits of an undisturbed one.
"""

from __future__ import annotations

import networkx as nx
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from dlag_node.net.node_state import NodeState
from tests.net.memory_mesh import MemoryMesh, Stuck
from tests.rounds.crashes import wandering
from tests.rounds.meshes import Edge, run_in_order


class Crashing(RuleBasedStateMachine):
    """A small mesh with checkpoints: what a network does to bytes, and crashes to nodes."""

    kind: type[NodeState] = NodeState

    @initialize(
        nodes=st.integers(2, 4),
        extra=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=3),
        counts=st.one_of(
            st.integers(1, 3).flatmap(lambda K: st.lists(st.just(K), min_size=1, max_size=8)),
            st.lists(st.integers(0, 3), min_size=1, max_size=8),
        ),
        every=st.lists(st.integers(1, 3), min_size=4, max_size=4),
    )
    def build(self, nodes: int, extra: list[Edge], counts: list[int], every: list[int]) -> None:
        graph = nx.path_graph(nodes)
        graph.add_edges_from((i % nodes, j % nodes) for i, j in extra if i % nodes != j % nodes)
        neighbors = [sorted(graph[i]) for i in range(nodes)]
        self.edges: list[Edge] = list(graph.edges)
        self.history = history_of(neighbors, counts)
        self.mesh = MemoryMesh(neighbors, counts, every=every[:nodes], kind=self.kind)
        self.asked = False

    @rule(pick=st.integers(0, 3), times=st.integers(1, 12))
    def a_node_acts(self, pick: int, times: int) -> None:
        for _ in range(times):
            self.mesh.nodes[pick % len(self.mesh.nodes)].step()

    @precondition(lambda self: self.mesh.post.flying)
    @rule(pick=st.integers(0, 10**6), times=st.integers(1, 4))
    def letters_arrive(self, pick: int, times: int) -> None:
        post = self.mesh.post
        for _ in range(min(times, len(post.flying))):
            post.deliver(post.oldest(post.flying[pick % len(post.flying)]))

    @rule(times=st.integers(1, 10))
    def all_goes_well(self, times: int) -> None:
        for _ in range(times):
            for node in self.mesh.nodes:
                while node.step():
                    pass
            for letter in list(self.mesh.post.flying):
                self.mesh.post.deliver(letter)

    @rule(
        picks=st.sets(st.integers(0, 3), min_size=1),
        rot=st.sets(st.integers(0, 3)),
        late=st.booleans(),
    )
    def nodes_crash(self, picks: set[int], rot: set[int], late: bool) -> None:
        """Any number of them at once; what they sent may still arrive."""
        crashing = {pick % len(self.mesh.nodes) for pick in picks}
        alive = [i for i in crashing if not self.mesh.nodes[i].left]
        for i in alive:
            self.mesh.crash(i, rot=i in rot, late=late)

    @rule(pick=st.integers(0, 10**6))
    def a_link_breaks(self, pick: int) -> None:
        i, j = self.edges[pick % len(self.edges)]
        self.mesh.cut(i, j)

    @rule(seconds=st.sampled_from([0.1, 0.3, 1.0, 5.0]))
    def time_passes(self, seconds: float) -> None:
        self.mesh.wait(seconds)

    @rule(pick=st.integers(0, 3))
    def a_node_is_asked_to_stop(self, pick: int) -> None:
        self.mesh.nodes[pick % len(self.mesh.nodes)].wish.ask()
        self.asked = True

    def teardown(self) -> None:
        if not hasattr(self, "mesh"):
            return
        self.mesh.finish()
        nodes = self.mesh.nodes
        assert [node.error for node in nodes] == [None] * len(nodes)
        rounds = {node.engine.rounds for node in nodes}
        if len(rounds) > 1:
            raise Stuck(f"nodes ended at rounds {[node.engine.rounds for node in nodes]}")
        last = rounds.pop()
        assert last == self.mesh.rounds or (self.asked and nodes[0].state.course.ended == "asked")
        assert self.mesh.thetas == self.history[last]


def history_of(neighbors: list[list[int]], counts: list[int]) -> list[list[bytes]]:
    """Everybody's theta after each round, without a stop or a crash."""
    engines = [wandering(i, js, counts) for i, js in enumerate(neighbors)]
    history = []
    for k in range(len(counts) + 1):
        run_in_order(engines, k)
        history.append([engine.method.theta.tobytes() for engine in engines])
    return history


Crashing.TestCase.settings = settings(max_examples=120, stateful_step_count=30, deadline=None)
TestCrashing = Crashing.TestCase
