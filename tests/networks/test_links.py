"""The links between the hosts are as was asked: measured with plain sockets, no node involved."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from statistics import median
from threading import Thread
from time import perf_counter

import pytest

from dlag_lab.network.emulator import run as emulator
from dlag_lab.network.namespaces import counters, inside
from dlag_lab.network.network import MESH_INTERFACE, Network
from dlag_lab.network.spec import parse_network
from dlag_node.errors import ConfigError
from dlag_node.graphs.topology import parse_topology
from dlag_node.process import EXIT_TERMINATED

pytestmark = pytest.mark.usefixtures("machine")

Stream = tuple[socket.socket, socket.socket]

FIRST, SECOND = "10.77.0.1", "10.77.0.2"
LATE = 0.015  # seconds that a busy machine may add to a round trip
DEADLINE = 30.0
SO_RCVBUFFORCE = 33


@contextmanager
def network(text: str, *, nodes: int = 2) -> Iterator[Network]:
    """Hosts in a line and, where the kernel needs it, the emulator."""
    with Network(parse_network(text), parse_topology(f"path:{nodes}", seed=0)) as hosts:
        if not hosts.emulator:
            yield hosts
            return
        heard, announce = os.pipe()
        lifeline, alive = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(alive)
            flags = ["--announce", str(announce), "--lifeline", str(lifeline)]
            os._exit(emulator([*hosts.emulator[1:], *flags]))
        os.close(announce)
        os.close(lifeline)
        try:
            assert os.read(heard, 100) == b"ready\n"
            yield hosts
        finally:
            os.close(alive)
            os.close(heard)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == EXIT_TERMINATED


def a_socket(hosts: Network, node: int, kind: int) -> socket.socket:
    with inside(hosts.netns[f"node-{node:03d}"]):
        made = socket.socket(socket.AF_INET, kind)
    made.settimeout(DEADLINE)
    return made


@contextmanager
def datagrams(hosts: Network) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends that know each other's address."""
    with (
        a_socket(hosts, 0, socket.SOCK_DGRAM) as first,
        a_socket(hosts, 1, socket.SOCK_DGRAM) as second,
    ):
        first.bind((FIRST, 0))
        second.bind((SECOND, 0))
        first.connect(second.getsockname())
        second.connect(first.getsockname())
        yield first, second


def round_trip(ends: tuple[socket.socket, socket.socket]) -> float:
    begun = perf_counter()
    ends[0].send(b"ping")
    ends[1].send(ends[1].recv(100))
    ends[0].recv(100)
    return perf_counter() - begun


@pytest.mark.parametrize("delay", [5, 50])
def test_a_round_trip_takes_twice_the_delay(delay: int) -> None:
    with network(f"delay={delay}ms") as hosts, datagrams(hosts) as ends:
        trips = [round_trip(ends) for _ in range(20)]
    assert min(trips) >= 2 * delay / 1e3
    assert median(trips) < 2 * delay / 1e3 + LATE


def test_hosts_without_delay_answer_at_once() -> None:
    with network("delay=0ms") as hosts, datagrams(hosts) as ends:
        assert not hosts.emulator
        assert median(round_trip(ends) for _ in range(20)) < LATE


def test_jitter_spreads_the_round_trips_around_twice_the_delay() -> None:
    with network("delay=20ms,jitter=10ms") as hosts, datagrams(hosts) as ends:
        trips = [round_trip(ends) for _ in range(60)]
    assert min(trips) >= 0.020
    assert min(trips) < 0.036  # two uniform draws: 60 trips above this have a chance below 1e-9
    assert max(trips) > 0.044
    assert median(trips) < 0.040 + LATE


@pytest.mark.parametrize(("text", "lost"), [("loss=20%", 400), ("delay=1ms", 0)])
def test_the_asked_share_of_packets_is_lost(text: str, lost: int) -> None:
    sent = 2_000
    with network(text) as hosts, datagrams(hosts) as (first, second):
        second.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)  # room for all of them
        for _ in range(sent):
            first.send(b"packet")
        for _ in range(50):  # one will arrive
            first.send(b"end")
        arrived = sum(1 for _ in iter(lambda: second.recv(100), b"end"))
    within = 4 * (sent * 0.2 * 0.8) ** 0.5 if lost else 0
    assert abs(sent - arrived - lost) <= within


