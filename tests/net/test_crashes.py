"""Nodes that crash at any instant and come back, on a network that breaks: the bits of a calm run.

The real NodeState and Links, one order or message at a time, so that a process can die between any
two of them: with a checkpoint written and the frame after it not sent, with its goodbye said to one
neighbor and not to the other. It comes back from the newer checkpoint, or from the older one where
the newer is unreadable. Whatever happens, the run ends, everywhere after the same round, and with
the bits of an undisturbed one.
"""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from dlag_node.net.node_state import NodeState
from dlag_node.net.orders import Meet
from tests.net.memory_mesh import MemoryMesh, Stuck
from tests.rounds.crashes import Habits
from tests.rounds.meshes import Edge, connected, engines_on, habits, run_in_order

_TO_REST = 40  # rounds in which promises of up to 2, on a path of four, come to an end


class Crashing(RuleBasedStateMachine):
    """A small mesh with checkpoints: what a network does to bytes, and crashes to nodes."""

    kind: type[NodeState] = NodeState

    @initialize(
        graph=connected(most=4),
        habits=habits(),
        every=st.lists(st.integers(0, 3), min_size=4, max_size=4),
        rest=st.booleans(),
    )
    def build(self, graph: nx.Graph, habits: Habits, every: list[int], rest: bool) -> None:
        """Who is saved every 0 rounds never crashes, and its neighbors keep no more than they must.

        With `rest` they stop by themselves, if nobody asks them to.
        """
        if rest:
            counts = (max(1, habits.counts[0]),) * _TO_REST
            longest = min(2, habits.longest)
            habits = replace(habits, counts=counts, longest=longest, rest=2)
        self.tol = 1e-9 if rest else None
        neighbors = [sorted(graph[i]) for i in sorted(graph)]
        self.edges: list[Edge] = list(graph.edges)
        self.crashed = False
        self.history, self.resting = history_of(graph, habits, self.tol)
        self.lead = habits.schedule.lead
        self.mesh = MemoryMesh(
            neighbors, habits, every=every[: len(neighbors)], kind=self.kind, tol=self.tol
        )
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
        alive = [i for i in crashing if self.mesh.every[i] and not self.mesh.nodes[i].left]
        for i in alive:
            self.mesh.crash(i, rot=i in rot, late=late)
            self.crashed = True

    @rule(pick=st.integers(0, 10**6))
    def a_link_breaks(self, pick: int) -> None:
        i, j = self.edges[pick % len(self.edges)]
        self.mesh.cut(i, j)

    @rule(side=st.sets(st.integers(0, 3), min_size=1, max_size=3), times=st.integers(1, 20))
    def the_network_is_parted(self, side: set[int], times: int) -> None:
        """For a while nothing crosses; then the connections are found to be broken."""
        across = [(i, j) for i, j in self.edges if (i in side) != (j in side)]
        ways = [{self.mesh.addresses[i], self.mesh.addresses[j]} for i, j in across]
        for _ in range(times):
            for node in self.mesh.nodes:
                node.step()
            within = [each for each in self.mesh.post.flying if {*each.ends} not in ways]
            if within:
                self.mesh.post.deliver(within[0])
        for i, j in across:
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
        if last != self.resting:
            assert self.asked
            assert last < self.resting
            assert {node.state.course.ended for node in nodes} == {"asked"}
        assert self.mesh.thetas == self.history[last]
        if not self.crashed:
            assert self.mesh.refused == 0
        answers = sum(isinstance(order, Meet) for node in nodes for order in node.orders)
        answers += self.mesh.control["Need"] + self.mesh.control["Ask"]
        if not self.crashed:
            assert self.mesh.control["Resend"] <= answers * (self.lead + 1)


def history_of(graph: nx.Graph, habits: Habits, tol: float | None) -> tuple[list[list[bytes]], int]:
    """Everybody's theta after each round, without a stop or a crash; and the last round."""
    engines = engines_on(graph, habits, tol=tol)
    history, last = [], len(habits.counts)
    for k in range(len(habits.counts) + 1):
        run_in_order(engines, k)
        history.append([engine.method.theta.tobytes() for engine in engines])
        over = {engine.stopping.agreement.over for engine in engines}
        assert len(over) == 1
        if over == {True}:
            last = min(last, k)
    return history, last


Crashing.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
TestCrashing = Crashing.TestCase
