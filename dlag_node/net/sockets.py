"""ZeroMQ sockets as this program uses them: plain ones, with their settings in one place.

Sockets are driven from the event loop by their file descriptor, with no future per message. That
descriptor tells of edges only: a receive or a send may eat the edge while messages still wait. So
whoever sleeps on it looks at `readable` first, after every send.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from contextlib import suppress

import zmq

from dlag_node.errors import ConfigError
from dlag_node.trust.curve import key_of

# As plain integers: an enum costs a microsecond of arithmetic a call.
POLLIN = int(zmq.POLLIN)
NOBLOCK = int(zmq.NOBLOCK)
RCVMORE = int(zmq.RCVMORE)
SNDMORE = int(zmq.SNDMORE)

_RECONNECT_MS = 50
_RECONNECT_MAX_MS = 1_000
_ADDRESS = re.compile(
    r"tcp://(?P<host>\[[0-9A-Fa-f:.]+\]|[^\x00-\x20\x7f/?#@:;\[\]]+):(?P<port>\*|[0-9]{1,5})"
)
_LAST_PORT = 65_535
_EVERYWHERE = ("0.0.0.0", "*")
_RECEIVE_AHEAD = 1_000  # messages of one peer that wait here; then it waits, by TCP
_PLAIN_ADDRESS = re.compile(_ADDRESS.pattern.removeprefix("tcp://"))
LINGER_MS = 2_000  # closing at once after sending would lose frames
HEARTBEAT = 10.0  # seconds
_MOST_HEARTBEAT = 2_000.0  # ZMTP says three times that in tenths of a second, in 16 bits
_LEAST_HEARTBEAT = 0.1
_MISSED = 3  # heartbeats without an answer: the connection is given up

Socket = zmq.Socket[bytes]


def open_socket(context: zmq.Context[Socket], kind: int, *, limit: int) -> Socket:
    """A socket with our settings; `limit` is the largest message it takes from a peer.

    Connections that it takes have no heartbeats of their own, those that it makes have them after
    `keep_alive`: who is called answers, and that is enough for both.
    """
    opened = context.socket(kind)
    opened.setsockopt(zmq.SNDHWM, 0)  # the barrier bounds the queues
    opened.setsockopt(zmq.RCVHWM, _RECEIVE_AHEAD)
    opened.setsockopt(zmq.LINGER, LINGER_MS)
    opened.setsockopt(zmq.MAXMSGSIZE, limit)
    opened.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_MS)
    opened.setsockopt(zmq.RECONNECT_IVL_MAX, _RECONNECT_MAX_MS)
    if kind == zmq.ROUTER:
        opened.setsockopt(zmq.ROUTER_MANDATORY, 1)  # a frame to nobody is an error, not a loss
    return opened


def check_heartbeat(seconds: float) -> None:
    """A ConfigError unless connections can be kept alive so often; 0 is never."""
    if seconds != 0 and not _LEAST_HEARTBEAT <= seconds <= _MOST_HEARTBEAT:
        raise ConfigError(
            f"heartbeat = {seconds}: expected {_LEAST_HEARTBEAT:g} to {_MOST_HEARTBEAT:g} seconds, "
            "or 0 for none"
        )


def keep_alive(opened: Socket, seconds: float) -> None:
    """Ping on the connections that are made from now on, so often; 0: never.

    libzmq takes a socket's options as they are at bind and connect. Who is called hears in each
    ping for how long it may be left without another word.
    """
    opened.setsockopt(zmq.HEARTBEAT_IVL, round(1e3 * seconds))
    opened.setsockopt(zmq.HEARTBEAT_TIMEOUT, round(_MISSED * 1e3 * seconds))
    opened.setsockopt(zmq.HEARTBEAT_TTL, round(_MISSED * 1e3 * seconds))


zmq_poll = zmq.zmq_poll
send = zmq.backend.Socket.send  # past the wrapper, which costs as much again as the sending


def readable(opened: Socket) -> bool:
    """Whether a message waits; this look also re-arms the descriptor's edge."""
    return bool(zmq_poll([(opened, POLLIN)], 0))


