"""A wire between a caller and whom it calls, on loopback: it keeps what was said, can be cut."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_CHUNK = 65_536


class Proxy:
    """Listens at `front` for who listens at `back`; `carried` is called after every chunk."""

    def __init__(self, back: str, carried: Callable[[], None] = lambda: None) -> None:
        self._back = back.removeprefix("tcp://").split(":")
        self._carried = carried
        self.said: list[tuple[bytearray, bytearray]] = []  # a connection: by the caller, the called
        self.ended: list[bool] = []  # a connection: whether the called end has closed it
        self.frozen = False
        self._live: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self) -> str:
        """Returns `front`."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return "tcp://{}:{}".format(*self._server.sockets[0].getsockname())

    def cut(self) -> None:
        """All connections are reset; whoever calls after that gets through."""
        for writer in self._live:
            writer.transport.abort()
        self._live.clear()

    async def close(self) -> None:
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, heard: asyncio.StreamReader, caller: asyncio.StreamWriter) -> None:
        host, port = self._back
        try:
            answer, called = await asyncio.open_connection(host, int(port))
        except OSError:
            caller.transport.abort()
            return
        self._live += [caller, called]
        forth, back = bytearray(), bytearray()
        self.said.append((forth, back))
        self.ended.append(False)
        for each in (
            self._carry(heard, called, forth, len(self.ended) - 1, by_called=False),
            self._carry(answer, caller, back, len(self.ended) - 1, by_called=True),
        ):
            self._tasks.add(asyncio.ensure_future(each))

    async def _carry(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        said: bytearray,
        connection: int,
        *,
        by_called: bool,
    ) -> None:
        try:
            while chunk := await source.read(_CHUNK):
                if not self.frozen:
                    said += chunk
                    sink.write(chunk)
                self._carried()
        except OSError:
            pass
        if by_called:
            self.ended[connection] = True
        if not self.frozen:
            sink.transport.abort()
        self._carried()
