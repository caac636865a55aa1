"""Nonsense from many peers: all of it counted, little of it said, memory bounded."""

from __future__ import annotations

import logging

import pytest

from dlag_node.errors import RemoteProtocolError
from dlag_node.trust import strangers
from dlag_node.trust.strangers import Strangers

MANY = 5_000
REMEMBERED = strangers._REMEMBERED


def test_a_peer_is_mentioned_once(caplog: pytest.LogCaptureFixture) -> None:
    calm = Strangers()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            for peer in ("stranger aa", "neighbor 4"):
                calm.drop(peer, RemoteProtocolError(f"{peer} sent nonsense"))
    assert calm.dropped == 6
    assert caplog.messages == [
        "dropped: stranger aa sent nonsense (said once a peer)",
        "dropped: neighbor 4 sent nonsense (said once a peer)",
    ]


def test_many_peers_are_counted_but_not_remembered(caplog: pytest.LogCaptureFixture) -> None:
    calm = Strangers()
    with caplog.at_level(logging.WARNING):
        for each in range(MANY):
            calm.drop(f"stranger {each}", RemoteProtocolError("nonsense"))
    assert calm.dropped == MANY
    assert len(caplog.messages) == REMEMBERED
    assert len(calm._mentioned) == REMEMBERED


def test_an_answer_is_given_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(strangers, "monotonic", lambda: now)
    calm = Strangers()
    assert calm.may_answer(b"a")
    assert not calm.may_answer(b"a")
    assert calm.may_answer(b"b")
    now += strangers._ANSWER_EVERY
    assert calm.may_answer(b"a")
    assert not calm.may_answer(b"a")


def test_who_was_answered_is_forgotten_before_it_grows() -> None:
    calm = Strangers()
    for each in range(MANY):
        assert calm.may_answer(each.to_bytes(5, "big"))
        assert len(calm._answered) <= REMEMBERED
