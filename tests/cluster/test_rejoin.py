"""Nodes by hand that are killed and started again: the same bits, wherever they come back."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from dlag_node.rounds.state_folder import Place, StateFolder
from dlag_node.wire.observing import Ready
from tests.cluster.laboratory import Laboratory, laboratory
from tests.cluster.meshes import DEADLINE, command, read_until

HELD = 20  # rounds after which nodes are killed


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Laboratory]:
    """Three nodes in a path, all after round 20."""
    with laboratory(tmp_path, topology="path:3", rounds=40) as lab:
        for node in range(3):
            lab.start(node)
        lab.run_to(HELD)
        yield lab


def place_of(lab: Laboratory, node: int) -> Place:
    """What a node that does not run keeps of its place."""
    with StateFolder(lab.state(node)) as folder:
        place = folder.place()
    assert place is not None
    return place


def newest_slot(folder: Path) -> Path:
    """The slot that was written last: serial numbers stand after the magic."""
    return max(folder.glob("slot-*"), key=lambda path: path.read_bytes()[8:16][::-1])


@pytest.mark.parametrize("victims", [(1,), (0, 1, 2)], ids=str)
def test_killed_nodes_come_back_where_they_were(lab: Laboratory, victims: tuple[int, ...]) -> None:
    lab.coordinator.kill()  # from here on nobody needs it
    lab.kill(*victims)
    for node in victims:
        lab.start(node)
    back = lab.until(Ready, {*victims})
    assert all(isinstance(each, Ready) and each.rounds == HELD for each in back.values())
    lab.finish()


@pytest.mark.parametrize("mover", [0, 2], ids=["called by its neighbor", "a caller"])
def test_a_node_may_come_back_at_another_port(lab: Laboratory, mover: int) -> None:
    lab.kill(mover)
    host, port = place_of(lab, mover).bound.removeprefix("tcp://").split(":")
    with closing(socket.create_server((host, int(port)))):  # somebody else has its port now
        moved = lab.start(mover)
        line = read_until(moved, "neighbors reach us at")
        assert f":{port}" not in line
        lab.until(Ready, {mover})
        lab.run_to(HELD + 5)
        # its neighbors, should they crash now, know where it is, and it knows where they are
        neighbor = 1 if mover != 1 else 2
        lab.kill(neighbor)
        lab.start(neighbor)
        lab.finish()


def test_two_that_both_moved_find_each_other_if_one_is_told(tmp_path: Path) -> None:
    with laboratory(tmp_path, topology="path:2", rounds=40) as lab:
        for node in range(2):
            lab.start(node)
        lab.run_to(HELD)
        lab.kill(0, 1)
        bound = [place_of(lab, node).bound for node in range(2)]
        host, _, _ = bound[0].removeprefix("tcp://").partition(":")
        with ExitStack() as ports:  # somebody else has both of their ports now
            for address in bound:
                port = int(address.rsplit(":", 1)[1])
                ports.enter_context(closing(socket.create_server((host, port))))
            line = read_until(lab.start(0), "neighbors reach us at ")
            lab.start(1, "--neighbor", f"0={line.split('reach us at ')[1].strip()}")
            lab.until(Ready, {0, 1})
            lab.finish()


@pytest.mark.parametrize("word", ["7", "x=tcp://127.0.0.1:1", "0=udp://h:1"])
def test_a_neighbors_address_of_another_form_is_named(word: str, tmp_path: Path) -> None:
    with command("dlag-node", "--state", str(tmp_path), "--neighbor", word) as node:
        assert node.wait(DEADLINE) == 2
        assert word.split("=")[-1] in node.communicate()[1]


@pytest.mark.parametrize("damage", ["truncated", "foreign"])
def test_an_unreadable_checkpoint_leads_to_the_one_before(lab: Laboratory, damage: str) -> None:
    lab.kill(1)
    slot = newest_slot(lab.state(1))
    if damage == "truncated":
        os.truncate(slot, slot.stat().st_size // 2)
    else:
        shutil.copy(newest_slot(lab.state(0)), slot)
    again = lab.start(1)
    words = "a checkpoint of node 0, ours is 1" if damage == "foreign" else "torn: "
    assert words in read_until(again, f"checkpoint {slot} is not used: ")
    back = lab.until(Ready, {1})[1]
    assert isinstance(back, Ready)
    assert back.rounds == HELD - 1
    lab.finish()


def test_two_foreign_checkpoints_end_in_an_error_that_says_whose(lab: Laboratory) -> None:
    lab.kill(1)
    for slot in lab.state(0).glob("slot-*"):
        shutil.copy(slot, lab.state(1) / slot.name)
    again = lab.start(1)
    assert again.wait(DEADLINE) == 1
    errors = again.communicate()[1]
    assert "StorageError: no checkpoint can be used: " in errors
    assert (
        errors.count("a checkpoint of node 0, ours is 1") == 4
    )  # each in the log, and both as the end


def test_a_full_disk_ends_the_run_and_it_can_go_on_later(tmp_path: Path) -> None:
    """The slot whose turn is next has no room: the other one is used when there is room again."""
    with laboratory(tmp_path, topology="path:3", rounds=40) as lab:
        for node in range(3):
            lab.start(node)
        lab.run_to(HELD)
        lab.kill(1)
        full = lab.start(1)
        lab.until(Ready, {1})
        newest = newest_slot(lab.state(1))
        other = next(path for path in lab.state(1).glob("slot-*") if path != newest)
        other.unlink()
        other.symlink_to("/dev/full")
        lab.grant(lab.rounds)
        assert full.wait(DEADLINE) == 1
        errors = full.communicate()[1]
        assert f"StorageError: cannot write checkpoint {other}: " in errors
        assert "No space left on device; the one before it is kept" in errors
        for node in (0, 2):
            assert lab.nodes[node].wait(DEADLINE) == 1
        other.unlink()
        for node in range(3):
            lab.start(node)
        lab.until(Ready, {0, 1, 2})
        lab.finish()


def test_a_state_folder_serves_one_process(lab: Laboratory) -> None:
    with command("dlag-node", "--state", str(lab.state(1))) as second:
        assert second.wait(DEADLINE) == 2
        assert "is in use by another process" in second.communicate()[1]
    lab.finish()


def test_who_never_comes_back_ends_the_others_with_its_name_and_the_run_can_go_on(
    tmp_path: Path,
) -> None:
    # with a third node it would be chance which of the two that wait gives up first
    with laboratory(tmp_path, topology="path:2", rounds=40) as lab:
        lab.flags = ["--neighbor-timeout", "3"]
        for node in range(2):
            lab.start(node)
        lab.run_to(HELD)
        lab.kill(0)
        lab.grant(lab.rounds)
        assert "waiting for neighbors [0 at tcp://127.0.0.1:" in read_until(
            lab.nodes[1], "waiting for"
        )
        assert lab.nodes[1].wait(DEADLINE) == 1
        words = lab.nodes[1].communicate()[1]
        assert "NeighborTimeout: node 1 waited 3." in words
        assert f"at exchange {HELD} for neighbors [0]: neighbor 0 at tcp://127.0.0.1:" in words
        assert f"round {HELD} is saved in {lab.state(1)}: start the node again" in words
        for node in range(2):
            lab.start(node)
        lab.until(Ready, {0, 1})
        lab.finish()


def test_a_node_killed_while_it_joins_gets_its_place_again(tmp_path: Path) -> None:
    with laboratory(tmp_path, topology="path:3", rounds=10) as lab:
        first = lab.start(0)
        read_until(first, "neighbors reach us at")  # it has joined, and waits for the others
        lab.kill(0)
        lab.start(0)
        read_until(lab.start(1), "neighbors reach us at")
        lab.kill(1)  # it may have reported: then the others begin while it is away
        read_until(lab.start(2), "neighbors reach us at")
        lab.start(1)
        lab.finish()
        assert lab.coordinator.wait(DEADLINE) == 0


def test_a_node_waits_for_its_coordinator_and_says_so(tmp_path: Path) -> None:
    with laboratory(tmp_path, topology="path:2", rounds=10) as lab:
        os.kill(lab.coordinator.pid, signal.SIGSTOP)  # it is there, and answers nobody
        read_until(lab.start(0), "waiting for the coordinator at tcp://127.0.0.1:")
        os.kill(lab.coordinator.pid, signal.SIGCONT)
        lab.start(1)
        lab.finish()


def test_a_coordinator_killed_before_the_start_may_come_back_empty(tmp_path: Path) -> None:
    """The node that had joined says that it waits, joins the new one, and the run is whole."""
    with laboratory(tmp_path, topology="path:2", rounds=10) as lab:
        first = lab.start(0)
        read_until(first, "neighbors reach us at")
        lab.coordinator.kill()
        lab.coordinator.wait(DEADLINE)
        read_until(first, "waiting for the coordinator at tcp://127.0.0.1:")
        lab.start_coordinator(bind=lab.address)
        read_until(first, "does not know us: it has begun anew, and so do we")
        lab.start(1)
        lab.finish()
        assert lab.coordinator.wait(DEADLINE) == 0


def test_a_coordinator_killed_after_the_start_may_come_back_empty_and_is_not_confused(
    lab: Laboratory,
) -> None:
    """What the nodes of the old run tell it in the end is none of its business."""
    lab.coordinator.kill()
    lab.coordinator.wait(DEADLINE)
    lab.start_coordinator(bind=lab.address)
    lab.finish()
    assert lab.coordinator.poll() is None  # it waits for nodes of its own
    lab.coordinator.terminate()
    assert lab.coordinator.wait(DEADLINE) == 143
    words = lab.coordinator.communicate()[1]
    assert not re.search(r"[1-3] of 3 nodes have", words), words
    assert "ERROR" not in words
