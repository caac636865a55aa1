"""A node's own look at what its kernel counted: against what was sent, and by nobody's leave."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dlag_node.net.kernel import KernelCount, KernelCounter, count_path, sent_on

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux tells what it counted")

HEADERS = 52
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


@pytest.fixture
def pair(listener: socket.socket) -> Iterator[Pair]:
    """Who called, and who was called."""
    with socket.create_connection(listener.getsockname()) as caller:
        called, _ = listener.accept()
        with called:
            yield caller, called


def say(one: socket.socket, other: socket.socket, octets: int) -> None:
    one.sendall(bytes(octets))
    assert len(other.recv(octets, socket.MSG_WAITALL)) == octets


def test_data_and_headers_are_counted_where_they_were_sent(pair: Pair) -> None:
    caller, called = pair
    for _ in range(20):
        say(caller, called, 100)
        say(called, caller, 10)
    seen = sent_on(lambda *_: True)
    assert seen is not None
    for end, data in ((caller, 2_000), (called, 200)):
        packets, octets = seen[end.getsockname(), end.getpeername()]
        assert octets == data + HEADERS * packets
        assert 20 <= packets <= 2 * 20 + 3


@pytest.mark.skipif(shutil.which("ss") is None, reason="needs ss (iproute2)")
def test_ss_has_the_same_numbers(pair: Pair) -> None:
    caller, called = pair
    for _ in range(7):
        say(caller, called, 1_000)
    here, there = caller.getsockname(), caller.getpeername()
    filters = ["sport", "=", f":{here[1]}", "and", "dport", "=", f":{there[1]}"]
    listing = subprocess.run(
        ["ss", "-tinHO", *filters], check=True, capture_output=True, text=True
    ).stdout
    segments, data = (
        int(re.findall(rf"\b{word}:(\d+)", listing)[0]) for word in ("segs_out", "bytes_sent")
    )
    seen = sent_on(lambda *ends: ends == (here, there))
    assert seen == {(here, there): (segments, data + HEADERS * segments)}
    assert data == 7_000


def test_of_all_connections_those_of_the_mesh_are_counted(
    listener: socket.socket, pair: Pair
) -> None:
    caller, called = pair
    port = listener.getsockname()[1]
    with (
        socket.create_server(("127.0.0.1", 0)) as elsewhere,
        socket.create_connection(elsewhere.getsockname()) as other,
    ):
        say(caller, called, 500)
        assert counted(KernelCounter(port, [])).connections == 1  # the end that was called
        both = counted(KernelCounter(0, [called.getsockname(), other.getpeername()]))
        assert both.connections == 2
        assert both.bytes >= 500 + HEADERS * both.packets
        assert counted(KernelCounter(1, [])) == KernelCount(0, 0, 0, complete=True)


def counted(counter: KernelCounter) -> KernelCount:
    counter.look()
    count = counter.count(complete=True)
    assert count is not None
    return count


def test_what_was_seen_of_a_connection_stays_after_its_end(listener: socket.socket) -> None:
    counter = KernelCounter(0, [listener.getsockname()])
    with socket.create_connection(listener.getsockname()) as caller:
        called, _ = listener.accept()
        with called:
            say(caller, called, 300)
            before = counted(counter)
    assert counted(counter) == before
    assert before.connections == 1


def test_who_is_nobody_in_particular_may_look() -> None:
    if os.geteuid() != 0:
        pytest.skip("it is nobody in particular already")
    script = (
        "import ctypes, encodings.idna, os, socket\n"
        "from dlag_node.net.kernel import sent_on\n"
        "os.setgroups([]), os.setgid(65534), os.setuid(65534)\n"
        "ctypes.CDLL(None).prctl(4, 1)\n"  # PR_SET_DUMPABLE: as after an exec
        "s = socket.create_server(('127.0.0.1', 0))\n"
        "c = socket.create_connection(s.getsockname())\n"
        "c.sendall(b'x' * 10)\n"
        "(packets, octets), = sent_on(lambda h, t: t == s.getsockname()).values()\n"
        "assert octets == 10 + 52 * packets, (packets, octets)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_a_count_is_left_whole_and_read_back(tmp_path: Path) -> None:
    path = count_path(tmp_path, 7)
    assert KernelCount.read(path) is None
    count = KernelCount(packets=10, bytes=1_000, connections=4, complete=False)
    count.leave(path)
    assert path.name == "node-007.wire.json"
    assert [*tmp_path.iterdir()] == [path]
    assert KernelCount.read(path) == count
    for raw in (
        "",
        "[]",
        '{"packets": 1}',
        json.dumps({**json.loads(path.read_text()), "bytes": "x"}),
    ):
        path.write_text(raw)
        assert KernelCount.read(path) is None
