"""An undisturbed run of real processes, frame by frame: nobody asks for anything twice.

What a node does not send by itself its neighbor asks for in the end (`Need`), and gets: without a
look at the wire, a node that sends nothing by itself is only slow.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from dlag_node.wire import Delta, Done, Frame, Hello, Skip, Welcome
from dlag_node.wire.codec import Codec
from dlag_node.wire.observing import Ready
from tests.cluster.laboratory import laboratory
from tests.cluster.tap import Tap

ROUNDS = 30
DIM = 13  # heart's
ATTEMPTS = 5  # a busy machine can keep a link from opening for so long that hello is said twice


def run(folder: Path) -> list[tuple[list[Frame], list[Frame]]]:
    """Three nodes in a path, and what was said on both edges: by who called, and the other way."""
    with ExitStack() as stack:
        taps = [stack.enter_context(Tap()) for _ in range(2)]
        lab = stack.enter_context(laboratory(folder, topology="path:3", rounds=ROUNDS))
        for node in (0, 1):  # a node is called by those with a higher id
            lab.start(node, "--bind", taps[node].back, "--advertise", taps[node].front)
        lab.start(2)
        lab.until(Ready, {0, 1, 2})
        lab.finish()
    return [tap.frames(Codec(DIM)) for tap in taps]


def greeted_again(said: list[tuple[list[Frame], list[Frame]]]) -> bool:
    """Whether somebody waited so long for a link to open that it said Hello once more."""
    hellos = [sum(type(frame) is Hello for frame in forth) for forth, _ in said]
    return max(hellos) > 1


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[list[Frame], list[Frame]]]:
    """All frames of a run in which every link opened by the first hello."""
    for _ in range(ATTEMPTS):
        found = run(tmp_path_factory.mktemp("undisturbed"))
        if not greeted_again(found):
            return found
    pytest.fail(f"in {ATTEMPTS} runs of {ATTEMPTS} somebody said hello twice")


def test_every_frame_of_a_round_crosses_every_edge_once_and_unasked(
    said: list[tuple[list[Frame], list[Frame]]],
) -> None:
    for direction in (frames for edge in said for frames in edge):
        rounds = [frame.seq for frame in direction if isinstance(frame, Delta | Skip)]
        assert rounds == [*range(ROUNDS)]


def test_beside_the_rounds_a_link_is_opened_and_closed_and_nothing_is_needed(
    said: list[tuple[list[Frame], list[Frame]]],
) -> None:
    for edge in said:
        for frames, first in zip(edge, (Hello, Welcome), strict=True):
            kinds = Counter(type(frame) for frame in frames if not isinstance(frame, Delta | Skip))
            assert kinds.keys() == {first, Done}
            assert kinds[first] == 1
