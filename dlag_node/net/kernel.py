"""What the kernel counted on a node's connections with its neighbors: packets and bytes, no root.

Linux keeps a `struct tcp_info` (linux/tcp.h) for every TCP socket, and tells it to whoever has the
socket open. Those of libzmq are this process's own, so their descriptors are enough. Everybody
counts what itself has sent: over all nodes, each packet is counted once.

    packets   segments sent: data, repeated data, acknowledgements alone, who called's SYN
    bytes     bytes of data sent, repeated ones included, and 52 bytes of headers a segment

52 bytes are IPv4's 20, TCP's 20 and its timestamps' 12. What is not in it: SYN-ACK and FIN, which
the kernel sends before a socket is there and after it is gone; Ethernet's header (14 bytes a
packet); ARP.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

_HEADERS = 20 + 20 + 12
_INFO_BYTES = 256  # what newer kernels tell beyond that is not for us
_SEGMENTS = struct.Struct("=136xI")  # tcpi_segs_out, since Linux 4.2
_SENT = struct.Struct("=200xQ")  # tcpi_bytes_sent, since Linux 4.19
_OPEN_FILES = Path("/proc/self/fd")

Address = tuple[str, int]
Ends = tuple[Address, Address]  # here, there


@dataclass(frozen=True, slots=True)
class KernelCount:
    """What one node has sent to its neighbors, as its kernel counted it."""

    packets: int
    bytes: int  # as IP has them: data and headers
    connections: int
    complete: bool  # no connection was lost meanwhile, and its count with it

    def leave(self, path: Path) -> None:
        """Write it, the whole of it or nothing."""
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_text(json.dumps(asdict(self)) + "\n", encoding="ascii")
        temporary.replace(path)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """What a node left there; None: it could not count, or has not come to its end."""
        try:
            told = json.loads(path.read_bytes())
            count = cls(**told)
        except (OSError, ValueError, TypeError):
            return None
        whole = all(type(each) is int and each >= 0 for each in (count.packets, count.bytes))
        return count if whole else None


def count_path(folder: Path, node: int) -> Path:
    """Where a node's count lies, beside its records."""
    return folder / f"node-{node:03d}.wire.json"


def sent_on(wanted: Callable[[Address, Address], bool]) -> Mapping[Ends, tuple[int, int]] | None:
    """Packets and bytes sent on those of this process's TCP connections that are wanted.

    None where the system does not tell: it is not Linux, or one of before 2018.
    """
    if sys.platform != "linux":
        return None
    try:
        files = [int(path.name) for path in _OPEN_FILES.iterdir()]
    except OSError:
        return None
    counted: dict[Ends, tuple[int, int]] = {}
    for file in files:
        with suppress(OSError):  # closed meanwhile, or no connection
            if not stat.S_ISSOCK(os.fstat(file).st_mode):
                continue
            with socket.socket(fileno=os.dup(file)) as opened:
                if opened.family != socket.AF_INET or opened.type != socket.SOCK_STREAM:
                    continue
                here, there = opened.getsockname(), opened.getpeername()
                if not wanted(here, there):
                    continue
                raw = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
            if len(raw) < _SENT.size:
                return None
            (packets,), (data,) = _SEGMENTS.unpack_from(raw), _SENT.unpack_from(raw)
            counted[here, there] = packets, data + _HEADERS * packets
    return counted


class KernelCounter:
    """Looks at the connections of one node's mesh, and keeps what it saw of each last.

    A connection that is gone was counted up to the last look: there must be one while all of them
    are up, which is before our goodbye. Who has heard that may close.
    """

    def __init__(self, port: int, called: Collection[Address]) -> None:
        """Those of who called us at `port`, and those that we `called`."""
        self._port, self._called = port, called
        self._seen: dict[Ends, tuple[int, int]] = {}
        self._told = True

    def look(self) -> None:
        """Count what is up now."""
        seen = sent_on(lambda here, there: here[1] == self._port or there in self._called)
        if seen is None:
            self._told = False
        else:
            self._seen |= seen

    def count(self, *, complete: bool) -> KernelCount | None:
        """All that was seen; None where the system does not tell."""
        if not self._told:
            return None
        packets, octets = (sum(each) for each in zip((0, 0), *self._seen.values(), strict=True))
        return KernelCount(packets, octets, len(self._seen), complete)
