"""A network of its own for one command: what neighbors send to it waits at the gate.

    python -m dlag_lab.network.gate --network delay=20ms,loss=1% --port 5600 COMMAND ...

This process becomes the command; a child of it holds the packets that arrive over TCP to or from
the port, and nothing else: what the coordinator and the laboratory say is not delayed. Made for a
container, whose network namespace it changes and which it needs NET_ADMIN for. The rule is there
before the command begins, and without the child nothing passes: no packet goes undelayed.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
from random import Random
from typing import NoReturn

from dlag_lab.network.commands import command
from dlag_lab.network.emulator import Emulator, Fate, hurry
from dlag_lab.network.nfqueue import Queue
from dlag_lab.network.nftables import queue_port
from dlag_lab.network.qdiscs import tbf
from dlag_lab.network.spec import NetworkSpec, parse_network
from dlag_node.errors import ConfigError
from dlag_node.process import EXIT_FAILED, EXIT_USAGE, set_up_logging

log = logging.getLogger(__name__)

_INTERFACE = "eth0"


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
        if shutil.which("tc") is None:
            raise ConfigError(
                f"network {spec}: a rate needs the command tc (iproute2) in the image"
            )
        command(tbf(spec.rate, _INTERFACE))
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
