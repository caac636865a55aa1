"""The one firewall rule that sends a port's packets to a netfilter queue, without any command.

A container's image has neither iptables nor nft, but the kernel takes rules over netlink: a batch
of messages, all of which take effect or none (linux/netfilter/nf_tables.h). Ours make a table, a
chain for what arrives, and two rules: packets to the port, and packets from it.
"""

from __future__ import annotations

import os
import socket
import struct

from dlag_lab.network.netlink import ACK, NETFILTER, REQUEST, attribute, message, refusal

_BATCH_BEGIN, _BATCH_END = 0x10, 0x11
_NFTABLES = 10  # netfilter's subsystem
_NEW_TABLE, _NEW_CHAIN, _NEW_RULE = (_NFTABLES << 8 | number for number in (0, 3, 6))
_CREATE, _APPEND = 0x400, 0x800  # flags
_NESTED = 0x8000
_ARRIVING, _PRIORITY = 1, -150  # the hook of packets for us, at iptables' "mangle"
_REGISTER = 1
_QUEUE_ZERO = bytes(8)  # iptables' own target, as every kernel has it on which iptables works
_META_PROTOCOL = 16
_TRANSPORT_HEADER = 2
_FROM_PORT, _TO_PORT = 0, 2  # offsets in a TCP header
_NAME = b"dlag\0"
_ANSWER_BYTES = 1 << 16


def queue_port(port: int) -> None:
    """What arrives here over TCP, to that port or from it, waits in queue 0 from now on."""
    hook = _number(1, _ARRIVING) + _number(2, _PRIORITY)
    chain = attribute(1, _NAME) + attribute(3, _NAME) + _nest(4, hook) + attribute(7, b"filter\0")
    orders = [(_NEW_TABLE, _CREATE, attribute(1, _NAME)), (_NEW_CHAIN, _CREATE, chain)]
    for offset in (_TO_PORT, _FROM_PORT):
        expressions = _nest(4, _rule(offset, port))
        rule = attribute(1, _NAME) + attribute(2, _NAME) + expressions
        orders.append((_NEW_RULE, _CREATE | _APPEND, rule))
    batch = message(_BATCH_BEGIN, _NFTABLES, b"", flags=REQUEST)
    for kind, flags, body in orders:
        flags |= REQUEST | ACK
        batch += message(kind, 0, body, flags=flags, family=socket.AF_INET)
    batch += message(_BATCH_END, _NFTABLES, b"", flags=REQUEST)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER) as kernel:
        kernel.bind((0, 0))
        kernel.send(batch)
        for _ in orders:
            code = refusal(kernel.recv(_ANSWER_BYTES))
            if code:
                raise OSError(code, f"firewall rule for port {port}: {os.strerror(code)}")


def _rule(offset: int, port: int) -> bytes:
    """TCP, the port at `offset` of its header, then to the queue."""
    read = _number(1, _REGISTER) + _number(2, _TRANSPORT_HEADER) + _number(3, offset)
    target = attribute(1, b"NFQUEUE\0") + _number(2, 0) + attribute(3, _QUEUE_ZERO)
    return (
        _expression(b"meta\0", _number(2, _META_PROTOCOL) + _number(1, _REGISTER))
        + _equals(bytes([socket.IPPROTO_TCP]))
        + _expression(b"payload\0", read + _number(4, 2))
        + _equals(struct.pack("!H", port))
        + _expression(b"target\0", target)
    )


def _equals(value: bytes) -> bytes:
    compared = _number(1, _REGISTER) + _number(2, 0) + _nest(3, attribute(1, value))
    return _expression(b"cmp\0", compared)


def _expression(name: bytes, body: bytes) -> bytes:
    return _nest(1, attribute(1, name) + _nest(2, body))


def _nest(kind: int, body: bytes) -> bytes:
    return attribute(kind | _NESTED, body)


def _number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("!i", value))
