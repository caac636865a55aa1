"""CURVE on a ZeroMQ socket: which end of a connection has which key.

The options hold for what is bound or connected after they were set. So one socket can listen with
its own key, and then call others, each by the key that only it can have.
"""

from __future__ import annotations

from typing import Any

import zmq

from dlag_node.trust.keys import KeyPair

HANDSHAKE_MS = 10_000  # then a connection that has not told who it is is closed


def listen_with(opened: zmq.Socket[Any], pair: KeyPair) -> None:
    """Who calls at the addresses bound from now on must know our key, and pass the gate."""
    opened.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
    opened.setsockopt(zmq.CURVE_SERVER, 1)
    _be(opened, pair)


def call_with(opened: zmq.Socket[Any], pair: KeyPair, server: bytes) -> None:
    """The connections made from now on are to whoever holds the secret half of `server`."""
    opened.setsockopt(zmq.CURVE_SERVERKEY, server)  # this makes us the calling end
    _be(opened, pair)


def key_of(frame: zmq.Frame) -> bytes | None:
    """The key with which the sender of a message passed our gate; None: there was no gate."""
    try:
        return bytes.fromhex(str(frame.get("User-Id")))
    except zmq.ZMQError:
        return None


def _be(opened: zmq.Socket[Any], pair: KeyPair) -> None:
    opened.setsockopt(zmq.CURVE_PUBLICKEY, pair.public)
    opened.setsockopt(zmq.CURVE_SECRETKEY, pair.secret)
