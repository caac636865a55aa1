"""Everything that crosses the interfaces of a network namespace, as TCP streams.

Of a host that is its loopback, and of a switch all that its hosts say to each other.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Thread

from dlag_lab.network.namespaces import inside, new_namespace, path_of

_EVERYTHING = 0x0003  # linux/if_ether.h, ETH_P_ALL
_SOL_PACKET, _STATISTICS = 263, 6  # linux/socket.h, linux/if_packet.h
_OUTGOING = 4  # PACKET_OUTGOING: every packet is shown twice, as it leaves and as it arrives
_ETHERNET, _TCP, _SYN = 14, 6, 2
_RCVBUFFORCE = 33  # asm-generic/socket.h
_BUFFER = 64 << 20
_LONGEST = 1 << 17  # a packet: up to 64 kB on loopback

Flow = tuple[bytes, int, bytes, int]


class Capture:
    """Every packet of the calling thread's namespace, from the beginning until `end`."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_EVERYTHING))
        self._socket.setsockopt(socket.SOL_SOCKET, _RCVBUFFORCE, _BUFFER)
        self._packets: list[bytes] = []
        self._stop_read, self._stop_write = os.pipe()
        self._thread = Thread(target=self._listen)
        self._thread.start()

    def end(self) -> list[bytes]:
        """Every connection's bytes, one entry a direction; none is missing."""
        os.write(self._stop_write, b"x")
        self._thread.join()
        _, dropped = struct.unpack("II", self._socket.getsockopt(_SOL_PACKET, _STATISTICS, 8))
        for descriptor in (self._stop_read, self._stop_write):
            os.close(descriptor)
        self._socket.close()
        assert dropped == 0, f"the kernel dropped {dropped} packets of the capture"
        return list(_streams(self._packets))

    def _listen(self) -> None:
        stopped = False
        while not stopped:
            ready, _, _ = select.select([self._socket, self._stop_read], [], [])
            stopped = self._stop_read in ready
            while self._socket in select.select([self._socket], [], [], 0)[0]:
                packet, address = self._socket.recvfrom(_LONGEST)
                if address[2] != _OUTGOING:
                    self._packets.append(packet)


def _streams(packets: list[bytes]) -> Iterator[bytes]:
    begins: dict[Flow, int] = {}
    segments: dict[Flow, list[tuple[int, bytes]]] = {}
    for packet in packets:
        ip = packet[_ETHERNET:]
        if ip[0] >> 4 != 4 or ip[9] != _TCP:
            continue
        header = 4 * (ip[0] & 15)
        (length,) = struct.unpack("!H", ip[2:4])
        tcp = ip[header:length]
        source, target, seq = struct.unpack("!HHI", tcp[:8])
        flow = (ip[12:16], source, ip[16:20], target)
        if tcp[13] & _SYN:
            begins[flow] = seq + 1
            continue
        body = tcp[4 * (tcp[12] >> 4) :]
        if body:
            segments.setdefault(flow, []).append((seq, body))
    for flow, pieces in segments.items():
        stream = bytearray()
        for offset, body in sorted(((seq - begins[flow]) % 2**32, body) for seq, body in pieces):
            assert offset <= len(stream), "the capture has a hole"
            stream[offset : offset + len(body)] = body
        yield bytes(stream)


@contextmanager
def captured_host() -> Iterator[Capture]:
    """The calling thread, and what it starts, on a host of its own whose loopback is captured."""
    with ExitStack() as stack:
        descriptor = new_namespace()
        stack.callback(os.close, descriptor)
        stack.enter_context(inside(path_of(descriptor)))
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        yield Capture()
