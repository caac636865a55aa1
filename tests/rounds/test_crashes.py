"""Engines that crash and come back from their checkpoints, on a network that loses and repeats.

Nodes save themselves every N rounds, before a frame of the next round leaves, in two slots. A node
that crashes comes back from the newer one, or from the older one (the newer is unreadable), and the
frames on their way to and from it are lost or arrive late. Whatever happens, the run ends with the
bits of an undisturbed one.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dlag_node.errors import RemoteProtocolError
from dlag_node.rounds import Engine, Record, RoundEnded
from dlag_node.rounds.checkpoint import freeze, thaw
from dlag_node.rounds.slots import SLOTS
from dlag_node.wire import Delta, Skip
from dlag_node.wire.codec import Codec
from tests.rounds.crashes import DIM, Wanderer, owner_of, wandering
from tests.rounds.test_adversary import Edge, run_in_order


class Stuck(AssertionError):
    """Nobody can go on, though nobody has finished: nodes wait for each other for ever."""


class Crashing(RuleBasedStateMachine):
    """A small mesh with checkpoints: what a network does to bytes, and crashes to nodes."""

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
        self.neighbors = [sorted(graph[i]) for i in range(nodes)]
        self.counts, self.every = counts, every
        self.codec = Codec(DIM)
        reference = [self.fresh(i) for i in range(nodes)]
        run_in_order(reference, len(counts))
        self.expected = [engine.method.theta.tobytes() for engine in reference]
        self.engines = [self.fresh(i) for i in range(nodes)]
        self.slots: list[deque[bytes]] = [deque(maxlen=SLOTS) for _ in range(nodes)]
        self.records: list[dict[int, Record]] = [{} for _ in range(nodes)]
        self.flying: list[tuple[Edge, bytes]] = []
        self.edges: list[Edge] = [(i, j) for i in range(nodes) for j in graph[i]]
        for i, j in self.edges:
            self.greet(i, j)

    def fresh(self, node: int) -> Engine:
        return wandering(node, self.neighbors[node], self.counts)

    def greet(self, node: int, neighbor: int) -> None:
        """The neighbor learns how far we may fall back."""
        self.engines[neighbor].keep_for(SLOTS * self.every[node])

    def advance(self, node: int) -> bool:
        engine = self.engines[node]
        if not engine.ready or (engine.between_rounds and engine.rounds == len(self.counts)):
            return False
        outgoing = engine.advance()
        if isinstance(outgoing, RoundEnded):
            self.check(outgoing.record)
            if engine.rounds % self.every[node] == 0:
                self.save(node)
        else:
            for j in engine.barrier.neighbors:
                self.flying.append(((node, j), outgoing.raw_for(j)))
        return True

    def check(self, record: Record) -> None:
        """A round that is made again has the same record."""
        record = replace(record, compute=0.0, wait=0.0)
        assert self.records[record.node].setdefault(record.k, record) == record

    def save(self, node: int) -> None:
        self.slots[node].append(freeze(self.engines[node], owner_of(node)))

    def recall(self, node: int) -> None:
        """A new process in the place of the old one."""
        engine = self.engines[node] = self.fresh(node)
        if self.slots[node]:
            thaw(self.slots[node][-1], owner_of(node), self.codec).into(engine)
        for j in self.neighbors[node]:
            self.greet(j, node)
            self.greet(node, j)

    def deliver(self, edge: Edge, raw: bytes) -> None:
        sender, receiver = edge
        frame = self.codec.decode(raw, f"neighbor {sender}")
        assert isinstance(frame, Delta | Skip)
        with suppress(RemoteProtocolError):  # too far ahead of one that has fallen back: dropped
            self.engines[receiver].deliver(sender, frame)

    def resend(self, sender: int, receiver: int) -> None:
        """What the receiver asks for (`Need`), it gets: nobody ever asks for what is gone."""
        need = self.engines[receiver].seq
        for outgoing in self.engines[sender].frames_from(need):
            self.flying.append(((sender, receiver), outgoing.raw_for(receiver)))

    @rule(pick=st.integers(0, 3), times=st.integers(1, 6))
    def a_node_computes(self, pick: int, times: int) -> None:
        for _ in range(times):
            self.advance(pick % len(self.engines))

    @precondition(lambda self: self.flying)
    @rule(pick=st.integers(0, 10**6), stays=st.booleans())
    def a_frame_arrives(self, pick: int, stays: bool) -> None:
        at = pick % len(self.flying)
        self.deliver(*(self.flying[at] if stays else self.flying.pop(at)))

    @rule(times=st.integers(1, 10))
    def all_goes_well(self, times: int) -> None:
        for _ in range(times):
            self.calm()

    @rule(picks=st.sets(st.integers(0, 3), min_size=1), rot=st.sets(st.integers(0, 3)))
    def nodes_crash(self, picks: set[int], rot: set[int]) -> None:
        """Any number of them at once; frames on their way may still arrive."""
        nodes = {pick % len(self.engines) for pick in picks}
        for node in nodes:
            if node in rot and len(self.slots[node]) == SLOTS:
                self.slots[node].pop()  # the newer one is unreadable
            self.recall(node)

    @rule(pick=st.integers(0, 10**6))
    def a_link_breaks(self, pick: int) -> None:
        lost = {self.edges[pick % len(self.edges)], self.edges[pick % len(self.edges)][::-1]}
        self.flying = [each for each in self.flying if each[0] not in lost]

    @rule(pick=st.integers(0, 10**6))
    def a_node_asks(self, pick: int) -> None:
        self.resend(*self.edges[pick % len(self.edges)])

    def calm(self) -> bool:
        """Everybody computes, everything arrives, and who waits asks; False when all is over."""
        moved = sum(self.advance(engine.node) for engine in self.engines) > 0
        while self.flying:
            moved = True
            self.deliver(*self.flying.pop(0))
        for engine in self.engines:
            if not engine.between_rounds:
                for j in engine.barrier.missing():
                    self.resend(j, engine.node)
        return moved or bool(self.flying)

    def teardown(self) -> None:
        if not hasattr(self, "engines"):
            return
        while self.calm():
            pass
        rounds = [engine.rounds for engine in self.engines]
        if rounds != [len(self.counts)] * len(rounds):
            raise Stuck(f"nodes ended at rounds {rounds} of {len(self.counts)}")
        for engine, expected in zip(self.engines, self.expected, strict=True):
            assert engine.method.theta.tobytes() == expected


Crashing.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestCrashing = Crashing.TestCase


class WithoutReplay(Crashing):
    """Nobody answers who asks."""

    def resend(self, sender: int, receiver: int) -> None:
        pass


class WithoutSavedFrames(Crashing):
    """Checkpoints without the frames that were sent before them."""

    def recall(self, node: int) -> None:
        super().recall(node)
        self.engines[node]._kept.clear()

    def resend(self, sender: int, receiver: int) -> None:
        with suppress(RemoteProtocolError):
            super().resend(sender, receiver)


class KeepingTwoFrames(Crashing):
    """Neighbors keep what a broken connection asks for, not what a crash does."""

    def greet(self, node: int, neighbor: int) -> None:
        pass


class KeepingForOneSlot(Crashing):
    """As if the newer checkpoint were always readable."""

    def greet(self, node: int, neighbor: int) -> None:
        self.engines[neighbor].keep_for(self.every[node])


class SavingTooLate(Crashing):
    """A round is saved once the next one has begun: its draw would be made twice."""

    def save(self, node: int) -> None:
        method = self.engines[node].method
        assert isinstance(method, Wanderer)
        before = method.rng.bit_generator.state
        method.rng.random()
        super().save(node)
        method.rng.bit_generator.state = before


@pytest.mark.parametrize(
    ("machine", "error"),
    [
        (WithoutReplay, Stuck),
        (WithoutSavedFrames, Stuck),
        (KeepingTwoFrames, RemoteProtocolError),
        (KeepingForOneSlot, RemoteProtocolError),
        (SavingTooLate, AssertionError),
    ],
)
def test_the_machine_notices_what_is_missing(
    machine: type[Crashing], error: type[Exception]
) -> None:
    search = settings(
        max_examples=400,
        stateful_step_count=30,
        deadline=None,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        print_blob=False,
    )
    with pytest.raises(error):
        run_state_machine_as_test(machine, settings=search)
