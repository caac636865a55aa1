"""Engines on a network that delays, reorders, repeats and replays: the same result to the bit."""

from __future__ import annotations

from contextlib import suppress

import networkx as nx
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from dlag_node.errors import RemoteProtocolError
from dlag_node.rounds import Outgoing
from dlag_node.wire import Delta, Skip
from dlag_node.wire.codec import Codec
from tests.rounds.crashes import DIM, Habits, Wanderer
from tests.rounds.meshes import Edge, connected, engines_on, habits, held, run_in_order


class Adversary(RuleBasedStateMachine):
    """A small mesh whose network may do anything but forge.

    Frames wait in `flying` as bytes, in no order; each frame stays there until it was delivered at
    least once, so nothing is lost for good, but any frame of the past may come at any time.
    """

    @initialize(graph=connected(), habits=habits())
    def build(self, graph: nx.Graph, habits: Habits) -> None:
        self.rounds = len(habits.counts)
        self.codec = Codec(DIM)
        self.schedule = habits.schedule
        self.engines = engines_on(graph, habits)
        self.reference = engines_on(graph, habits)
        self.sent = run_in_order(self.reference, self.rounds)
        self.far = dict(nx.all_pairs_shortest_path_length(graph))
        self.flying: list[tuple[Edge, bytes]] = []
        self.past: list[tuple[Edge, bytes]] = []
        self.edges: list[Edge] = [(i, j) for i in sorted(graph) for j in sorted(graph[i])]
        self.taken: dict[Edge, list[int]] = {edge: [] for edge in self.edges}

    def send(self, sender: int, receiver: int, raw: bytes) -> None:
        self.flying.append(((sender, receiver), raw))

    def deliver(self, edge: Edge, raw: bytes) -> None:
        sender, receiver = edge
        frame = self.codec.decode(raw, f"neighbor {sender}")
        assert isinstance(frame, Delta | Skip)
        if self.engines[receiver].deliver(sender, frame):
            self.taken[edge].append(frame.seq)

    def advance(self, node: int) -> bool:
        engine = self.engines[node]
        if engine.rounds >= self.rounds or not engine.ready:
            return False
        outgoing = engine.advance()
        if isinstance(outgoing, Outgoing):
            for j in filter(outgoing.is_for, engine.barrier.neighbors):
                self.send(node, j, outgoing.raw)
        return True

    @rule(pick=st.integers(0, 4), times=st.integers(1, 20))
    def a_node_computes(self, pick: int, times: int) -> None:
        """As far as it can: others are slow."""
        for _ in range(times):
            self.advance(pick % len(self.engines))

    @precondition(lambda self: self.flying)
    @rule(pick=st.integers(0, 10**6), stays=st.booleans())
    def a_frame_arrives(self, pick: int, stays: bool) -> None:
        """Any frame on its way, whatever was sent before it; perhaps it will come once more."""
        at = pick % len(self.flying)
        edge, raw = self.flying[at] if stays else self.flying.pop(at)
        self.past.append((edge, raw))
        self.deliver(edge, raw)

    @precondition(lambda self: self.past)
    @rule(pick=st.integers(0, 10**6), times=st.integers(1, 3))
    def a_frame_of_the_past_is_replayed(self, pick: int, times: int) -> None:
        for _ in range(times):
            self.deliver(*self.past[pick % len(self.past)])

    @precondition(lambda self: self.flying)
    @rule(pick=st.integers(0, 10**6))
    def a_link_breaks_and_is_repaired(self, pick: int) -> None:
        """All that was on its way over an edge is lost; then both ends tell where they are."""
        (sender, receiver), _ = self.flying[pick % len(self.flying)]
        lost = {(sender, receiver), (receiver, sender)}
        self.flying = [each for each in self.flying if each[0] not in lost]
        self.resend(sender, receiver, self.engines[receiver].seq)
        self.resend(receiver, sender, self.engines[sender].seq)

    @rule(pick=st.integers(0, 10**6), need=st.integers(0, 12))
    def an_old_need_arrives(self, pick: int, need: int) -> None:
        """What is not kept any more is refused: whoever asks has it already."""
        sender, receiver = self.edges[pick % len(self.edges)]
        with suppress(RemoteProtocolError):
            self.resend(sender, receiver, min(need, self.engines[receiver].seq))

    def resend(self, sender: int, receiver: int, need: int) -> None:
        again = self.engines[sender].frames_from(receiver, need)
        if need == self.engines[receiver].seq:
            assert len(again) <= self.schedule.lead + 1
        for outgoing in again:
            self.send(sender, receiver, outgoing.raw)

    @invariant()
    def nobody_is_too_far_ahead(self) -> None:
        for i, far in getattr(self, "far", {}).items():
            for j, distance in far.items():
                apart = self.engines[i].seq - self.engines[j].seq
                assert apart <= distance * self.schedule.lead

    @invariant()
    def few_frames_are_held(self) -> None:
        for i, j in getattr(self, "edges", []):
            assert held(self.engines[j], i) <= self.schedule.lead + 1

    @invariant()
    def each_frame_is_taken_once(self) -> None:
        for edge, seqs in getattr(self, "taken", {}).items():
            assert len(seqs) == len(set(seqs)), edge

    @invariant()
    def what_was_heard_so_far_is_what_the_run_in_order_heard(self) -> None:
        for engine, other in zip(
            getattr(self, "engines", []), getattr(self, "reference", []), strict=True
        ):
            heard = engine.method.heard
            assert heard == other.method.heard[: len(heard)]

    def teardown(self) -> None:
        """Let the rest of the run happen: it ends, and equals the run in order."""
        if not hasattr(self, "engines"):
            return
        moved = True
        while moved:
            moved = sum(self.advance(engine.node) for engine in self.engines) > 0
            while self.flying:
                moved = True
                self.deliver(*self.flying.pop())
        for engine, other in zip(self.engines, self.reference, strict=True):
            assert engine.rounds == self.rounds
            assert engine.seq == other.seq
            assert engine.method.theta.tobytes() == other.method.theta.tobytes()
            assert isinstance(engine.method, Wanderer)
            assert isinstance(other.method, Wanderer)
            assert engine.method.heard == other.method.heard
        assert {edge: sorted(seqs) for edge, seqs in self.taken.items() if seqs} == self.sent


Adversary.TestCase.settings = settings(max_examples=100, stateful_step_count=60, deadline=None)
TestAdversary = Adversary.TestCase
