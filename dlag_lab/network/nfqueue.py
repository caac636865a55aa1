"""The kernel's netfilter queue over netlink: packets wait in the kernel, we say when they go on.

The messages are those of linux/netfilter/nfnetlink_queue.h. Only what a packet is called and who
sent it comes up here, never what it holds.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from dlag_lab.network.netlink import (
    ACK,
    ATTRIBUTE,
    FIRST_ATTRIBUTE,
    NETFILTER,
    REQUEST,
    TYPE_MASK,
    attribute,
    message,
    messages,
    padded,
    refusal,
)

_SOL_NETLINK, _NO_ENOBUFS = 270, 5
_SO_RCVBUFFORCE = 33
_PACKET, _VERDICT, _CONFIG = 0x300, 0x301, 0x302  # subsystem 3, its messages 0 to 2
_CFG_COMMAND, _CFG_COPY, _CFG_LONGEST = 1, 2, 3
_BIND, _COPY_META = 1, 1
_HEADER, _SET_VERDICT, _SENDER = 1, 2, 9  # attributes of packets and verdicts
_DROP, _ACCEPT = 0, 1

_WAITING_MOST = 65_536  # packets a queue; more than any mesh has under way
_BUFFER_BYTES = 16 << 20
_MESSAGE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet that waits: its number in the queue, and the address of the interface it is from."""

    number: int
    sender: bytes


class Queue:
    """One queue of the namespace in which it was opened."""

    def __init__(self, number: int = 0) -> None:
        self._number = number
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER)
        try:
            self._socket.bind((0, 0))
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
            self._socket.setsockopt(_SOL_NETLINK, _NO_ENOBUFS, 1)
            self._set(_CFG_COMMAND, struct.pack("!BBH", _BIND, 0, socket.AF_INET))
            self._set(_CFG_COPY, struct.pack("!IB", 0, _COPY_META))
            self._set(_CFG_LONGEST, struct.pack("!I", _WAITING_MOST))
        except OSError:
            self._socket.close()
            raise
        self._socket.setblocking(False)

    def fileno(self) -> int:
        """The descriptor, readable while packets have arrived."""
        return self._socket.fileno()

    def arrived(self) -> Iterator[Packet]:
        """Every packet that has come since we last asked."""
        while True:
            try:
                raw = self._socket.recv(_MESSAGE_BYTES)
            except BlockingIOError:
                return
            yield from packets(raw)

    def release(self, packet: Packet) -> None:
        """Let a packet go on."""
        self._socket.send(verdict(self._number, packet, _ACCEPT))

    def drop(self, packet: Packet) -> None:
        """Lose a packet."""
        self._socket.send(verdict(self._number, packet, _DROP))

    def close(self) -> None:
        """Unbind: what still waits is lost, and so is what comes from now on."""
        self._socket.close()

    def _set(self, kind: int, value: bytes) -> None:
        """Configure the queue; an OSError where the kernel refuses."""
        body = attribute(kind, value)
        self._socket.send(message(_CONFIG, self._number, body, flags=REQUEST | ACK))
        raw = self._socket.recv(_MESSAGE_BYTES)
        code = refusal(raw)
        if code:
            raise OSError(code, f"netfilter queue {self._number}: {os.strerror(code)}")


def packets(raw: bytes) -> Iterator[Packet]:
    """The packets that a netlink datagram tells of; anything else in it is passed over."""
    for kind, start, end in messages(raw):
        if kind != _PACKET:
            continue
        number, sender = None, b""
        at = start + FIRST_ATTRIBUTE
        while at + ATTRIBUTE.size <= end:
            length, name = ATTRIBUTE.unpack_from(raw, at)
            if length < ATTRIBUTE.size or at + length > end:
                break
            if name & TYPE_MASK == _HEADER:
                (number,) = struct.unpack_from("!I", raw, at + 4)
            elif name & TYPE_MASK == _SENDER:
                (size,) = struct.unpack_from("!H", raw, at + 4)
                sender = raw[at + 8 : at + 8 + size]
            at += padded(length)
        if number is not None:
            yield Packet(number, sender)


def verdict(queue: int, packet: Packet, decision: int) -> bytes:
    """The message that decides on one packet."""
    body = attribute(_SET_VERDICT, struct.pack("!II", decision, packet.number))
    return message(_VERDICT, queue, body, flags=REQUEST)
