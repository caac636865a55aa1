"""`dlag-network`: holds, spreads and loses packets, where the kernel has no netem to do it.

In every host's namespace a rule sends what arrives on the mesh's interface to a netfilter queue.
This process sets each packet free when its time has come. It is a child of the nursery like the
nodes, and without it nothing passes: packets can be lost by its end, but never go undelayed.
"""

from __future__ import annotations

import argparse
import heapq
import logging
import os
import select
import signal
import sys
from contextlib import suppress
from random import Random
from time import monotonic, process_time

from dlag_lab.network.namespaces import inside
from dlag_lab.network.nfqueue import Packet, Queue
from dlag_lab.network.spec import NetworkSpec, parse_network
from dlag_node.process import EXIT_TERMINATED, run_command, set_up_logging

log = logging.getLogger(__name__)

_REALTIME_PRIORITY = 1  # a late wake-up is delay that nobody asked for
_NICE = -15


class Fate:
    """What happens to a packet: when it goes on, or that it never does."""

    def __init__(self, spec: NetworkSpec, random: Random) -> None:
        self._spec = spec
        self._random = random
        self._last: dict[tuple[int, bytes], float] = {}

    def due(self, now: float, host: int, sender: bytes) -> float | None:
        """When a packet of this link goes on; None: it is lost.

        Jitter spreads the packets of a link but never swaps two of them.
        """
        spec = self._spec
        if spec.loss and self._random.random() < spec.loss:
            return None
        held = spec.delay
        if spec.jitter:
            held += self._random.uniform(-spec.jitter, spec.jitter)
        link = host, sender
        due = self._last[link] = max(now + held, self._last.get(link, 0.0))
        return due


class Emulator:
    """Takes packets out of every host's queue and sets them free in the order of their times."""

    def __init__(self, queues: list[Queue], fate: Fate) -> None:
        self._queues = queues
        self._fate = fate
        self._waiting: list[tuple[float, int, int, Packet]] = []  # due, count, host, packet
        self.held = self.lost = 0
        self.late_sum = self.late_most = 0.0  # seconds

    def serve(self, *stops: int) -> None:
        """Until one of these descriptors becomes readable."""
        with select.epoll() as epoll:
            hosts = {queue.fileno(): host for host, queue in enumerate(self._queues)}
            for descriptor in (*hosts, *stops):
                epoll.register(descriptor, select.EPOLLIN)
            while True:
                # select keeps microseconds where epoll's own wait rounds up to milliseconds
                select.select([epoll.fileno()], [], [], self._pause())
                for descriptor, _ in epoll.poll(0):
                    host = hosts.get(descriptor)
                    if host is None:
                        return
                    self._take(host)
                self._set_free()

    def _pause(self) -> float | None:
        return max(0.0, self._waiting[0][0] - monotonic()) if self._waiting else None

    def _take(self, host: int) -> None:
        for packet in self._queues[host].arrived():
            due = self._fate.due(monotonic(), host, packet.sender)
            if due is None:
                self.lost += 1
                self._queues[host].drop(packet)
            else:
                self.held += 1
                heapq.heappush(self._waiting, (due, self.held, host, packet))

    def _set_free(self) -> None:
        now = monotonic()
        while self._waiting and self._waiting[0][0] <= now:
            due, _, host, packet = heapq.heappop(self._waiting)
            self._queues[host].release(packet)
            self.late_sum += now - due
            self.late_most = max(self.late_most, now - due)


def run(argv: list[str]) -> int:
    """The process; its exit code is never 0, since a mesh without its network has failed."""
    return run_command(_emulate, argv, "dlag-network")


def _emulate(argv: list[str], prog_name: str) -> None:
    parser = argparse.ArgumentParser(prog=prog_name)
    parser.add_argument("--network", required=True, type=parse_network)
    parser.add_argument("--announce", required=True, type=int)
    parser.add_argument("--lifeline", type=int)
    parser.add_argument("namespaces", nargs="+")
    options = parser.parse_args(argv)
    begun = process_time()
    set_up_logging("network", "info")
    stop, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    hurry()
    queues = [_opened(path) for path in options.namespaces]
    emulator = Emulator(queues, Fate(options.network, Random()))
    os.write(options.announce, b"ready\n")
    log.info("%d hosts: %s", len(queues), options.network)
    emulator.serve(stop, *([] if options.lifeline is None else [options.lifeline]))
    log.info(
        "held %d packets, lost %d; set free %.3f ms late on average, %.1f ms at most; %.2f s CPU",
        emulator.held,
        emulator.lost,
        1e3 * emulator.late_sum / max(1, emulator.held),
        1e3 * emulator.late_most,
        process_time() - begun,
    )
    sys.exit(EXIT_TERMINATED)


def _opened(path: str) -> Queue:
    with inside(path):
        return Queue()


def hurry() -> None:
    """Before everybody else: otherwise the nodes' computing would be added to the delays."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(_REALTIME_PRIORITY))
    except OSError:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, _NICE)
