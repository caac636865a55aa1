"""25 hosts from the kit's files alone, each with its own data, address, keys and service.

Two fleets: one with keys, whose method is `tree`, and one in the clear, whose method is lazy and of
which everything that crosses the network is captured. `pytest -s` prints the bytes of a device.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from statistics import median

import numpy as np
import pytest

from dlag_lab.network.namespaces import inside
from dlag_lab.network.network import Network
from dlag_lab.network.spec import NetworkSpec
from dlag_node.data import Table, summarise
from dlag_node.graphs.topology import parse_topology
from dlag_node.problems import rows_of
from tests.networks.capture import Capture
from tests.networks.cohort import HOSTS, NAMES, PARTS, STRANGERS, X, agreed, pooled
from tests.networks.fleet import Fleet, Outcome, Sent
from tests.networks.rows import Haystack, telltales
from tests.networks.services import Device

pytestmark = pytest.mark.usefixtures("machine")

BOSS_FLAGS = ["--data=nodes", "--topology=grid:5x5", "--scale=standard", "--intercept=1"]
HEADERS = 14 + 20 + 32  # of a packet: Ethernet, IPv4, TCP with timestamps
HELLO = 130  # bytes, or Welcome; Done, Need and their like are shorter
CONTROL_FRAMES = 3  # a link and direction: Hello or Welcome, Done, and one more
HEARTBEAT = 10  # seconds


@dataclass(frozen=True, slots=True)
class Framing:
    """What ZeroMQ adds, in bytes (docs/protocol.md, section 4)."""

    frame: int
    opening: int  # of a link, the larger direction
    heartbeat: int  # of a link, the larger direction


@dataclass(frozen=True, slots=True)
class Ended:
    """A fleet whose services have all ended well."""

    name: str
    outcome: Outcome
    framing: Framing
    distance: float  # that the method leaves: largest |theta_i - theta*| of an entry
    files: list[set[str]]  # in /etc/dlag, of the coordinator and the hosts
    streams: list[bytes]  # what was captured


@pytest.fixture(scope="module")
def locked(machine: None, tmp_path_factory: pytest.TempPathFactory) -> Ended:  # noqa: ARG001
    """With keys on every socket; `tree` rests where f does not change any more in float64."""
    with Network(NetworkSpec(), parse_topology(f"complete:{HOSTS}", seed=0)) as network:
        fleet = Fleet(tmp_path_factory.mktemp("locked"), network, PARTS)
        fleet.provide(NAMES, [*BOSS_FLAGS, "--tol=1e-9"], ["--scale=standard"], keys=True)
        files = [_files(each) for each in (fleet.boss, *fleet.hosts)]
        outcome = fleet.run(keys=True)
    return Ended("tree, keys", outcome, Framing(35, 567, 42), 1e-7, files, [])


@pytest.fixture(scope="module")
def clear(machine: None, tmp_path_factory: pytest.TempPathFactory) -> Ended:  # noqa: ARG001
    """Without keys, and with two rows of patients that do travel."""
    with Network(NetworkSpec(), parse_topology(f"complete:{HOSTS}", seed=0)) as network:
        fleet = Fleet(tmp_path_factory.mktemp("clear"), network, PARTS)
        flags = [*BOSS_FLAGS, "--method=lazy-extra", "--tol=1e-9"]
        fleet.provide(NAMES, flags, ["--scale=standard"], keys=False)
        files = [_files(each) for each in (fleet.boss, *fleet.hosts)]
        with inside(network.switch):
            capture = Capture()
        try:
            outcome = fleet.run(keys=False)
            _say(STRANGERS[0].tobytes(), fleet.hosts[3], fleet.hosts[17], "10.77.0.18")
            text = ",".join(map(repr, STRANGERS[1].tolist())).encode()
            _say(text, fleet.hosts[9], fleet.boss, "10.78.255.254")
        finally:
            streams = capture.end()
    return Ended("lazy-extra, clear", outcome, Framing(2, 107, 9), 1e-8, files, streams)


@pytest.fixture(params=["locked", "clear"])
def ended(request: pytest.FixtureRequest) -> Ended:
    fleet: Ended = request.getfixturevalue(request.param)
    return fleet


def test_every_host_ends_with_the_optimum_of_all_data_together(ended: Ended) -> None:
    problem, theta_star = pooled()
    models = ended.outcome.models
    thetas = np.array([np.append(model.coefficients, model.intercept) for model in models])
    assert len(thetas) == HOSTS
    np.testing.assert_allclose(thetas, np.tile(theta_star, (HOSTS, 1)), atol=ended.distance)
    np.testing.assert_allclose(thetas, np.tile(thetas[0], (HOSTS, 1)), atol=ended.distance)
    best = problem.value(theta_star)
    assert max(problem.value(theta) for theta in thetas) - best < 1e-14  # f is about 0.4
    for i, model in enumerate(models):
        assert model.provenance["node"] == i
        assert model.names == NAMES[:-1]
        np.testing.assert_allclose(model.shift, X.mean(axis=0), rtol=1e-12)
    for i in range(HOSTS):  # nobody's part could have been left out
        _, without = pooled([*PARTS[:i], *PARTS[i + 1 :]])
        assert np.abs(without - theta_star).max() > 1e-3


def test_a_host_has_its_own_secret_and_no_other(locked: Ended, clear: Ended) -> None:
    own = {"node.toml", "samples.csv"}
    assert locked.files[0] == {"coordinator.toml", "coordinator.key", "admitted"}
    assert locked.files[1:] == [own | {"node.key", "coordinator.pub"}] * HOSTS
    assert clear.files == [{"coordinator.toml"}, *[own] * HOSTS]


def test_no_row_is_in_what_crossed_the_network(clear: Ended) -> None:
    haystack = Haystack(clear.streams)
    sent = [*clear.outcome.mesh, *clear.outcome.management]
    assert sum(map(len, clear.streams)) > 0.95 * sum(map(written, sent))  # nothing escaped it
    rows = np.vstack([STRANGERS, X])
    scaled = agreed().rows(rows_of(rows)).matrix()[:, : X.shape[1]]
    travelled = [
        i for i in range(len(rows)) if haystack.has(telltales(np.vstack([rows[i], scaled[i]])))
    ]
    assert travelled == [0, 1]  # those that were sent on purpose: the search finds what there is
    for part in PARTS:  # and the means, which every operator agreed to tell
        spread = summarise(Table(rows_of(part[:, :-1]), part[:, -1]), "standard", who="it").spread
        assert spread is not None
        assert haystack.has([spread.first])
        assert haystack.has([spread.second])


def test_the_kernel_counted_what_the_ledgers_did_and_little_beside(ended: Ended) -> None:
    links = [sum(1 for _ in _around(node)) for node in range(HOSTS)]
    frames, octets = [], []
    for node, records in enumerate(ended.outcome.records):
        frames.append(sum(each.deltas + each.skips for each in records))
        octets.append(sum(each.sent_bytes for each in records))
        claimed = octets[-1] + ended.framing.frame * frames[-1]
        control = CONTROL_FRAMES * (ended.framing.frame + HELLO)
        seconds = _seconds(ended.outcome.logs[node])
        steady = ended.framing.heartbeat * (seconds // HEARTBEAT + 1)
        beside = ended.framing.opening + control + steady
        seen = written(ended.outcome.mesh[node])
        assert claimed < seen < 1.02 * claimed + links[node] * beside
    print(f"\n{ended.name}: {len(ended.outcome.records[0])} rounds")
    print("| bytes that a device sent | least | median | largest |")
    for what, numbers in (
        ("frames of rounds, by its ledger", octets),
        ("to neighbors, by the kernel", [each.octets for each in ended.outcome.mesh]),
        ("to the coordinator, by the kernel", [each.octets for each in ended.outcome.management]),
    ):
        print(f"| {what} | {min(numbers):,} | {median(numbers):,.0f} | {max(numbers):,} |")


def written(sent: Sent) -> int:
    """What was given to the sockets: TCP's payload."""
    return sent.octets - HEADERS * sent.packets


def _around(node: int) -> Iterator[int]:
    """The neighbors in the grid of 5 x 5."""
    row, column = divmod(node, 5)
    for r, c in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
        if 0 <= r < 5 and 0 <= c < 5:
            yield 5 * r + c


def _seconds(log: str) -> float:
    """From where neighbors could call until the end, rounded up."""
    stamp = r"^(\S+ \S+),\d+ \S+ INFO "
    begun, done = (re.search(stamp + word, log, re.M) for word in ("neighbors reach us", "done: "))
    assert begun is not None
    assert done is not None
    return (datetime.fromisoformat(done[1]) - datetime.fromisoformat(begun[1])).total_seconds() + 1


def _files(device: Device) -> set[str]:
    return {path.name for path in device.settings.iterdir()}


def _say(words: bytes, here: Device, there: Device, address: str) -> None:
    """Over the network, from one host to another."""
    with inside(there.netns):
        listener = socket.create_server((address, 0))
    with listener, inside(here.netns):
        caller = socket.create_connection(listener.getsockname(), timeout=10)
        with caller, listener.accept()[0] as callee:
            caller.sendall(words)
            assert callee.recv(len(words), socket.MSG_WAITALL) == words
