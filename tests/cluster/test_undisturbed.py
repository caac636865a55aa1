"""An undisturbed run of real processes, frame by frame: nobody asks for anything twice.

What a node does not send by itself its neighbor asks for after a while (`Need`), and gets: without
a look at the wire, a node that sends nothing by itself is only slow.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from dlag_lab.folder import RunFolder
from dlag_node.wire import Delta, Done, Frame, Hello, Skip, Welcome
from dlag_node.wire.codec import Codec
from dlag_node.wire.observing import Ready
from tests.cluster.laboratory import laboratory
from tests.cluster.tap import Tap

ROUNDS = 30
DIM = 13  # heart's
PATIENT = 0.25  # seconds that a node waits at the barrier before it asks (docs/protocol.md)
ATTEMPTS = 5  # a busy machine can keep a node waiting for as long as that


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


def longest_wait(folder: Path) -> float:
    """Seconds at the barrier, of all nodes and rounds."""
    records = [record for node in range(3) for record in RunFolder(folder).records(node)]
    assert len(records) == 3 * ROUNDS
    return max(record.wait for record in records)


def greeted_again(said: list[tuple[list[Frame], list[Frame]]]) -> bool:
    """Whether somebody waited so long for a link to open that it said Hello once more."""
    hellos = [sum(type(frame) is Hello for frame in forth) for forth, _ in said]
    return max(hellos) > 1


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[list[Frame], list[Frame]]]:
    """All frames of a run in which nobody had to wait so long that it asked."""
    for _ in range(ATTEMPTS):
        folder = tmp_path_factory.mktemp("undisturbed")
        found = run(folder)
        if longest_wait(folder) < PATIENT and not greeted_again(found):
            return found
    pytest.fail(
        f"in {ATTEMPTS} runs of {ATTEMPTS} somebody waited for {PATIENT} s: frames come only when "
        "they are asked for, or the machine is far too busy"
    )


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
