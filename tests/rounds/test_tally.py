"""Sums over records, and who was waited for."""

from __future__ import annotations

from dataclasses import replace
from operator import add
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from dlag_lab.folder import RunFolder
from dlag_node.methods.flow import EVERYBODY_SPEAKS, Exchange, Flow, RoundReport
from dlag_node.rounds import Engine, RoundEnded
from dlag_node.rounds.ledger import Ledger
from dlag_node.rounds.record import QUIET, SENT, SKIPPED, Record
from dlag_node.rounds.tally import Tally
from dlag_node.wire.codec import Codec
from dlag_node.wire.frames import Delta, Skip
from tests.cluster.meshes import finish


@pytest.fixture(scope="module", params=["dlag", "tree", "adfs"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out: Path = tmp_path_factory.mktemp(request.param) / "run"
    finish("simulate", out, method=request.param, topology="grid:2x3", rounds=12)
    return out


def test_deltas_to_each_neighbor_add_up_to_the_rounds_deltas(run: Path) -> None:
    folder = RunFolder(run)
    edges = {(i, j) for edge in folder.load().edges for i, j in (edge, edge[::-1])}
    quiet = 0
    for node in range(6):
        neighbors = sorted(j for i, j in edges if i == node)
        tally = Tally(neighbors)
        records = folder.records(node)
        for record in records:
            if record.told is not None:
                assert len(record.told) == len(neighbors)
                assert sum(record.told) == record.deltas
                assert all(0 <= each <= record.exchanges.count(SENT) for each in record.told)
            tally.take(record)
        assert sum(tally.told) == tally.deltas == sum(each.deltas for each in records)
        assert [*map(add, tally.told, tally.withheld)] == [tally.exchanges] * len(neighbors)
        assert sum(tally.tokens_to) == tally.tokens == sum(each.skips for each in records)
        assert sum(tally.quiet_to) == tally.quiet == sum(each.quiet for each in records)
        assert sum(tally.withheld) == tally.tokens + tally.quiet
        quiet += tally.quiet
        assert tally.sent_bytes == sum(each.sent_bytes for each in records)
        assert tally.residual == records[-1].step
        assert tally.age == records[-1].age
    assert (quiet > 0) == (folder.load().method in ("tree", "adfs"))


def test_a_tree_tells_its_own_edges_only(tmp_path: Path) -> None:
    finish("simulate", tmp_path / "run", method="tree", topology="complete:4", rounds=5)
    crossed = set()
    for node in range(4):
        for record in RunFolder(tmp_path / "run").records(node):
            others = [j for j in range(4) if j != node]
            told = record.told or [record.exchanges.count(SENT)] * 3
            crossed |= {
                frozenset((node, j)) for j, deltas in zip(others, told, strict=True) if deltas
            }
    assert len(crossed) == 3  # n - 1 edges, of 6


def test_a_record_without_waits_is_written_as_before() -> None:
    plain = Record(2, 0, "D", 1, 0, 24, 29, 5, 0.5, 0, 0.0, 0.0)
    assert "told" not in plain.to_json()
    assert "waits" not in plain.to_json()
    watched = Record(2, 0, "D", 1, 1, 24, 29, 5, 0.5, 0, 0.0, 0.0, [1, 0], {7: 0.25})
    assert Record.from_json(watched.to_json()) == watched


def test_a_record_says_nothing_of_what_there_was_not() -> None:
    plain = Record(2, 0, "D", 1, 0, 24, 29, 5, 0.5, 0, 0.0, 0.0)
    for field in ("quiet", "overdue", "gap", "bound", "tokens"):
        assert field not in plain.to_json()
    lazy = replace(plain, exchanges="q", deltas=0, quiet=1, overdue=1, gap=0.0, bound=2.5)
    assert '"quiet":1,"overdue":1,"gap":0.0,"bound":2.5' in lazy.to_json()
    for each in (plain, lazy, replace(plain, tokens=[0, 1])):
        assert Record.from_json(each.to_json()) == each


# deltas, tokens and quiet of three neighbors, by whichever fields a record has
KINDS = [
    (Record(0, 0, "DsqD", 6, 3, 0, 0, 0, 0.0, 0, 0.0, 0.0, quiet=3),
     ([2, 2, 2], [1, 1, 1], [1, 1, 1])),
    # a delta for one of them, and nothing for the others; then a token for all
    (Record(0, 0, "Ds", 1, 3, 0, 0, 0, 0.0, 0, 0.0, 0.0, [0, 1, 0], quiet=2),
     ([0, 1, 0], [1, 1, 1], [1, 0, 1])),
    # as it was when who got no delta got a token
    (Record(0, 0, "Ds", 1, 5, 0, 0, 0, 0.0, 0, 0.0, 0.0, [0, 1, 0]),
     ([0, 1, 0], [2, 1, 2], [0, 0, 0])),
    # a token for some
    (Record(0, 0, "sD", 3, 1, 0, 0, 0, 0.0, 0, 0.0, 0.0, quiet=2, tokens=[1, 0, 0]),
     ([1, 1, 1], [1, 0, 0], [0, 1, 1])),
]  # fmt: skip


@pytest.mark.parametrize(("record", "kinds"), KINDS)
def test_every_neighbor_gets_a_delta_a_token_or_nothing(
    record: Record, kinds: tuple[list[int], list[int], list[int]]
) -> None:
    assert record.by_neighbor(3) == kinds
    assert [*map(sum, kinds)] == [record.deltas, record.skips, record.quiet]
    tally = Tally([1, 4, 7])
    for _ in range(2):
        tally.take(record)
    assert (tally.told, tally.tokens_to, tally.quiet_to) == tuple(
        [2 * each for each in counts] for counts in kinds
    )
    assert tally.withheld == [2 * len(record.exchanges) - told for told in tally.told]
    assert (tally.deltas, tally.tokens, tally.quiet) == tuple(2 * sum(each) for each in kinds)


def test_a_ledger_tells_who_got_which_kind() -> None:
    ledger = Ledger(0, [1, 4, 7])
    vector = np.zeros(2)
    vector.flags.writeable = False
    ledger.count(Delta(0, vector), b"12345", frozenset({1, 4}))
    ledger.count(Skip(1), b"12", frozenset({4}))
    ledger.count(Skip(2), b"12", None)
    ledger.count_silence()
    record = ledger.close(0, RoundReport(gradients=0, step=0.0, age=0, overdue=1))
    assert (record.exchanges, record.deltas, record.skips, record.quiet) == ("Dssq", 2, 4, 6)
    assert record.by_neighbor(3) == ([1, 1, 0], [1, 2, 1], [2, 1, 3])
    assert (record.sent_bytes, record.overdue) == (5 * 2 + 2 * 4, 1)
    ledger.count(Skip(4), b"12", None)
    plain = ledger.close(1, RoundReport(gradients=0, step=0.0, age=0))
    assert (plain.told, plain.tokens, plain.quiet) == (None, None, 0)


def test_the_letters_are_those_of_the_protocol() -> None:
    assert (SENT, SKIPPED, QUIET) == ("D", "s", "q")


def test_what_an_older_record_says_of_waiting_is_left_out() -> None:
    watched = Record(2, 0, "D", 1, 1, 24, 29, 5, 0.5, 0, 0.0, 0.0, [1, 0], {7: 0.25})
    older = watched.to_json().replace('{"7":0.25}', "[0.0,0.25]")
    assert older != watched.to_json()
    assert Record.from_json(older) == replace(watched, waits=None)


class Silent:
    """One silent exchange a round."""

    theta = np.zeros(2)
    width = 2
    parameters: ClassVar[dict[str, float | int | str]] = {}
    advice = ""
    schedule = EVERYBODY_SPEAKS
    STATE = ()

    def round(self) -> Flow[RoundReport]:
        yield Exchange(None)
        return RoundReport(gradients=0, step=0.0, age=0)


def test_waiting_is_counted_for_whoever_came_last() -> None:
    now = [0.0]
    engine = Engine(Silent(), node=0, neighbors=[1, 2, 5], codec=Codec(2), clock=lambda: now[0])
    engine.waits = {1: 0.0, 2: 0.0, 5: 0.0}
    engine.advance()
    now[0] = 1.0
    assert engine.deliver(5, Skip(0))
    assert engine.deliver(5, Skip(1))  # one ahead: it will not be waited for
    now[0] = 3.0
    assert engine.deliver(2, Skip(0))
    now[0] = 4.0
    assert engine.deliver(1, Skip(0))
    assert not engine.deliver(5, Skip(0))  # a repeat does not make it the last
    assert isinstance(engine.advance(), RoundEnded)
    assert engine.waits == {1: 4.0, 2: 0.0, 5: 0.0}
    engine.advance()
    now[0] = 4.5
    assert engine.deliver(1, Skip(1))
    assert engine.deliver(2, Skip(1))
    assert isinstance(engine.advance(), RoundEnded)
    assert engine.waits == {1: 4.0, 2: 0.5, 5: 0.0}
    assert engine.last_record is not None
    assert engine.last_record.wait == 0.5