def rest_of_message(opened: Socket) -> list[bytes]:
    """The parts of the message under way that have not been received yet."""
    parts: list[bytes] = []
    while opened.getsockopt(RCVMORE):
        parts.append(opened.recv(NOBLOCK))
    return parts


def rest_with_key(opened: Socket) -> tuple[list[bytes], bytes | None]:
    """The same, and the key of the connection that they came by; None: it has none."""
    if not opened.getsockopt(RCVMORE):
        return [], None
    first: zmq.Frame = opened.recv(NOBLOCK, copy=False)
    return [first.bytes, *rest_of_message(opened)], key_of(first)


def bind(opened: Socket, address: str, *, rather: str | None = None) -> str:
    """Bind, and return the address with its port; a ConfigError says why it cannot be.

    `rather` is tried first, and may be taken by somebody else.
    """
    check_address(address, wildcard=True)
    if rather is not None:
        with suppress(ConfigError):
            return bind(opened, rather)
    try:
        opened.bind(address)
    except zmq.ZMQError as exc:
        raise ConfigError(f"cannot listen on {address}: {exc}") from exc
    return opened.getsockopt_string(zmq.LAST_ENDPOINT)


def check_address(address: str, *, wildcard: bool = False) -> None:
    """A ConfigError unless `address` reads tcp://host:port (or :* where that is allowed)."""
    host_and_port(address, wildcard=wildcard)


def page_address(address: str) -> tuple[str, int]:
    """The two parts of host:port, as HTTP servers have it; a ConfigError for anything else."""
    match = _PLAIN_ADDRESS.fullmatch(address)
    if match is None or match["port"] == "*" or int(match["port"]) > _LAST_PORT:
        raise ConfigError(
            f"address {address!r:.200}: expected host:port, for instance 127.0.0.1:9100; "
            "port 0 is any free one"
        )
    return match["host"], int(match["port"])


def port_of(address: str) -> str:
    """The port of tcp://host:port."""
    return host_and_port(address)[1]


def is_address(address: str) -> bool:
    """Whether `address` reads tcp://host:port."""
    try:
        check_address(address)
    except ConfigError:
        return False
    return True


async def resolved(address: str) -> str:
    """`address` with its host looked up here: inside libzmq a slow look-up stalls all links."""
    host, port = host_and_port(address)
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        loop = asyncio.get_running_loop()
        try:
            # IPv4, as our sockets: "localhost" may name ::1 first, where nobody listens
            found = await loop.getaddrinfo(
                host, int(port), family=socket.AF_INET, type=socket.SOCK_STREAM
            )
        except (OSError, UnicodeError) as exc:  # a name that no resolver takes is a UnicodeError
            raise ConfigError(f"address {address!r}: cannot look up {host!r}: {exc}") from exc
        host = str(found[0][4][0])
    return f"tcp://{host}:{port}"


def reached_at(bound: str, endpoint: str) -> str:
    """Where others reach who is bound to `bound`: there, unless that is every address we have.

    Then it is our own address on the way to `endpoint`, which stands for the others: a container
    need not be told its address. Connecting a UDP socket sends nothing, it asks for the route.
    """
    host, port = host_and_port(bound)
    if host not in _EVERYWHERE:
        return bound
    far, far_port = host_and_port(endpoint)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((far, int(far_port)))
        except OSError as exc:
            raise ConfigError(f"no route to {endpoint}: {exc}: give --advertise") from exc
        return f"tcp://{probe.getsockname()[0]}:{port}"


def host_and_port(address: str, *, wildcard: bool = False) -> tuple[str, str]:
    """The parts of tcp://host:port; a ConfigError where it reads otherwise."""
    match = _ADDRESS.fullmatch(address)
    good_port = match and (wildcard if match["port"] == "*" else int(match["port"]) <= _LAST_PORT)
    if match is None or not good_port:
        raise ConfigError(f"address {address!r:.200}: expected tcp://host:port")
    return match["host"], match["port"]
