"""Stopping in engines: coming to rest, the words on the frames, and crashes on the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dlag_node.methods import METHODS
from dlag_node.rounds import Engine, Outgoing, RoundEnded
from dlag_node.rounds.stopping import REST_ROUNDS, Stillness, Stopping
from dlag_node.wire.codec import Codec
from dlag_node.wire.frames import Skip
from tests.methods.plans import simulate, small_plan
from tests.rounds.crashes import DIM
from tests.rounds.scripts import Scripted


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


@pytest.mark.parametrize("edges", [1, 3])
@pytest.mark.parametrize("topology", ["path:2", "path:4", "star:4"])
def test_only_meetings_of_all_count_where_few_speak(
    topology: str, edges: int, tmp_path: Path
) -> None:
    """One with few neighbors has heard all of them long before the others have."""
    plan = small_plan(tmp_path, f"adfs:edges={edges}", topology=topology, tol=0.3)
    run = simulate(plan, rounds=2_000)
    shuffled = simulate(plan, rounds=2_000, shuffle=5)
    assert len({engine.rounds for engine in run.engines + shuffled.engines}) == 1
    assert {engine.stopping.agreement.why for engine in run.engines} == {"tol"}
    assert np.array_equal(run.Theta, shuffled.Theta)
