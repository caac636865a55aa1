"""Two slots on a disk that may be full, damaged or shared; and the state folder around them."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from coordinator.plan import Plan, RunSettings
from dlag_node.errors import CheckpointRefused, ConfigError, StorageError
from dlag_node.rounds.keeper import Keeper
from dlag_node.rounds.slots import Slots
from dlag_node.rounds.state_folder import Place, StateFolder
from dlag_node.wire.control import Report
from tests.rounds.crashes import owner_of, wandering
from tests.rounds.meshes import run_in_order


def take(body: bytes) -> bytes:
    if body.startswith(b"foreign"):
        raise CheckpointRefused("of another run")
    return body


def newest(folder: Path) -> bytes | None:
    return Slots(folder, durable=False).newest(take)


@pytest.mark.parametrize("durable", [False, True])
def test_the_newest_is_found_and_there_are_never_more_than_two_files(
    durable: bool, tmp_path: Path
) -> None:
    slots = Slots(tmp_path, durable=durable)
    assert slots.newest(take) is None
    for i in range(9):
        slots.save(b"x" * (20 - i) + bytes([i]))  # each one shorter than what it is written over
        assert newest(tmp_path) == b"x" * (20 - i) + bytes([i])
    slots.close()
    assert {path.name for path in tmp_path.iterdir()} == {"slot-0", "slot-1"}
    assert all(path.stat().st_size <= 28 + 21 for path in tmp_path.iterdir())


def test_a_new_process_writes_over_the_older_one(tmp_path: Path) -> None:
    for i in range(6):
        slots = Slots(tmp_path, durable=False)
        assert slots.newest(take) == (None if i == 0 else bytes([i - 1]))
        slots.save(bytes([i]))
        slots.close()


@pytest.mark.parametrize("damage", ["truncated", "flipped", "emptied", "foreign", "a folder"])
def test_an_older_one_is_used_where_the_newer_is_damaged(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    slots = Slots(tmp_path, durable=False)
    slots.save(b"older")
    slots.save(b"foreign" if damage == "foreign" else b"newer")
    path = tmp_path / "slot-1"
    raw = path.read_bytes()
    if damage == "truncated":
        os.truncate(path, len(raw) - 1)
    elif damage == "flipped":
        path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 4]))
    elif damage == "emptied":
        os.truncate(path, 0)
    elif damage == "a folder":
        path.unlink()
        path.mkdir()
    with caplog.at_level(logging.WARNING):
        again = Slots(tmp_path, durable=False)
        assert again.newest(take) == b"older"
    assert len(caplog.messages) == 1
    assert f"checkpoint {path} is not used: " in caplog.text
    if damage != "a folder":
        again.save(b"next")  # over the damaged one: the intact one stays
        assert newest(tmp_path) == b"next"
        os.truncate(path, 3)
        assert newest(tmp_path) == b"older"


def test_two_damaged_ones_are_an_error_and_one_alone_is_a_fresh_start(tmp_path: Path) -> None:
    slots = Slots(tmp_path, durable=False)
    slots.save(b"first")
    os.truncate(tmp_path / "slot-0", 30)
    assert newest(tmp_path) is None  # torn before there was another: nobody is far ahead yet
    slots.save(b"foreign")
    with pytest.raises(StorageError, match=r"slot-0: torn: 2 of 5 bytes.*slot-1: of another run"):
        newest(tmp_path)


def test_a_full_disk_is_an_error_and_keeps_the_one_before(tmp_path: Path) -> None:
    slots = Slots(tmp_path, durable=False)
    slots.save(b"safe")
    (tmp_path / "slot-1").symlink_to("/dev/full")
    words = "cannot write checkpoint .*slot-1: .*No space left on device; the one before it is kept"
    with pytest.raises(StorageError, match=words):
        slots.save(b"lost")
    (tmp_path / "slot-1").unlink()
    assert newest(tmp_path) == b"safe"


def place() -> Place:
    plan = Plan(RunSettings(topology="path:2"))
    enrol, shard = plan.enrolment(1)
    reports = [Report("tcp://127.0.0.1:1", 135, 0.1, 1.0, 1.0, 1.0, 1.0) for _ in range(2)]
    return Place(enrol, plan.assignments(reports)[1], shard, "tcp://127.0.0.1:5601")


def test_a_place_is_kept_and_the_identity_with_it(tmp_path: Path) -> None:
    given = place()
    with StateFolder(tmp_path / "deep" / "state", durable=True) as folder:
        assert not folder.used
        assert folder.place() is None
        folder.write_place(given)
        identity = folder.identity
        with pytest.raises(ConfigError, match=r"state folder .* is in use by another process"):
            StateFolder(tmp_path / "deep" / "state")
    with StateFolder(tmp_path / "deep" / "state") as folder:
        assert folder.used
        assert folder.identity == identity
        assert folder.place() == given


def test_a_damaged_place_is_named(tmp_path: Path) -> None:
    with StateFolder(tmp_path) as folder:
        folder.write_place(place())
        raw = (tmp_path / "place").read_bytes()
        (tmp_path / "place").write_bytes(raw[:-7])
        with pytest.raises(StorageError, match="place cannot be used: torn"):
            folder.place()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot keep state in .*file"):
        StateFolder(tmp_path / "file" / "state")


def test_a_keeper_saves_and_recalls(tmp_path: Path) -> None:
    counts = [1] * 9
    engines = [wandering(0, [1], counts), wandering(1, [0], counts)]
    with StateFolder(tmp_path) as folder:
        keeper = Keeper(folder, owner_of(0), every=3)
        assert keeper.recall(engines[0]) is None
        assert keeper.back == 6
        keeper.moved[1] = "tcp://10.0.0.1:5"
        for rounds in range(1, 9):
            run_in_order(engines, rounds)
            if rounds % keeper.every == 0:
                keeper.save(engines[0])
    with StateFolder(tmp_path) as folder:
        again, engine = Keeper(folder, owner_of(0), every=3), wandering(0, [1], counts)
        found = again.recall(engine)
        assert found is not None
        assert not found.finished
        assert engine.rounds == again.saved_rounds == 6
        assert again.moved == {1: "tcp://10.0.0.1:5"}
        with pytest.raises(ConfigError, match="checkpoint every 0 rounds: expected 1 to 1000"):
            Keeper(folder, owner_of(0), every=0)
