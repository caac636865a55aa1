"""Whom a coordinator lets in: keys on its list, ids that are bound, tokens that work once."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.admission import Admission
from coordinator.draft import Draft
from coordinator.plan import RunSettings
from coordinator.roster import Roster
from dlag_node.errors import ConfigError
from dlag_node.trust.keys import admit, make_token, new_pair, read_token, read_tokens
from dlag_node.wire import PROTOCOL, Refuse, Who
from dlag_node.wire.control import Assignment, Enrol, Fetch, FromCoordinator, Join, Report

DRAFT = Draft(RunSettings(topology="path:3", rounds=3))
ALICE, BOB, CAROL = (new_pair().public for _ in range(3))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "admitted").touch()
    (tmp_path / "tokens").touch()
    return tmp_path


def roster_of(folder: Path) -> Roster:
    return Roster(DRAFT, Admission(folder / "admitted", folder / "tokens"))


def join(
    roster: Roster, key: bytes, wanted: int | None = None, token: str | None = None
) -> FromCoordinator:
    ((_, reply),) = roster.handle(b"at " + key[:4], Join(PROTOCOL, wanted, token), key)
    return reply


def place(reply: FromCoordinator) -> int:
    assert isinstance(reply, Enrol)
    return reply.node


def test_a_key_on_the_list_gets_a_place_and_another_does_not(folder: Path) -> None:
    admit(folder / "admitted", {ALICE: None})
    roster = roster_of(folder)
    assert place(join(roster, ALICE)) == 0
    assert join(roster, BOB) == Refuse(f"key {BOB.hex()} is not admitted, nor is its token")
    assert roster.refused == 1
    assert list(roster.members) == [0]


def test_an_id_is_for_the_key_that_it_is_bound_to(folder: Path) -> None:
    admit(folder / "admitted", {ALICE: 2, BOB: None, CAROL: None})
    roster = roster_of(folder)
    assert join(roster, BOB, 2) == Refuse(f"id 2 is not for key {BOB.hex()}")
    assert join(roster, ALICE, 0) == Refuse(f"id 0 is not for key {ALICE.hex()}")
    assert place(join(roster, BOB)) == 0
    assert place(join(roster, CAROL)) == 1  # and not 2, though nobody has it yet
    assert place(join(roster, ALICE)) == 2


def test_a_key_has_one_place(folder: Path) -> None:
    admit(folder / "admitted", {ALICE: None})
    roster = roster_of(folder)
    assert place(join(roster, ALICE)) == 0
    assert place(join(roster, ALICE)) == 0  # the same connection: it crashed while it joined
    ((_, reply),) = roster.handle(b"elsewhere", Join(PROTOCOL, None), ALICE)
    assert reply == Refuse(f"key {ALICE.hex()} has a place already")


def test_a_connection_speaks_for_a_node_with_the_nodes_key_alone(folder: Path) -> None:
    """Somebody else may know the routing id, and come by it."""
    admit(folder / "admitted", {ALICE: None, BOB: None})
    roster = roster_of(folder)
    join(roster, ALICE)
    ((_, reply),) = roster.handle(b"at " + ALICE[:4], Fetch(0), BOB)
    assert reply == Who()


def test_a_token_lets_one_key_in_once_and_for_good(folder: Path) -> None:
    make_token(folder / "tokens", folder / "token")
    token = read_token(folder / "token")
    roster = roster_of(folder)
    assert roster.passes(ALICE)
    assert isinstance(join(roster, ALICE, token="f" * 64), Refuse)
    assert place(join(roster, ALICE, token=token)) == 0
    assert isinstance(join(roster, BOB, token=token), Refuse)
    assert not roster.passes(BOB)  # no token is left: it need not even try
    assert read_tokens(folder / "tokens") == set()
    assert place(join(roster_of(folder), ALICE)) == 0  # the next coordinator knows her


def test_a_key_may_be_added_while_the_coordinator_runs(folder: Path) -> None:
    roster = roster_of(folder)
    assert not roster.passes(ALICE)
    admit(folder / "admitted", {ALICE: 1})
    assert roster.passes(ALICE)
    assert place(join(roster, ALICE)) == 1


def test_a_list_that_somebody_is_just_writing_changes_nothing(folder: Path) -> None:
    admit(folder / "admitted", {ALICE: None})
    roster = roster_of(folder)
    with (folder / "admitted").open("a") as file:
        file.write(BOB.hex()[:10])
    (folder / "tokens").write_text("half a li")
    assert roster.passes(ALICE)
    assert not roster.passes(BOB)
    with (folder / "admitted").open("a") as file:
        file.write(BOB.hex()[10:])
    assert roster.passes(BOB)


def test_neighbors_learn_each_others_keys(folder: Path) -> None:
    keys = (ALICE, BOB, CAROL)
    admit(folder / "admitted", {key: i for i, key in enumerate(keys)})
    roster = roster_of(folder)
    replies = []
    for i, key in enumerate(keys):
        enrol = join(roster, key)
        assert isinstance(enrol, Enrol)
        report = Report(f"tcp://h:{i}", enrol.samples, 0.1, 1.0, 1.0, 1.0, 1.0)
        replies = roster.handle(b"at " + key[:4], report, key)
    told = [reply for _, reply in replies if isinstance(reply, Assignment)]
    assert [[(p.node, p.key) for p in each.peers] for each in told] == [
        [(1, BOB)],
        [(0, ALICE), (2, CAROL)],
        [(1, BOB)],
    ]


def test_a_list_may_come_later(tmp_path: Path) -> None:
    admission = Admission(tmp_path / "admitted")
    assert not admission.admits(ALICE)
    admit(tmp_path / "admitted", {ALICE: None})
    assert admission.admits(ALICE)


def test_a_list_may_be_a_folder_of_public_keys(tmp_path: Path) -> None:
    posts = tmp_path / "posts"
    posts.mkdir()
    (posts / "alice.pub").write_text(f"{ALICE.hex()}\n")
    admission = Admission(posts)
    assert admission.admits(ALICE)
    assert admission.bound_to(ALICE) is None
    assert not admission.admits(BOB)
    (tmp_path / "bob").write_text(f"{BOB.hex()}\n")
    (tmp_path / "bob").replace(posts / "alice.pub")  # the same name, another key
    assert admission.admits(BOB)
    assert not admission.admits(ALICE)
    (tmp_path / "tokens").touch()
    with pytest.raises(ConfigError, match=r"posts is a folder: expected a list, for .*tokens"):
        Admission(posts, tmp_path / "tokens")


def test_a_list_that_is_none_is_noticed_at_once(tmp_path: Path) -> None:
    (tmp_path / "admitted").write_text("nobody")
    with pytest.raises(ConfigError, match="admitted, line 1: 'nobody': expected a public key"):
        Admission(tmp_path / "admitted")
    (tmp_path / "admitted").write_text("")
    (tmp_path / "tokens").write_text("plain words")
    with pytest.raises(ConfigError, match="tokens: expected lines of 64 hexadecimal digits"):
        Admission(tmp_path / "admitted", tmp_path / "tokens")
