"""A wire between two nodes with a tap on it: every frame that crosses it is kept."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from threading import Thread
from types import TracebackType

from dlag_node.wire import Frame
from dlag_node.wire.codec import Codec

_GREETING = 64  # bytes: ZeroMQ's first words, each way
_LONG, _COMMAND = 2, 4  # flags of a ZeroMQ frame
_CHUNK = 1 << 16


class Tap:
    """Listens at `front` in place of a node, and passes on to `back`, where the node listens.

    The connection must be in the clear. `frames` has what was said, once both ends have gone.
    """

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        with socket.socket() as probe:  # the node binds it next; nobody else is told of it
            probe.bind(("127.0.0.1", 0))
            self.back = _address(probe)
        self.front = _address(self._server)
        self._said: list[tuple[bytearray, bytearray]] = []
        self._threads: list[Thread] = [Thread(target=self._accept)]

    def __enter__(self) -> Tap:
        self._threads[0].start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """The nodes have ended: nobody calls, and every connection is closed."""
        self._server.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._server.close()

    def frames(self, codec: Codec) -> tuple[list[Frame], list[Frame]]:
        """What the caller said and what the one that was called said, over one connection."""
        ((there, back),) = self._said
        return list(_decoded(there, codec)), list(_decoded(back, codec))

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._server.accept()
            except OSError:  # shut down
                return
            thread = Thread(target=self._carry, args=(caller,))
            self._threads.append(thread)
            thread.start()

    def _carry(self, caller: socket.socket) -> None:
        host, port = self.back.removeprefix("tcp://").split(":")
        with caller, socket.create_connection((host, int(port))) as callee:
            said = {caller: bytearray(), callee: bytearray()}
            self._said.append((said[caller], said[callee]))
            other = {caller: callee, callee: caller}
            for end in other:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                ready, _, _ = select.select([*other], [], [])
                for end in ready:
                    try:
                        chunk = end.recv(_CHUNK)
                        other[end].sendall(chunk)
                    except OSError:
                        chunk = b""
                    if not chunk:
                        return
                    said[end] += chunk


def _address(bound: socket.socket) -> str:
    host, port = bound.getsockname()
    return f"tcp://{host}:{port}"


def _decoded(stream: bytearray, codec: Codec) -> Iterator[Frame]:
    """The frames of one direction, by ZeroMQ's framing (RFC 37): commands are its own."""
    raw, at = bytes(stream), _GREETING
    while at < len(raw):
        flags = raw[at]
        head = 9 if flags & _LONG else 2
        size = int.from_bytes(raw[at + 1 : at + head], "big")
        body = raw[at + head : at + head + size]
        at += head + size
        if not flags & _COMMAND:
            yield codec.decode(body, "a node")
