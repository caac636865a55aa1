"""What the kernel counts on the mesh's interfaces is what the ledger counts, headers added.

A packet on the wire is Ethernet (14 bytes), IPv4 (20) and TCP with timestamps (32), then what
ZeroMQ wrote: 35 bytes and the frame. Taking 66 bytes off every packet leaves what the sockets were
given, whatever number of packets were acknowledgements alone. That must be the ledger's bytes, the
control frames' and ZeroMQ's own, up to what this file cannot know: heartbeats (PING 42 bytes one
way and PONG 40 the other, every 10 s), the 8 bytes by which a SYN is longer, ARP (42 bytes, 24 less
than what was taken off), and packets that TCP repeated because a busy machine was late.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlag_lab.counted import wire_of
from dlag_lab.result import RunResult
from tests.networks.hosts import finish_over

pytestmark = pytest.mark.usefixtures("machine")

ETHERNET = 14
HEADERS = ETHERNET + 20 + 32
UNSEEN = 12  # packets a connection that no socket counts: SYN-ACK, FIN, what follows it, ARP
CURVE = 33  # a frame: name of the command, nonce, authenticator, flags
SMALL_FRAME_HEADER = 2 + CURVE  # ZeroMQ's, for a frame of up to 255 bytes with that
LARGE_FRAME_HEADER = 9 + CURVE
OPENING = (567 + 301) // 2  # CURVE's hand-shake with the greeting, mean of both directions
CONTROL_FRAMES = 3  # ours, a connection and direction: Hello or Welcome, Done, perhaps a Need
TOLERANCE = 0.02  # of 50 to 500 kB a direction
METHODS = {"dlag": "dlag:solver=newton,stop=exact:1e-8", "ssda": "ssda:solver=newton"}
WIDE = 100  # features: a delta of 800 bytes, still one packet


@pytest.fixture(scope="module", params=["heart", "wide"])
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, RunResult]:
    request.getfixturevalue("machine")
    folder = tmp_path_factory.mktemp(request.param)
    data = "heart" if request.param == "heart" else str(wide_data(folder / "wide.libsvm"))
    return {
        name: finish_over(
            "delay=0ms", folder / name, method=method, topology="grid:3x3", data=data, target=1e-7
        )
        for name, method in METHODS.items()
    }


def wide_data(path: Path) -> Path:
    """Three hundred samples of `WIDE` features whose labels follow a line, but for some noise."""
    random = np.random.default_rng(3)
    rows = random.normal(size=(300, WIDE)) / WIDE**0.5
    labels = np.sign(rows @ random.normal(size=WIDE) + 0.3 * random.normal(size=300))
    lines = [
        f"{label:+.0f} " + " ".join(f"{i}:{value:.6f}" for i, value in enumerate(row, 1))
        for label, row in zip(labels, rows, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
    return path


@pytest.mark.parametrize("name", METHODS)
def test_the_kernel_counted_what_the_ledger_counted(name: str, runs: dict[str, RunResult]) -> None:
    summary = runs[name].summary
    wire, deltas, skips = summary["network"], summary["deltas_sent"], summary["tokens_sent"]
    directions = 2 * summary["edges"]
    frames = deltas + skips
    assert frames == directions * summary["exchanges"]

    # packets: one for two frames at least (where a busy machine lets the first wait for the second,
    # whose maker is one exchange ahead at most), and one acknowledgement a frame at most, with 20
    # for opening, heartbeats and closing
    assert frames / 2 <= wire["packets"] <= 2 * frames + 20 * directions

    small = summary["bytes_payload"] <= 200 * deltas
    claimed = summary["bytes_frames"] + SMALL_FRAME_HEADER * skips
    claimed += deltas * (SMALL_FRAME_HEADER if small else LARGE_FRAME_HEADER)
    opened = directions * (OPENING + SMALL_FRAME_HEADER * CONTROL_FRAMES) + summary["bytes_control"]
    seen = wire["bytes"] - HEADERS * wire["packets"]
    assert claimed < seen
    assert seen == pytest.approx(claimed + opened, rel=TOLERANCE)


@pytest.mark.parametrize("name", METHODS)
def test_what_nodes_count_on_their_sockets_is_that_but_for_opening_and_closing(
    name: str, runs: dict[str, RunResult]
) -> None:
    result = runs[name]
    wire, edges = result.summary["wire"], result.summary["edges"]
    seen = result.summary["network"]
    assert wire["counted_by"] == "interfaces"
    assert (wire["packets"], wire["bytes"]) == (
        seen["packets"],
        seen["bytes"] - ETHERNET * seen["packets"],
    )
    assert result.path is not None
    own = wire_of(result.path, result.summary["nodes"])
    assert own is not None
    assert own["complete"]
    print(f"{name}: sockets {own['packets']} packets, interfaces {wire['packets']}")
    assert 0 <= wire["packets"] - own["packets"] <= UNSEEN * edges
    assert own["bytes"] == pytest.approx(wire["bytes"], rel=TOLERANCE)
    assert own["bytes"] <= wire["bytes"]


def test_from_outside_skips_save_what_is_wider_than_its_headers(runs: dict[str, RunResult]) -> None:
    def ratio(field: Callable[[dict[str, Any]], int]) -> float:
        return field(runs["dlag"].summary) / field(runs["ssda"].summary)

    rounds = ratio(lambda summary: summary["exchanges"])
    messages = ratio(lambda summary: summary["deltas_sent"])
    frames = ratio(lambda summary: summary["bytes_frames"])
    wire = ratio(lambda summary: summary["network"]["bytes"])
    print(
        f"DLAG/SSDA, {runs['dlag'].run['dim']} features: {rounds:.3f} rounds, {messages:.3f} "
        f"messages, {frames:.3f} frame bytes, {wire:.3f} bytes counted by the kernel"
    )
    # a skip still is a packet with headers: it saves nothing where the vector is as short as they
    assert messages < frames < wire < rounds
    if runs["dlag"].run["dim"] == WIDE:
        assert wire < 1
