"""Messages to the kernel's netfilter over netlink, packed and taken apart.

Every message is a netlink header (length, type, flags, number, port), netfilter's own (family,
version, resource) and attributes (length, type, value, padded to 4 bytes): linux/netlink.h and
linux/netfilter/nfnetlink.h.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

NETFILTER = 12  # the netlink family
REQUEST, ACK = 1, 4  # flags
HEADER = struct.Struct("=IHHII")
ATTRIBUTE = struct.Struct("=HH")
TYPE_MASK = 0x3FFF  # of an attribute: the two bits above are flags

_NETFILTER_HEADER = struct.Struct("!BBH")
FIRST_ATTRIBUTE = HEADER.size + _NETFILTER_HEADER.size
_ERROR = 2


def message(
    kind: int, resource: int, body: bytes, *, flags: int, family: int = socket.AF_UNSPEC
) -> bytes:
    """One message with its headers."""
    body = _NETFILTER_HEADER.pack(family, 0, resource) + body
    return HEADER.pack(HEADER.size + len(body), kind, flags, 0, 0) + body


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute, padded."""
    length = ATTRIBUTE.size + len(value)
    return ATTRIBUTE.pack(length, kind) + value + bytes(padded(length) - length)


def messages(raw: bytes) -> Iterator[tuple[int, int, int]]:
    """Type, begin and end of every whole netlink message."""
    at = 0
    while at + HEADER.size <= len(raw):
        length, kind, *_ = HEADER.unpack_from(raw, at)
        if length < HEADER.size or at + length > len(raw):
            return
        yield kind, at, at + length
        at += padded(length)


def refusal(raw: bytes) -> int:
    """The error number in the kernel's answer; 0 where it agrees."""
    for kind, start, _ in messages(raw):
        if kind == _ERROR:
            code: int = struct.unpack_from("=i", raw, start + HEADER.size)[0]
            return -code
    return 0


def padded(length: int) -> int:
    """What a message or an attribute of this length takes."""
    return (length + 3) & ~3
