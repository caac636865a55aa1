"""The emulator without a kernel: when packets go on, which are lost, and the bytes of netlink."""

from __future__ import annotations

import errno
import struct
from random import Random
from statistics import fmean

import pytest

from dlag_lab.network.emulator import Fate
from dlag_lab.network.netlink import refusal
from dlag_lab.network.nfqueue import Packet, packets, verdict
from dlag_lab.network.spec import NetworkSpec, parse_network

A, B = b"\x02\x00\x00\x00\x00\x01", b"\x02\x00\x00\x00\x00\x02"


def dues(spec: NetworkSpec, times: list[float], sender: bytes = A) -> list[float | None]:
    fate = Fate(spec, Random(5))
    return [fate.due(now, 0, sender) for now in times]


def test_without_jitter_every_packet_is_held_for_the_delay() -> None:
    times = [k * 1e-4 for k in range(100)]
    assert dues(parse_network("delay=20ms"), times) == [now + 0.02 for now in times]


def test_jitter_spreads_the_delay_and_keeps_the_order_of_a_link() -> None:
    spec = parse_network("delay=20ms,jitter=5ms")
    apart = [k * 1.0 for k in range(4_000)]  # no packet can meet another
    held = [due - now for due, now in zip(dues(spec, apart), apart, strict=True) if due]
    assert min(held) >= 0.015
    assert max(held) <= 0.025
    assert fmean(held) == pytest.approx(0.02, abs=1e-4)  # 2 sigma of a mean of 4,000
    close = dues(spec, [k * 1e-4 for k in range(1_000)])
    assert close == sorted(close)


def test_the_order_of_one_link_does_not_hold_up_another() -> None:
    fate = Fate(NetworkSpec(delay=0.5, jitter=0.5), Random(1))
    last = max(fate.due(0.0, 0, A) or 0.0 for _ in range(50))
    assert min(fate.due(0.0, 0, bytes([k])) or 0.0 for k in range(50)) < last / 2
    assert min(fate.due(0.0, host, A) or 0.0 for host in range(1, 50)) < last / 2


def test_the_share_that_is_lost_is_the_share_that_was_asked_for() -> None:
    lost = dues(parse_network("loss=10%"), [0.0] * 20_000).count(None)
    assert lost == pytest.approx(2_000, abs=3 * (20_000 * 0.1 * 0.9) ** 0.5)


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def message(kind: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


def told(number: int, sender: bytes) -> bytes:
    body = bytes(4) + attribute(1, struct.pack("!IHB", number, 0x0800, 0))
    body += attribute(5, bytes(4)) + attribute(9, struct.pack("!HH", len(sender), 0) + sender)
    return message(0x300, body)


def test_packets_are_read_with_their_senders_and_other_messages_passed_over() -> None:
    raw = told(7, A) + message(2, bytes(20)) + told(8, B)
    assert list(packets(raw)) == [Packet(7, A), Packet(8, B)]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00" * 15,
        b"\x00" * 64,
        told(7, A)[:-8],
        struct.pack("=IHHII", 4_000, 0x300, 0, 0, 0) + bytes(40),
        message(0x300, bytes(4) + struct.pack("=HH", 0, 1) + bytes(40)),
        message(0x300, bytes(4) + struct.pack("=HH", 400, 1) + bytes(40)),
    ],
)
def test_a_datagram_cut_short_tells_of_no_packet(raw: bytes) -> None:
    assert list(packets(raw)) == []


def test_a_verdict_names_the_packet_and_what_becomes_of_it() -> None:
    raw = verdict(3, Packet(0x01020304, A), 1)
    expected = struct.pack("=IHHII", 32, 0x301, 1, 0, 0) + struct.pack("!BBH", 0, 0, 3)
    assert raw == expected + struct.pack("=HH", 12, 2) + struct.pack("!II", 1, 0x01020304)


def test_the_kernels_refusal_is_read_from_its_answer() -> None:
    assert refusal(message(2, struct.pack("=i", -errno.EBUSY) + bytes(16))) == errno.EBUSY
    assert refusal(message(2, struct.pack("=i", 0) + bytes(16))) == 0
