"""Records are written once, also by a process that comes back after a crash."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dlag_node.errors import StorageError
from dlag_node.rounds import Record
from dlag_node.rounds.recorder import Recorder

DIM = 3


def write(recorder: Recorder, *rounds: int) -> None:
    for k in rounds:
        record = Record(2, k, "D", 1, 0, 24, 29, 5, 0.5, 0, 0.0, 0.0)
        recorder.write(record, np.full(DIM, float(k)))


def found(folder: Path) -> tuple[list[int], list[float]]:
    lines = (folder / "node-002.jsonl").read_text(encoding="ascii").splitlines()
    thetas = np.frombuffer((folder / "node-002.theta").read_bytes(), "<f8").reshape(-1, DIM)
    return [Record.from_json(line).k for line in lines], thetas[:, 0].tolist()


@pytest.mark.parametrize("torn", [b"", b'{"node":2,"k"'])
def test_what_was_written_beyond_the_checkpoint_is_cut_off(torn: bytes, tmp_path: Path) -> None:
    with Recorder(tmp_path, 2) as recorder:
        write(recorder, 0, 1, 2, 3)
        recorder.flush(durable=True)
        assert found(tmp_path)[0] == [0, 1, 2, 3]
    for name in ("node-002.jsonl", "node-002.theta"):
        with (tmp_path / name).open("ab") as file:
            file.write(torn)
    with Recorder(tmp_path, 2, rounds=3, dim=DIM) as recorder:
        write(recorder, 3, 4)
    assert found(tmp_path) == ([0, 1, 2, 3, 4], [0.0, 1.0, 2.0, 3.0, 4.0])


def test_nothing_is_left_of_an_earlier_run(tmp_path: Path) -> None:
    for _ in range(2):
        with Recorder(tmp_path, 2) as recorder:
            write(recorder, 0, 1)
    assert found(tmp_path) == ([0, 1], [0.0, 1.0])


@pytest.mark.parametrize("name", ["node-002.jsonl", "node-002.theta"])
def test_records_that_end_too_early_are_named(name: str, tmp_path: Path) -> None:
    with Recorder(tmp_path, 2) as recorder:
        write(recorder, 0, 1, 2)
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageError, match=f"{name} ends before round 3"):
        Recorder(tmp_path, 2, rounds=3, dim=DIM)
