"""The network: can others be reached, and can we be?"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable
from time import perf_counter

from dlag_node.doctor.finding import Finding, fail, ok, warn
from dlag_node.errors import ConfigError
from dlag_node.net.sockets import host_and_port

_PATIENCE = 5.0  # seconds for a connection
_SLOW = 1.0


def check_reach(check: str, address: str | None) -> Finding:
    """Whether a TCP connection to tcp://host:port opens, and in which time."""
    if address is None:
        return warn(check, "no address", f"give --{check}")
    began = perf_counter()
    try:
        host, port = host_and_port(address)
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE):
            took = perf_counter() - began
    except ConfigError as exc:
        return fail(check, str(exc), "write it so")
    except socket.gaierror as exc:
        return fail(check, f"{address}: {exc.strerror}", "is the name right, is there a resolver?")
    except OSError as exc:
        return fail(check, f"{address}: {exc.strerror or exc}", _remedy(exc))
    value = f"{address}: open in {took * 1e3:.1f} ms"
    return ok(check, value) if took < _SLOW else warn(check, value, "a slow way: rounds wait")


def check_neighbors(addresses: Iterable[str]) -> list[Finding]:
    """The same for every neighbor that was named."""
    return [check_reach("neighbor", address) for address in addresses]


def check_port(bind: str) -> Finding:
    """Whether we could listen where the settings say."""
    try:
        host, port = host_and_port(bind, wildcard=True)
    except ConfigError as exc:
        return fail("port", str(exc), "write it so")
    name = "" if host == "*" else host.strip("[]")
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((name, 0 if port == "*" else int(port)))
            probe.listen()
    except OSError as exc:
        return fail("port", f"{bind}: {exc.strerror or exc}", _bind_remedy(exc))
    if name.startswith("127."):
        return warn("port", f"{bind}: free", "only this machine reaches it: bind elsewhere")
    return ok("port", f"{bind}: free")


def _remedy(exc: OSError) -> str:
    if isinstance(exc, ConnectionRefusedError):
        return "nobody listens there: is it started, is the port right?"
    if isinstance(exc, TimeoutError):
        return "no answer: a firewall, another network, or the wrong address"
    return "no way there: look at the routes (ip route) and the cable"


def _bind_remedy(exc: OSError) -> str:
    if exc.errno == errno.EADDRINUSE:
        return "another program has it (ss -ltnp): take another port, or *"
    if exc.errno == errno.EADDRNOTAVAIL:
        return "this machine has no such address (ip address): take one of its own, or 0.0.0.0"
    return "a port above 1023 needs no rights"
