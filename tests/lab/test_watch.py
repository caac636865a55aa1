"""The pictures of a mesh: from what nodes publish, and from a run folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dlag_lab.cli import app
from dlag_lab.folder import RunFolder
from dlag_lab.watch.following import Following
from dlag_lab.watch.gathering import Gathering
from dlag_lab.watch.replay import Replay
from dlag_lab.watch.series import Series
from dlag_node.process import run_command
from dlag_node.rounds.tally import Tally
from dlag_node.wire.watching import Fault, Near, Status, Sums
from tests.cluster.meshes import finish

NOTHING = Sums(0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0)


def status(node: int, near: tuple[Near, ...], **changes: object) -> Status:
    plain = Status("run-a", node, 0, 0, False, 0, None, NOTHING, near, 0, ())
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_a_mesh_is_pieced_together_from_its_nodes_words() -> None:
    gathering = Gathering()
    assert gathering.picture(0.0) is None
    gathering.take(status(0, (Near(1, 0, 0, 0.0),)), 0.0)
    sums = replace(NOTHING, deltas=5, tokens=1, quiet=6)
    near = (Near(1, 5, 1, 0.5),)
    gathering.take(status(2, near, rounds=4, residual=0.25, age=3, sums=sums), 1.0)
    gathering.take(status(1, (Near(0, 2, 0, 0.0), Near(2, 7, 3, 1.5)), rounds=5), 1.0)
    assert gathering.mesh is not None
    assert (gathering.mesh.nodes, gathering.mesh.edges) == (3, [(0, 1), (1, 2)])
    picture = gathering.picture(3.0)
    assert picture is not None
    assert (picture.k, picture.round) == (0, [0, 5, 4])
    assert picture.told == [[0, 2], [7, 5]]
    assert picture.waited == [[0.0, 0.0], [1.5, 0.5]]
    assert picture.tokened == [[0, 0], [3, 1]]
    assert (picture.deltas, picture.tokens, picture.quiet) == (5, 1, 6)
    assert picture.unheard == [3.0, 2.0, 2.0]
    assert (picture.residual, picture.age) == ([None, None, 0.25], [0, 0, 3])


def test_sums_of_a_node_that_came_back_go_on() -> None:
    gathering = Gathering()
    before = status(0, (Near(1, 9, 0, 2.0),), rounds=9, sums=replace(NOTHING, deltas=9))
    after = status(
        0, (Near(1, 1, 0, 0.5),), rounds=8, restarts=1, sums=replace(NOTHING, deltas=1), faults=1,
        latest=(Fault(5.0, 7, 1, "back at round 7"),),
    )  # fmt: skip
    for each in (before, after, before):  # words of a dead process may come late
        gathering.take(each, 0.0)
    picture = gathering.picture(0.0)
    assert picture is not None
    assert (picture.deltas, picture.told[0][0], picture.waited[0][0]) == (10, 10, 2.5)
    assert (picture.round[0], picture.restarts[0]) == (8, 1)
    assert [(node, fault.text) for node, fault in gathering.faults] == [(0, "back at round 7")]


def test_each_fault_is_listed_once_however_often_it_is_told() -> None:
    gathering = Gathering()
    faults = tuple(Fault(float(i), i, 0, f"fault {i}") for i in range(12))
    for told in (3, 3, 5, 12):
        gathering.take(status(0, (), faults=told, latest=faults[max(0, told - 8) : told]), 0.0)
    assert [fault.text for _, fault in gathering.faults] == [f"fault {i}" for i in range(12)]


def test_another_run_is_shown_only_when_this_one_is_silent() -> None:
    gathering = Gathering()
    gathering.take(status(0, (Near(1, 0, 0, 0.0),), rounds=3), 0.0)
    other = status(0, (), run="run-b", rounds=1)
    gathering.take(other, 1.0)
    picture = gathering.picture(1.0)
    assert picture is not None
    assert picture.round == [3, 0]
    gathering.take(other, 20.0)
    picture = gathering.picture(20.0)
    assert picture is not None
    assert picture.round == [1]


@pytest.fixture(scope="module", params=["dlag", "tree"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    out: Path = tmp_path_factory.mktemp("watch") / request.param
    finish("simulate", out, method=request.param, topology="grid:2x3", rounds=15)
    faults = [{"at": 2.0, "rounds": 6, "life": 1, "text": "back at round 5"}]
    (out / "nodes" / "node-002.faults.jsonl").write_text("".join(map(json.dumps, faults)) + "\n")
    return RunFolder(out)


def both(edges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [*edges, *((j, i) for i, j in edges)]


def test_a_replay_shows_the_sums_that_the_nodes_would_have_published(folder: RunFolder) -> None:
    replay = Replay(folder)
    assert replay.mesh.rounds == 15
    near = [[j for i, j in both(replay.mesh.edges) if i == node] for node in range(6)]
    tallies = [Tally(sorted(neighbors)) for neighbors in near]
    records = [folder.records(node) for node in range(6)]
    for k in range(16):
        picture = replay.picture(k)
        assert picture.k == k
        assert picture.exchanges == [tally.exchanges for tally in tallies]
        assert picture.deltas == sum(tally.deltas for tally in tallies)
        assert picture.sent_bytes == sum(tally.sent_bytes for tally in tallies)
        for (i, j), (there, back) in zip(replay.mesh.edges, picture.told, strict=True):
            assert there == tallies[i].told[tallies[i].neighbors.index(j)]
            assert back == tallies[j].told[tallies[j].neighbors.index(i)]
        for (i, j), (there, back) in zip(replay.mesh.edges, picture.tokened, strict=True):
            assert there == tallies[i].tokens_to[tallies[i].neighbors.index(j)]
            assert back == tallies[j].tokens_to[tallies[j].neighbors.index(i)]
        assert picture.tokens == sum(tally.tokens for tally in tallies)
        assert picture.quiet == sum(tally.quiet for tally in tallies)
        assert picture.age == [tally.age for tally in tallies]
        assert picture.residual == [tally.residual for tally in tallies]
        assert picture.restarts[2] == (1 if k >= 6 else 0)
        for node, tally in enumerate(tallies):
            if k < 15:
                tally.take(records[node][k])
    curves = replay.curves()
    assert [k for k, _ in curves["gap"]] == list(range(1, 16))
    assert curves["costs"][-1][1:3] == [picture.deltas, picture.tokens + picture.quiet]
    json.dumps([picture.to_json(), curves, replay.mesh.to_json()], allow_nan=False)


def test_a_trajectory_is_followed_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.jsonl"
    following = Following(path)
    following.look()  # not there yet
    lines = [json.dumps({"k": k, "suboptimality": 1 / (k + 1)}) + "\n" for k in range(3)]
    path.write_text(lines[0] + lines[1][:9])
    following.look()
    assert following.gap.after(0) == [[1, 1.0]]
    path.write_text("".join(lines))
    following.look()
    assert following.gap.after(1) == [[2, 0.5], [3, 1 / 3]]


def test_a_long_series_takes_a_bounded_place_and_keeps_its_ends() -> None:
    series = Series()
    for k in range(50_000):
        series.add(k, [float(k)])
        series.add(k, [0.0])  # no news
    points = series.after(-1)
    assert len(points) <= 2_000
    assert points[0] == [0, 0.0]
    assert points[-1] == [49_999, 49_999.0]
    assert series.after(49_990) == [[k, float(k)] for k in range(49_991, 50_000)]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["watch"], "expected a run folder, or --listen"),
        (["watch", "/nowhere"], "/nowhere/run.json is missing"),
        (["watch", "--listen", "nonsense"], "'nonsense': expected tcp://host:port"),
        (["watch", "--listen", "tcp://0.0.0.0:5556"], "tcp://0.0.0.0:5556 is not on loopback"),
        (["run", "--watch", "8800"], "'8800': expected host:port"),
    ],
)
@pytest.mark.usefixtures("process_as_before")
def test_what_cannot_be_watched_is_an_error_with_its_reason(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(app, argv, "dlag") == 2
    assert words in capsys.readouterr().err
