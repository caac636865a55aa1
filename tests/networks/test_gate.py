"""The gate before one port: what goes through it waits, what goes beside it does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from dlag_lab.network.namespaces import inside, new_namespace, path_of

pytestmark = pytest.mark.usefixtures("machine")

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
    gate = [sys.executable, "-m", "dlag_lab.network.gate", "--network", network, "--port", "5600"]
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
    done = through_gate("delay=1ms,loss=20%", sys.executable, "-c", script, "5600")
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
