"""The talk of a round: who is told once, who is heard, and which rounds count."""

from __future__ import annotations

import pytest

from dlag_node.rounds.talk import Talk
from dlag_node.rounds.window import Window

WINDOW = Window([1, 4, 6])


def some(*nodes: int) -> frozenset[int]:
    return frozenset(nodes)


def test_each_neighbor_is_told_in_its_first_frame_of_a_round() -> None:
    talk = Talk(WINDOW, None)
    assert [talk.word(7, to) for to in (some(4), some(4), some(1, 4), some(1), None, None)] == [
        7, 0, 7, 0, 7, 0,
    ]  # fmt: skip
    talk.close()
    assert talk.word(7, some(4)) == 7


def test_a_partner_that_said_nothing_tells_0() -> None:
    talk = Talk(WINDOW, None)
    talk.all_due = True
    talk.hear({4: -3})
    talk.hear({6: 2})
    assert talk.close() == [0, -3, 2]
    talk.all_due = True
    assert talk.close() == [0, 0, 0]  # nothing is left of the round before


@pytest.mark.parametrize(
    ("partners", "dues", "news"),
    [
        (None, [], False),
        (None, [some()], False),
        (None, [some(1, 4)], False),
        (None, [some(1), some(4), some(6)], False),  # by chance: others have not heard all
        (some(1, 6), [some(1)], False),
        (some(1, 6), [some(1), some(), some(6)], True),
        (some(1, 6), [some(1, 4, 6)], True),
    ],
)
def test_a_round_counts_where_all_partners_were_due(
    partners: frozenset[int] | None, dues: list[frozenset[int]], news: bool
) -> None:
    talk = Talk(WINDOW, partners)
    for due in dues:
        talk.expect(due)
    assert (talk.close() is not None) == news
    assert talk.close() is None
