"""Stopping in engines: coming to rest, the words on the frames, and crashes on the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from dlag_node.methods import METHODS
from dlag_node.rounds import Engine, Outgoing, Record, RoundEnded
from dlag_node.rounds.stopping import REST_ROUNDS, Stillness, Stopping
from dlag_node.wire.codec import Codec
from dlag_node.wire.frames import Skip
from tests.methods.plans import simulate, small_plan
from tests.rounds.crashes import DIM, Wanderer
from tests.rounds.scripts import Scripted
from tests.rounds.test_adversary import run_in_order
from tests.rounds.test_crashes import Crashing, Stuck


def rests(tol: float, thetas: list[list[float]]) -> list[bool]:
    still = Stillness(tol)
    return [still.look(np.array(theta)) for theta in thetas]


def test_a_theta_that_stays_in_its_ball_for_ten_rounds_is_at_rest() -> None:
    assert rests(1e-3, [[1.0]] * 12) == [False] * REST_ROUNDS + [True] * 2
    assert rests(1e-3, [[1.0], *[[1.0009]] * 11])[-2:] == [True, True]
    assert rests(1e-3, [[1.0], *[[1.0011]] * 10]) == [False] * 11


def test_a_slow_drift_is_no_rest() -> None:
    """Each step is a tenth of tol: the ball is left within the ten rounds."""
    drift = [[5.0 + 0.0006 * k] for k in range(200)]
    assert not any(rests(1e-3, drift))
    assert any(rests(1e-2, drift))


def test_the_ball_is_relative_to_a_theta_above_1_only() -> None:
    jumps = [[100.0 + 0.09 * (k % 2)] for k in range(12)]
    assert rests(1e-3, jumps)[-1]
    assert not rests(1e-3, [[x[0] - 100.0] for x in jumps])[-1]


def test_who_moves_again_begins_anew() -> None:
    thetas = [[0.0]] * 11 + [[1.0]] + [[0.0]] * 11
    assert rests(1e-3, thetas)[10] is True
    assert not any(rests(1e-3, thetas)[11:22])
    assert rests(1e-3, thetas)[22] is True


def engine_of(script: list[list[float | None]], tol: float | None) -> Engine:
    return Engine(
        Scripted(script), node=0, neighbors=(1,), codec=Codec(DIM), stopping=Stopping(3, tol)
    )


def test_the_word_is_on_the_first_frame_of_a_round_and_costs_nothing_while_there_is_none() -> None:
    """A Scripted theta never moves: at rest from round 11 on, the count is told from 12 on."""
    plain, watched = (engine_of([[None, 1.0]] * 14, tol) for tol in (None, 1e-6))
    for k in range(14):
        for engine in (plain, watched):
            first = engine.advance()
            assert isinstance(first, Outgoing)
            word = first.frame.word
            assert word == (0 if engine is plain or k <= REST_ROUNDS else 1)
            assert len(first.raw) == 3 + (1 if word else 0)
            engine.deliver(1, Skip(engine.seq))
            second = engine.advance()
            assert isinstance(second, Outgoing)
            assert (second.frame.word, len(second.raw)) == (0, 5 + 8 * DIM)
            engine.deliver(1, Skip(engine.seq))
            assert isinstance(engine.advance(), RoundEnded)
    # the neighbor tells nothing, so that the count stays at 1
    assert watched.last_record is not None
    assert plain.last_record is not None
    assert watched.last_record.sent_bytes == plain.last_record.sent_bytes + 1


EASY = {"fgm": "fgm:eps=1e-5,solver=newton"}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_stops_in_one_round_whatever_the_order_of_events(
    name: str, tmp_path: Path
) -> None:
    """With a tol that a few rounds satisfy; also with frames for some neighbors only."""
    plan = small_plan(tmp_path, EASY.get(name, name), topology="ring:5", tol=0.3)
    run = simulate(plan, rounds=4_000)
    shuffled = simulate(plan, rounds=4_000, shuffle=5)
    rounds = {engine.rounds for engine in run.engines + shuffled.engines}
    assert len(rounds) == 1
    assert REST_ROUNDS + 2 * plan.graph.diameter() < rounds.pop() < 4_000
    assert {e.stopping.agreement.why for e in run.engines} == {"tol"}
    assert np.array_equal(run.Theta, shuffled.Theta)
    assert run.timeless == shuffled.timeless


class StoppingCrashes(Crashing):
    """Nodes are asked to stop, and crash: all that came through stop after the same round.

    As in `net.mesh`, a node announces nothing in frames that a neighbor may have already, and saves
    what it announces in both slots.
    """

    def fresh(self, node: int) -> Engine:
        if not hasattr(self, "diameter"):
            graph = nx.Graph([(i, j) for i, js in enumerate(self.neighbors) for j in js])
            self.diameter = nx.diameter(graph)
            self.wishes: set[int] = set()
            self.news_from = [0] * len(self.neighbors)
            self.history = self.reference()
        return self.engine(node)

    def engine(self, node: int) -> Engine:
        method = Wanderer(node, self.neighbors[node], self.counts)
        return Engine(
            method,
            node=node,
            neighbors=self.neighbors[node],
            codec=Codec(DIM),
            stopping=Stopping(self.diameter),
        )

    def reference(self) -> list[list[bytes]]:
        """Everybody's theta after each round, without stop or crash."""
        engines = [self.engine(i) for i in range(len(self.neighbors))]
        history = []
        for k in range(len(self.counts) + 1):
            run_in_order(engines, k)
            history.append([engine.method.theta.tobytes() for engine in engines])
        return history

    @rule(pick=st.integers(0, 3))
    def a_node_is_asked_to_stop(self, pick: int) -> None:
        self.wishes.add(pick % len(self.engines))

    def advance(self, node: int) -> bool:
        engine = self.engines[node]
        agreement = engine.stopping.agreement
        if engine.between_rounds and agreement.over:
            return False
        rounds = engine.rounds
        moved = super().advance(node)
        if engine.rounds > rounds and node in self.wishes and not agreement.known:
            self.announce(node)
        return moved

    def check(self, record: Record) -> None:
        super().check(replace(record, sent_bytes=0))  # a round may be made again with other words

    def announce(self, node: int) -> None:
        engine = self.engines[node]
        if engine.seq >= self.news_from[node]:
            engine.stopping.agreement.announce("asked")
            self.save(node)
            self.save(node)

    def recall(self, node: int) -> None:
        self.wishes.discard(node)
        self.news_from[node] = 0
        super().recall(node)

    def greet(self, node: int, neighbor: int) -> None:
        super().greet(node, neighbor)
        news_from = self.engines[node].seq + 2
        self.news_from[neighbor] = max(self.news_from[neighbor], news_from)

    def teardown(self) -> None:
        if not hasattr(self, "engines"):
            return
        while self.calm():
            pass
        rounds = {engine.rounds for engine in self.engines}
        if len(rounds) > 1:
            raise Stuck(f"nodes ended at rounds {[engine.rounds for engine in self.engines]}")
        last = rounds.pop()
        agreed = {engine.stopping.agreement.over for engine in self.engines}
        assert len(agreed) == 1
        assert agreed.pop() or last == len(self.counts)
        assert [engine.method.theta.tobytes() for engine in self.engines] == self.history[last]


