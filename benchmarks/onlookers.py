"""Those who look at a mesh, as processes of their own: a scraper, `dlag watch` and a browser."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from time import time
from urllib.request import urlopen

import psutil
from twins import MESHES, NODES, port_of, shown_at

SCRAPE_SECONDS = 15.0  # deploy/prometheus/prometheus.yml


def scrape() -> None:
    """Ask every node of the mesh that is looked at, as Prometheus does, until we are ended.

    Half as often, and only where somebody answers.
    """

    async def ask(node: int) -> None:
        await asyncio.sleep(MESHES * SCRAPE_SECONDS * node / NODES)  # one after the other
        while True:
            with suppress(OSError):
                port = port_of(shown_at(time()), node)
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"GET /metrics HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n")
                await reader.read()
                writer.close()
            await asyncio.sleep(MESHES * SCRAPE_SECONDS)

    async def ask_all() -> None:
        await asyncio.gather(*map(ask, range(NODES)))

    asyncio.run(ask_all())


def look(url: str) -> None:
    """A browser that takes in all it is told."""
    with urlopen(f"{url}events") as events:
        while events.read1():
            pass


@contextmanager
def onlookers() -> Iterator[tuple[str, Callable[[], float]]]:
    """A scraper, `dlag watch` and a browser: where nodes are to publish, and their CPU seconds."""
    dlag = [sys.executable, "-c", "from dlag_lab.cli import main; main()"]
    watch = subprocess.Popen(
        [*dlag, "watch", "--listen", "tcp://127.0.0.1:*", "--page", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watch.stdout is not None
    words = watch.stdout.readline().replace(",", "").split()
    url = next(word for word in words if word.startswith("http"))
    fork = get_context("fork")
    others = [fork.Process(target=scrape), fork.Process(target=look, args=(url,))]
    for each in others:
        each.start()
    everyone = [psutil.Process(pid) for pid in (watch.pid, *(each.pid for each in others))]
    try:
        yield (
            next(word for word in words if word.startswith("tcp")),
            lambda: sum(sum(each.cpu_times()[:2]) for each in everyone),
        )
    finally:
        for each in others:
            each.kill()
            each.join()
        watch.send_signal(signal.SIGINT)
        watch.wait()
