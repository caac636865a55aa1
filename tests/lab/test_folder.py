"""The run folder: round trip, interrupted runs, damage, and what --force may remove."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dlag_lab.folder import RunFolder, write_json
from dlag_node.errors import ConfigError
from tests.lab.synthetic import DIM, asked, period, write_run


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return write_run(tmp_path / "run", rounds=12)


def test_what_was_written_comes_back(folder: RunFolder) -> None:
    result = folder.load()
    assert result.run == asked()
    assert result.records.shape == (12, 16)
    assert result.path == folder.path
    for i in range(16):
        expected = ["D" if k % period(i) == 0 else "s" for k in range(12)]
        assert result.records.exchanges[:, i].tolist() == expected
    np.testing.assert_array_equal(result.records.deltas[0], result.degrees)
    assert result.records.age[3].tolist() == [3 % period(i) for i in range(16)]
    assert result.trajectory.suboptimality[0] == 0.4
    assert result.summary == {}
    assert not result.records.deltas.flags.writeable


def test_theta_snapshots_come_back_without_a_torn_row(folder: RunFolder) -> None:
    whole = folder.thetas(3, DIM)
    assert whole.shape == (12, DIM)
    np.testing.assert_array_equal(whole[1], np.arange(DIM, 2 * DIM) + 3)
    path = folder.theta_path(3)
    path.write_bytes(path.read_bytes()[:-3])
    np.testing.assert_array_equal(folder.thetas(3, DIM), whole[:-1])
    path.write_bytes(b"")
    assert folder.thetas(3, DIM).shape == (0, DIM)


def test_numbers_that_are_not_finite_survive_as_valid_json(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", rounds=3, suboptimality=lambda k: [0.1, math.nan, 9.0][k])
    assert "NaN" not in folder.trajectory_path.read_text()
    loaded = folder.load().trajectory.suboptimality
    assert loaded[0] == 0.1
    assert math.isnan(loaded[1])
    write_json(
        tmp_path / "x.json", {"a": np.float64("inf"), "b": np.arange(2), "c": (1, Path("p"))}
    )
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": None, "b": [0, 1], "c": [1, "p"]}
    assert [file.name for file in tmp_path.glob("*.tmp")] == []


@pytest.mark.parametrize("cut", [1, 40, 200])
def test_an_interrupted_run_is_cut_to_the_last_round_all_completed(
    folder: RunFolder, cut: int
) -> None:
    path = folder.record_path(5)
    path.write_bytes(path.read_bytes()[:-cut])
    complete = path.read_text().rstrip("\n").split("\n")
    rounds = len(complete) - (not complete[-1].endswith("}"))
    result = folder.load()
    assert result.rounds == rounds == len(result.trajectory.suboptimality)
    assert rounds == 12 if cut == 1 else rounds < 12


def test_a_trajectory_that_lags_behind_cuts_the_run_too(folder: RunFolder) -> None:
    lines = folder.trajectory_path.read_text().splitlines(keepends=True)
    folder.trajectory_path.write_text("".join(lines[:7]) + '{"k":7,"subop')
    assert folder.load().rounds == 7


def edit(line: int, change: Callable[[str], str]) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        lines = path.read_text().splitlines(keepends=True)
        lines[line] = change(lines[line])
        path.write_text("".join(lines))

    return apply


def change(**fields: object) -> Callable[[Path], None]:
    return lambda path: write_json(path, asked(**fields))


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        ("run.json", Path.unlink, r"run\.json is missing"),
        ("run.json", lambda p: p.write_text("{"), r"run\.json: Expecting"),
        ("run.json", lambda p: p.write_text("[]"), r"run\.json: expected a JSON object"),
        ("run.json", lambda p: p.write_text("{}"), r"run\.json: no field 'method'"),
        ("run.json", change(nodes="16"), r"run\.json: nodes = '16': expected a count"),
        ("run.json", change(nodes=0), r"run\.json: nodes = 0: expected a count"),
        ("run.json", change(edges=[[0, 1], [3, 16]]), r"edge \[3, 16\]: expected two of the nodes"),
        ("run.json", change(edges="all"), r"edge 'all': expected two of the nodes 0 to 15"),
        ("run.json", change(parameters=None), r"run\.json: parameters = None"),
        ("run.json", change(target="low"), r"run\.json: target = 'low': expected a number"),
        ("summary.json", lambda p: p.write_text("{"), r"summary\.json: Expecting"),
        ("trajectory.jsonl", Path.unlink, r"trajectory\.jsonl is missing"),
        ("trajectory.jsonl", lambda p: p.write_text(""), "no round that every node completed"),
        ("trajectory.jsonl", edit(4, lambda _: "{}\n"), r"trajectory\.jsonl, line 5: 'k'"),
        ("trajectory.jsonl", edit(4, lambda _: ""), r"line 5: round 5: expected round 4"),
        ("nodes/node-007.jsonl", Path.unlink, r"node-007\.jsonl is missing"),
        ("nodes/node-007.jsonl", lambda p: p.write_text(""), "no round that every node completed"),
        ("nodes/node-007.jsonl", edit(2, lambda _: "\n"), r"node-007\.jsonl, line 3: Expecting"),
        ("nodes/node-007.jsonl", edit(2, lambda s: s[:30] + "\n"), r"node-007\.jsonl, line 3"),
        ("nodes/node-007.jsonl", edit(11, lambda s: s[:30] + "\n"), r"node-007\.jsonl, line 12"),
        (
            "nodes/node-007.jsonl",
            edit(2, lambda _: ""),
            "node 7, round 3: expected node 7, round 2",
        ),
        (
            "nodes/node-007.jsonl",
            edit(0, lambda s: s.replace('"node":7', '"node":8')),
            "line 1: node 8, round 0: expected node 7",
        ),
        (
            "nodes/node-007.jsonl",
            edit(0, lambda s: s.replace('"skips":0', '"skips":-3')),
            "line 1: skips = -3: expected a count",
        ),
        (
            "nodes/node-007.jsonl",
            edit(0, lambda s: s.replace('"step":1.0', '"step":"far"')),
            "line 1: step = 'far': expected a number",
        ),
        (
            "nodes/node-007.jsonl",
            edit(0, lambda s: s.replace('"D"', '"Dx"')),
            "line 1: exchanges = 'Dx': expected letters D, s, q",
        ),
        (
            "nodes/node-007.jsonl",
            edit(0, lambda s: s.replace('"age"', '"quiet":-1,"age"')),
            "line 1: quiet = -1: expected a count",
        ),
        (
            "nodes/node-007.jsonl",
            edit(0, lambda s: s.replace('"age"', '"gap":"wide","age"')),
            "line 1: gap = 'wide': expected a number, or nothing",
        ),
        (
            "nodes/node-007.jsonl",
            edit(0, lambda s: s.replace('"age"', '"years"')),
            "line 1: .*years",
        ),
    ],
)
def test_damage_is_an_error_that_names_file_and_line(
    folder: RunFolder, file: str, damage: Callable[[Path], object], message: str
) -> None:
    damage(folder.path / file)
    with pytest.raises(ConfigError, match=message):
        folder.load()


def test_a_folder_with_a_run_is_replaced_only_by_force(folder: RunFolder) -> None:
    with pytest.raises(ConfigError, match=f"{folder.path} already holds a run: pass --force"):
        RunFolder.create(folder.path, force=False)
    own = folder.path / "notes.txt"
    own.write_text("mine")
    other = folder.path / "nodes" / "mine.txt"
    other.write_text("mine too")
    RunFolder.create(folder.path, force=True)
    left = sorted(file for file in folder.path.rglob("*") if file.is_file())
    assert left == [other, own]


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_that_is_not_a_runs_is_never_cleared(tmp_path: Path, force: bool) -> None:
    (tmp_path / "report.txt").write_text("somebody's work")
    with pytest.raises(ConfigError, match="--force does not clear it"):
        RunFolder.create(tmp_path, force=force)
    assert (tmp_path / "report.txt").read_text() == "somebody's work"


@pytest.mark.parametrize("force", [False, True])
def test_new_and_empty_folders_need_no_force(tmp_path: Path, force: bool) -> None:
    assert RunFolder.create(tmp_path / "a" / "b", force=force).record_path(0).parent.is_dir()
    (tmp_path / "empty").mkdir()
    RunFolder.create(tmp_path / "empty", force=force)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="is a file"):
        RunFolder.create(tmp_path / "file", force=force)
