"""The gate before one port: what goes through it waits, what goes beside it does not."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import pytest

from dlag_lab.network.namespaces import inside, new_namespace, path_of

pytestmark = pytest.mark.usefixtures("machine")

GATE = [sys.executable, "-m", "dlag_lab.network.gate"]
DEADLINE = 60.0
DELAY = 0.05

# both ends of a connection on this port, and how long ten bytes take there and back
ROUND_TRIP = """
import json, socket, sys, time
answers = []
for port in map(int, sys.argv[1:]):
    server = socket.create_server(("127.0.0.1", port))
    near = socket.create_connection(("127.0.0.1", port))
    far, _ = server.accept()
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        near.sendall(b"0123456789")
        far.sendall(far.recv(100))
        near.recv(100)
        times.append(time.perf_counter() - begun)
    answers.append(min(times))
print(json.dumps(answers))
"""


def through_gate(network: str, *argv: str) -> subprocess.CompletedProcess[str]:
    """A command behind a gate before port 5600, in a namespace of its own with loopback alone."""
    gate = [*GATE, "--network", network, "--port", "5600"]
    namespace = new_namespace()
    try:
        with inside(path_of(namespace)):
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            return subprocess.run(
                [*gate, *argv], capture_output=True, text=True, timeout=DEADLINE, check=False
            )
    finally:
        os.close(namespace)


def test_packets_of_the_port_wait_and_others_do_not() -> None:
    network = f"delay={1e3 * DELAY:g}ms"
    done = through_gate(network, sys.executable, "-c", ROUND_TRIP, "5600", "5555")
    assert done.returncode == 0, done.stderr
    behind, beside = json.loads(done.stdout)
    assert behind >= 2 * DELAY
    assert beside < 2 * DELAY
    assert "packets to and from port 5600: delay=50ms" in done.stderr


def test_lost_packets_are_sent_again_and_the_command_keeps_its_exit_code() -> None:
    script = ROUND_TRIP + "sys.exit(7)"
    done = through_gate("delay=1ms,loss=5%", sys.executable, "-c", script, "5600")
    assert done.returncode == 7, done.stderr
    assert json.loads(done.stdout)[0] >= 0.002


@pytest.mark.parametrize(
    ("network", "words"), [("delay=3", "expected a number"), ("speed=1", "'speed=1'")]
)
def test_a_network_that_is_none_ends_before_the_command_begins(network: str, words: str) -> None:
    done = through_gate(network, "echo", "begun")
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == ""


def test_no_network_is_no_gate() -> None:
    done = through_gate("", "echo", "begun")
    assert (done.returncode, done.stdout, done.stderr) == (0, "begun\n", "")


SEND = """
import socket, sys
ends = [socket.create_connection(each.split(":")) for each in sys.argv[1:]]
for end in ends:  # into the kernel's buffers, all at once
    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    end.sendall(bytes(100_000))
for end in ends:
    end.shutdown(socket.SHUT_WR)
    end.recv(1)
"""


def test_every_link_behind_the_gate_has_a_rate_of_its_own() -> None:
    near, far = new_namespace(), new_namespace()
    try:
        with inside(path_of(near)):
            for line in (
                f"link add eth0 type veth peer name eth0 netns {path_of(far)}",
                "address add 10.0.0.1/24 dev eth0",
                "link set eth0 up",
            ):
                subprocess.run(["ip", *line.split()], check=True)
        with inside(path_of(far)):
            for address in ("10.0.0.2", "10.0.0.3"):
                argv = ["ip", "address", "add", f"{address}/24", "dev", "eth0"]
                subprocess.run(argv, check=True)
            subprocess.run(["ip", "link", "set", "eth0", "up"], check=True)
            servers = [socket.create_server((each, 5600)) for each in ("10.0.0.2", "10.0.0.3")]
        with inside(path_of(near)), ThreadPoolExecutor() as pool:
            send = [sys.executable, "-c", SEND, "10.0.0.2:5600", "10.0.0.3:5600"]
            gate = subprocess.Popen([*GATE, "--network", "rate=1mbit", "--port", "5600", *send])
            took = [*pool.map(taken, servers)]
            assert gate.wait(DEADLINE) == 0
    finally:
        os.close(near)
        os.close(far)
    # 0.836 s with headers, less by the first burst; 1.672 s if they shared one link
    assert 0.75 < min(took) <= max(took) < 1.5


def taken(server: socket.socket) -> float:
    """Seconds from a connection's beginning to its last byte."""
    server.settimeout(DEADLINE)
    with server, server.accept()[0] as end:
        end.settimeout(DEADLINE)
        begun = perf_counter()
        while end.recv(1 << 16):
            pass
        return perf_counter() - begun


def test_a_rate_without_an_interface_to_pace_is_refused() -> None:
    done = through_gate("rate=1mbit", "echo", "begun")
    assert done.returncode == 2
    assert "eth0: No such device: expected an interface with an IPv4 address" in done.stderr
    assert done.stdout == ""