StoppingCrashes.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestStoppingCrashes = StoppingCrashes.TestCase


class AnnouncingAgain(StoppingCrashes):
    """A node that makes rounds again announces in them: who has those frames does not hear it."""

    def greet(self, node: int, neighbor: int) -> None:
        super().greet(node, neighbor)
        self.news_from[neighbor] = 0


class Forgetful(StoppingCrashes):
    """What was announced is not saved."""

    def save(self, node: int) -> None:
        agreement = self.engines[node].stopping.agreement
        if not (agreement.known and node in self.wishes):
            super().save(node)


def crash_and_request(machine: StoppingCrashes, *, asked_before: bool) -> None:
    """Node 0 is asked, tells node 1 and crashes; or it crashes, and is asked when it is back."""
    machine.build(nodes=2, extra=[], counts=[1] * 6, every=[6] * 4)
    if asked_before:
        machine.a_node_is_asked_to_stop(pick=0)
    machine.all_goes_well(times=8)
    machine.nodes_crash(picks={0}, rot=set())
    machine.a_node_is_asked_to_stop(pick=0)
    machine.teardown()


@pytest.mark.parametrize("asked_before", [True, False])
def test_a_crash_around_a_request_leaves_nobody_behind(asked_before: bool) -> None:
    crash_and_request(StoppingCrashes(), asked_before=asked_before)


@pytest.mark.parametrize(("machine", "before"), [(AnnouncingAgain, False), (Forgetful, True)])
def test_the_machine_notices_what_is_missing(machine: type[StoppingCrashes], before: bool) -> None:
    with pytest.raises(AssertionError):
        crash_and_request(machine(), asked_before=before)
