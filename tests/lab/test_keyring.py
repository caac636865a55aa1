"""The keys of a local mesh: made, found again, gone; and who may speak for whom."""

from __future__ import annotations

from pathlib import Path

from coordinator.admission import Admission
from dlag_lab.keyring import Keyring, Speakers
from dlag_node.trust.keys import admit, new_pair, read_public

BOUND, FREE, OTHER, STRANGER = (new_pair().public for _ in range(4))


def test_a_keyring_is_found_again_and_discarded(tmp_path: Path) -> None:
    first = Keyring(tmp_path / "keys", 2)
    assert Keyring(tmp_path / "keys", 2).laboratory.pair == first.laboratory.pair
    key = read_public(tmp_path / "keys" / "node-001.pub")
    assert first.laboratory.speakers.may(key, 1)
    assert not first.laboratory.speakers.may(key, 0)
    first.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_key_speaks_for_its_own_node_alone(tmp_path: Path) -> None:
    admit(tmp_path / "admitted", {BOUND: 4, FREE: None, OTHER: None})
    speakers = Speakers(Admission(tmp_path / "admitted"))
    assert speakers.may(BOUND, 4)
    assert not speakers.may(BOUND, 5)
    assert speakers.may(FREE, 5)
    assert speakers.may(FREE, 5)
    assert not speakers.may(FREE, 6)  # it has one already
    assert not speakers.may(OTHER, 5)  # somebody else came first
    assert not speakers.may(OTHER, 4)
    assert speakers.may(OTHER, 7)
    assert not speakers.may(STRANGER, 6)
    assert not speakers.may(None, 6)
