"""Addresses that can be used, addresses that cannot, and sockets that are taken."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import zmq

from dlag_node.errors import ConfigError
from dlag_node.net.sockets import Socket, bind, check_address, open_socket, reached_at, resolved


@pytest.fixture
def context() -> Iterator[zmq.Context[Socket]]:
    made: zmq.Context[Socket] = zmq.Context()
    yield made
    made.destroy(linger=0)


@pytest.mark.parametrize(
    "address",
    [
        "tcp://127.0.0.1:5555",
        "tcp://[::1]:5555",
        "tcp://localhost:1",
        "tcp://node-7.mesh_net:65535",
        "tcp://gerät.example:80",
    ],
)
def test_a_good_address_passes(address: str) -> None:
    check_address(address)
    check_address(address, wildcard=True)


@pytest.mark.parametrize("address", ["tcp://*:*", "tcp://127.0.0.1:*", "tcp://[::]:*"])
def test_any_port_is_for_those_who_listen(address: str) -> None:
    check_address(address, wildcard=True)
    with pytest.raises(ConfigError, match=f"^{re.escape(f'address {address!r}: expected')}"):
        check_address(address)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "tcp",
        "tcp://",
        "tcp://host",
        "tcp://:5",
        "tcp://host:",
        "tcp://host:-1",
        "tcp://host:+5",
        "tcp://host:5 ",
        "tcp://host:65536",
        "tcp://host:99999999",
        "tcp://host:" + "9" * 5_000,  # Python refuses to read so long a number
        "tcp://host:²",  # a digit, but no number
        "tcp://host:٣",  # a number, but none that a socket takes
        "tcp://host:five",
        "tcp://host:5\n",
        "tcp://ho\nst:5",
        "tcp://ho\0st:5",
        "tcp://ho st:5",
        "tcp://host:5/path",
        "tcp://host:5?query",
        "tcp://host:5#fragment",
        "tcp://user@host:5",
        "tcp://eth0:0;host:5",
        "tcp://[::1:5",
        "tcp://::1]:5",
        "tcp://[host]:5",
        "tcp://::1:5",
        "TCP://host:5",
        "udp://host:5",
        "ipc:///tmp/mesh",
        "inproc://mesh",
        "http://host:80",
        "host:5",
    ],
    ids=lambda address: ascii(address)[:30],
)
def test_a_bad_address_is_named(address: str) -> None:
    with pytest.raises(ConfigError) as error:
        check_address(address, wildcard=True)
    assert str(error.value).startswith(f"address {address!r:.200}")
    assert str(error.value).endswith(": expected tcp://host:port")


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("tcp://localhost:5555", "tcp://127.0.0.1:5555"),
        ("tcp://10.1.2.3:7", "tcp://10.1.2.3:7"),
        ("tcp://[::1]:7", "tcp://[::1]:7"),
    ],
)
async def test_a_host_is_looked_up(address: str, found: str) -> None:
    assert await resolved(address) == found


@pytest.mark.parametrize("host", ["nowhere.invalid", "a" * 64, "a..b"])
async def test_a_host_that_cannot_be_looked_up_is_named(host: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot look up '{re.escape(host)}'"):
        await resolved(f"tcp://{host}:5")


async def test_nobody_connects_to_any_port() -> None:
    with pytest.raises(ConfigError, match="expected tcp://host:port"):
        await resolved("tcp://127.0.0.1:*")


@pytest.mark.parametrize("port", ["*", "0"])
def test_the_real_port_is_told(context: zmq.Context[Socket], port: str) -> None:
    with open_socket(context, zmq.ROUTER, limit=100) as opened:
        address = bind(opened, f"tcp://127.0.0.1:{port}")
    assert re.fullmatch(r"tcp://127\.0\.0\.1:[1-9][0-9]*", address)


@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "boss.example"])
def test_who_listens_at_one_address_is_reached_there(host: str) -> None:
    assert reached_at(f"tcp://{host}:7", "tcp://127.0.0.1:5555") == f"tcp://{host}:7"


@pytest.mark.parametrize("host", ["0.0.0.0", "*"])
@pytest.mark.parametrize("far", ["127.0.0.1", "127.0.0.9"])
def test_who_listens_everywhere_is_reached_on_the_way_to_the_others(
    context: zmq.Context[Socket], host: str, far: str
) -> None:
    with open_socket(context, zmq.ROUTER, limit=100) as opened:
        bound = bind(opened, f"tcp://{host}:*")
        port = bound.rsplit(":", 1)[1]
        # nobody listens there, and nobody need to: no packet leaves
        assert reached_at(bound, f"tcp://{far}:9") == f"tcp://127.0.0.1:{port}"


def test_others_that_no_route_leads_to_are_named() -> None:
    nowhere = "tcp://255.255.255.255:9"  # a broadcast, which a socket may not do unasked
    with pytest.raises(ConfigError, match=f"no route to {nowhere}: .*: give --advertise"):
        reached_at("tcp://0.0.0.0:7", nowhere)


def test_an_address_in_use_is_named(context: zmq.Context[Socket]) -> None:
    with (
        open_socket(context, zmq.ROUTER, limit=100) as first,
        open_socket(context, zmq.ROUTER, limit=100) as second,
    ):
        address = bind(first, "tcp://127.0.0.1:*")
        with pytest.raises(ConfigError, match=f"cannot listen on {re.escape(address)}: .*in use"):
            bind(second, address)
