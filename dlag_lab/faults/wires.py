"""Wires that can be cut: every node is reached through a proxy that misbehaves when told to.

A node listens on a loopback address of its own and advertises its proxy's; so each edge of the mesh
passes one proxy. The proxies live in a thread with an event loop of its own.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from types import TracebackType
from typing import Any

from dlag_lab.network.hosts import LOOPBACK

_CHUNK = 1 << 16
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER of no time: closing sends a reset
_PATIENCE_SECONDS = 10.0


class Wire:
    """The way to one node: forwards bytes both ways, unless it is told to do worse."""

    def __init__(self, front: str, back: str, port: int) -> None:
        self._front, self._back, self._port = front, back, port
        self._open = asyncio.Event()
        self._open.set()
        self._delay = 0.0
        self._twice = self._torn = False
        self._pumps: set[asyncio.Task[None]] = set()

    async def listen(self) -> None:
        """Take connections for the node."""
        self._server = await asyncio.start_server(self._accept, self._front, self._port)

    def cut(self, seconds: float) -> None:
        """Let nothing through, and tell nobody: both ends keep connections that lead nowhere."""
        self._open.clear()
        asyncio.get_running_loop().call_later(seconds, self._open.set)

    def delay(self, seconds: float, *, for_seconds: float) -> None:
        """Hold everything for a while, for a while."""
        self._delay = seconds
        asyncio.get_running_loop().call_later(for_seconds, self._hurry)

    def duplicate(self) -> None:
        """Let the next bytes through twice: frames, as each write of libzmq's holds whole ones."""
        self._twice = True

    def tear(self) -> None:
        """Let half of the next bytes through, and reset the connection in the middle of a frame."""
        self._torn = True

    async def close(self) -> None:
        """End every connection."""
        self._server.close()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    def _hurry(self) -> None:
        self._delay = 0.0

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._open.wait()
            their_reader, their_writer = await asyncio.open_connection(self._back, self._port)
        except (OSError, asyncio.CancelledError):  # the node is down: so is its wire
            writer.transport.abort()
            return
        ends = writer, their_writer
        for source, sink in ((reader, their_writer), (their_reader, writer)):
            pump = asyncio.ensure_future(self._pump(source, sink, ends))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        ends: tuple[asyncio.StreamWriter, ...],
    ) -> None:
        """One direction of one connection; when it ends, so does the other."""
        with suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                await self._open.wait()
                if self._delay:
                    await asyncio.sleep(self._delay)
                if self._torn:
                    self._torn = False
                    writer.write(chunk[: len(chunk) // 2])
                    for end in ends:
                        _reset(end)
                    break
                writer.write(chunk)
                if self._twice:
                    self._twice = False
                    writer.write(chunk)
                await writer.drain()
        for end in ends:
            end.close()


class Wires:
    """Hosts for a mesh: all on loopback, each behind its wire."""

    laboratory = LOOPBACK
    netns: Mapping[str, str] = {}
    emulator: Sequence[str] = ()

    def __init__(self, nodes: int, environment: Mapping[str, str] | None = None) -> None:
        self._nodes = nodes
        self.environment = dict(environment or {})
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        with socket.create_server((_front(0), 0)) as probe:
            self._port = probe.getsockname()[1]

    def __enter__(self) -> Wires:
        self._thread.start()
        self.wires = [Wire(_front(i), _back(i), self._port) for i in range(self._nodes)]
        for wire in self.wires:
            self._wait_for(wire.listen())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for wire in self.wires:
            self._wait_for(wire.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE_SECONDS)
        self._loop.close()

    def node(self, node: int, /) -> str:
        """Behind the wire."""
        return f"tcp://{_back(node)}:{self._port}"

    def advertised(self, node: int, /) -> str:
        """Before the wire."""
        return f"tcp://{_front(node)}:{self._port}"

    def at_laboratory(self) -> AbstractContextManager[None]:
        """We are there already."""
        return nullcontext()

    def counted(self) -> dict[str, Any] | None:
        """Loopback carries everybody's packets."""
        return None

    def tell(self, deed: Callable[[], object]) -> None:
        """Do something to a wire, in its thread."""
        self._loop.call_soon_threadsafe(deed)

    def _wait_for(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE_SECONDS)


def _front(node: int) -> str:
    return f"127.2.{node // 200}.{node % 200 + 1}"


def _back(node: int) -> str:
    return f"127.1.{node // 200}.{node % 200 + 1}"


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
