"""A network of its own for one command: what neighbors send to it waits at the gate.

    python -m dlag_lab.network.gate --network delay=20ms,loss=1% --port 5600 COMMAND ...

This process becomes the command; a child of it holds the packets that arrive over TCP to or from
the port, and nothing else: what the coordinator and the laboratory say is not delayed. Made for a
container, whose network namespace it changes and which it needs NET_ADMIN for. The rule is there
before the command begins, and without the child nothing passes: no packet goes undelayed.
"""

from __future__ import annotations

import argparse
import fcntl
import logging
import os
import shutil
import socket
import struct
import sys
from ipaddress import IPv4Interface
from itertools import islice
from random import Random
from typing import NoReturn

from dlag_lab.network.commands import command
from dlag_lab.network.emulator import Emulator, Fate, hurry
from dlag_lab.network.nfqueue import Queue
from dlag_lab.network.nftables import queue_port
from dlag_lab.network.qdiscs import htb
from dlag_lab.network.spec import NetworkSpec, parse_network
from dlag_node.errors import ConfigError
from dlag_node.process import EXIT_FAILED, EXIT_USAGE, set_up_logging

log = logging.getLogger(__name__)

_INTERFACE = "eth0"
_SIOCGIFADDR, _SIOCGIFNETMASK = 0x8915, 0x891B  # linux/sockios.h
_MOST_NEIGHBORS = 1_000  # a bridge of Linux has 1,023 ports


def main() -> NoReturn:
    """Change the network, then become the command; returns only where that cannot be done."""
    parser = argparse.ArgumentParser(prog="dlag-gate")
    parser.add_argument("--network", required=True)
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    set_up_logging("network", "info")
    try:
        if options.network:
            make_gate(parse_network(options.network), options.port)
    except ConfigError as exc:
        log.error("%s", exc)
        sys.exit(EXIT_USAGE)
    os.execvp(options.command[0], options.command)


def make_gate(spec: NetworkSpec, port: int) -> None:
    """The network of this namespace from now on, as long as this process lives."""
    if spec.rate is not None:
        for name in ("ip", "tc"):
            if shutil.which(name) is None:
                raise ConfigError(
                    f"network {spec}: a rate needs the command {name} (iproute2) in the image"
                )
        lines = [*htb(spec.rate, _INTERFACE, _possible_neighbors())]
        command(["ip", "link", "set", _INTERFACE, "gso_max_segs", "1"])  # paced one by one
        command(["tc", "-batch", "-"], lines)
    if spec.disturbs:
        try:
            queue = Queue()
            queue_port(port)
        except OSError as exc:
            raise ConfigError(
                f"network {spec}: {exc}: expected the capability NET_ADMIN, and a kernel with "
                "nf_tables, its iptables targets and netfilter queues"
            ) from exc
        _fork_keeper(queue, spec)
    log.info("packets to and from port %d: %s", port, spec)


def _possible_neighbors() -> list[str]:
    """Whom our interface may send to: an engine gives its network's addresses from the first on."""
    name = struct.pack("256s", _INTERFACE.encode("ascii"))
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            address, mask = (
                socket.inet_ntoa(fcntl.ioctl(any_socket, asked, name)[20:24])
                for asked in (_SIOCGIFADDR, _SIOCGIFNETMASK)
            )
    except OSError as exc:
        raise ConfigError(
            f"network: {_INTERFACE}: {exc.strerror}: expected an interface with an IPv4 address"
        ) from exc
    hosts = IPv4Interface(f"{address}/{mask}").network.hosts()
    return [str(host) for host in islice(hosts, _MOST_NEIGHBORS)]


def _fork_keeper(queue: Queue, spec: NetworkSpec) -> None:
    read, write = os.pipe()
    if os.fork():
        os.close(read)
        queue.close()
        os.set_inheritable(write, True)  # closed by the end of the command: then we end too
        return
    os.close(write)
    hurry()
    try:
        Emulator([queue], Fate(spec, Random())).serve(read)
    except OSError as exc:
        log.error("the network is gone: %s", exc)
        os._exit(EXIT_FAILED)
    os._exit(0)


if __name__ == "__main__":
    main()
