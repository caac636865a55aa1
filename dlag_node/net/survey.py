"""Who can be reached, and in which time: TCP connections that are opened and closed again."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Sequence
from time import perf_counter

from dlag_node.errors import ConfigError
from dlag_node.net.sockets import host_and_port, resolved

_PROBES = 3  # of which the fastest counts
_PATIENCE = 2.0  # seconds for one
_AT_ONCE = 32


async def probe(address: str) -> float:
    """Seconds that a connection to tcp://host:port took to open; an OSError where none did."""
    try:
        host, port = host_and_port(await resolved(address))
    except ConfigError as exc:
        raise OSError(errno.EHOSTUNREACH, str(exc)) from exc
    began = perf_counter()  # not the loop's clock: uvloop's has milliseconds
    try:
        async with asyncio.timeout(_PATIENCE):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except TimeoutError as exc:  # a kind of OSError, without a number
        raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)) from exc
    took = perf_counter() - began
    writer.close()
    return took


async def measure(addresses: Sequence[str], own: int) -> list[float]:
    """For every address the fastest of a few probes, or -errno; 0 for our own."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(node: int) -> float:
        if node == own:
            return 0.0
        best, failure = float("inf"), errno.ETIMEDOUT
        async with gate:
            for _ in range(_PROBES):
                try:
                    best = min(best, await probe(addresses[node]))
                except OSError as exc:
                    failure = exc.errno or errno.EHOSTUNREACH
                    if failure == errno.ETIMEDOUT:
                        break
        return best if best < float("inf") else -float(failure)

    return list(await asyncio.gather(*map(one, range(len(addresses)))))