@contextmanager
def streams(hosts: Network, sender: int, receivers: Sequence[int]) -> Iterator[list[Stream]]:
    """A connection from one host to each of the others: the sending and the receiving end."""
    with ExitStack() as stack:
        ends = []
        for node in receivers:
            listening = stack.enter_context(a_socket(hosts, node, socket.SOCK_STREAM))
            listening.bind((f"10.77.0.{node + 1}", 0))
            listening.listen()
            near = stack.enter_context(a_socket(hosts, sender, socket.SOCK_STREAM))
            near.connect(listening.getsockname())
            far, _ = listening.accept()
            far.settimeout(DEADLINE)
            ends.append((near, stack.enter_context(far)))
        yield ends


def carry(stream: Stream, size: int) -> float:
    """Seconds until so many bytes have gone through."""
    near, far = stream
    begun = perf_counter()
    Thread(target=near.sendall, args=(bytes(size),), daemon=True).start()
    while size:
        size -= len(far.recv(1 << 16))
    return perf_counter() - begun


@pytest.mark.parametrize(
    ("sender", "receivers", "seconds"),
    [
        pytest.param(1, [0], 1.045, id="one link"),
        pytest.param(1, [0, 2], 1.045, id="two links of one host, each at its own rate"),
        pytest.param(0, [2, 3], 2.09, id="two hosts that are no neighbors share one"),
    ],
)
def test_a_link_carries_no_more_than_its_rate(
    sender: int, receivers: list[int], seconds: float
) -> None:
    size = 250_000  # 1.045 s at 2 Mbit/s with 66 bytes of headers for each 1,448 of data
    with (
        network("rate=2mbit", nodes=4) as hosts,
        streams(hosts, sender, receivers) as ends,
        ThreadPoolExecutor() as pool,
    ):
        took = max(pool.map(carry, ends, [size] * len(ends)))
    assert 0.95 * seconds < took < 1.5 * seconds  # less by the first burst, more on a busy machine


def test_packets_are_counted_one_by_one_as_a_cable_carries_them() -> None:
    size = 1_448 * 100  # 100 full segments with TCP's timestamps
    with network("delay=0ms") as hosts, streams(hosts, 0, [1]) as ends:
        carry(ends[0], size)
        with inside(hosts.netns["node-000"]):
            sent_bytes, packets = counters(MESH_INTERFACE)
    assert 100 <= packets <= 115  # handshake, acknowledgements and a segment or two cut short
    assert size + 100 * 66 <= sent_bytes <= size + 115 * 80


def test_only_the_laboratory_reaches_every_node_and_nobody_reaches_the_machine() -> None:
    code = (
        "import socket, sys; s = socket.socket(); s.settimeout(5)\n"
        "try: s.connect((sys.argv[1], 9))\n"
        "except OSError as exc: print(type(exc).__name__, exc.errno)"
    )

    def tried(where: str, address: str) -> str:
        with inside(where):
            return subprocess.run(
                [sys.executable, "-c", code, address], capture_output=True, text=True, check=True
            ).stdout.split()[0]

    with network("delay=0ms") as hosts:
        refused = "ConnectionRefusedError"  # a host that answers, and no port that listens
        assert tried(hosts.netns["node-000"], "10.77.0.2") == refused
        assert tried(hosts.netns["node-000"], "10.78.255.254") == refused
        assert tried(hosts.netns["coordinator"], "10.78.0.2") == refused
        assert tried(hosts.netns["coordinator"], "10.77.0.2") == "OSError"  # no route
        assert tried(hosts.netns["node-000"], "192.0.2.1") == "OSError"


def test_a_command_that_fails_is_named_with_what_it_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlag_lab.network.network._LABORATORY", "10.78.999.1")
    with pytest.raises(ConfigError, match=r"network: ip -batch -: .*10\.78\.999\.1"):
        Network(parse_network("delay=0ms"), parse_topology("path:2", seed=0)).__enter__()
