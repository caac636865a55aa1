"""What the fuzzer calls with its bytes: whatever they are, the only error is the one we name.

The first byte says which target; all others are what a peer, or a broken disk, might hand us.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from dataclasses import replace

import msgpack
import numpy as np
import zmq

from dlag_node.errors import CheckpointRefused, RemoteProtocolError
from dlag_node.net.introduction import Introduction
from dlag_node.net.links import Links
from dlag_node.net.router import Router
from dlag_node.rounding import FORM_OF_CODE
from dlag_node.rounds import Engine
from dlag_node.rounds.checkpoint import Owner, freeze, seal, thaw, unseal
from dlag_node.wire import (
    PROTOCOL,
    Abort,
    Delta,
    Done,
    Frame,
    Hello,
    Need,
    Refuse,
    RoundFrame,
    Skip,
    Who,
)
from dlag_node.wire.codec import Codec
from dlag_node.wire.control import FROM_COORDINATOR, FROM_NODE, Join, Peer
from dlag_node.wire.limits import MAX_CONTROL_BYTES
from dlag_node.wire.observing import FROM_LABORATORY, Horizon
from dlag_node.wire.observing import FROM_NODE as FROM_WATCHED
from dlag_node.wire.schema import pack, unpack
from tests.rounds.scripts import Scripted

DIM = 3
CODEC = Codec(DIM)
RUN, CONFIG = "0123456789abcdef", "c0ffee" * 8
OWNER = Owner(RUN, CONFIG, 0)
KEY, OTHER_KEY = b"k" * 32, b"o" * 32
CALLED, CALLER = 1, 3  # the neighbors of node 2: we have called one, the other calls us
FRESH_EVERY = 10_000  # frames of one scene

Target = Callable[[bytes], None]


def codec(raw: bytes) -> None:
    """A frame is refused, or the bytes that are made of it say the same again."""
    try:
        frame = CODEC.decode(raw, "a peer")
    except RemoteProtocolError:
        return
    again = CODEC.decode(CODEC.encode(frame), "ourselves")
    assert type(again) is type(frame)
    if isinstance(frame, Delta):
        assert isinstance(again, Delta)
        assert again.vector.tobytes() == frame.vector.tobytes()
        assert (again.word, again.promise) == (frame.word, frame.promise)
    else:
        assert again == frame


def control(raw: bytes) -> None:
    """The words of nodes, coordinators and laboratories."""
    for kinds in (FROM_NODE, FROM_COORDINATOR, FROM_WATCHED, FROM_LABORATORY):
        try:
            message = unpack(raw, kinds, limit=MAX_CONTROL_BYTES, longest=10_000, peer="a peer")  # type: ignore[type-var]
        except RemoteProtocolError:
            continue
        assert type(message) in kinds.values()


def checkpoint(raw: bytes) -> None:
    """A checkpoint file, and a body whose checksum is right."""
    with suppress(CheckpointRefused):
        unseal(raw)
    _, body = unseal(seal(raw, 7) + raw)
    with suppress(CheckpointRefused):
        thaw(body, OWNER, CODEC)


class Fed(Router):
    """A socket to which one message comes from us."""

    fed: tuple[bytes, bytes] | None = None

    def receive(self, known: Container[bytes]) -> tuple[bytes, bytes | None] | None:
        message, self.fed = self.fed, None
        return super().receive(known) if message is None else message


class Scene:
    """Node 2 with its links, and what a hand-shake may and may not bring about."""

    def __init__(self) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._router = Fed(self._context, "tcp://127.0.0.1:*", limit=CODEC.frame_limit)
        self.delivered = 0
        self.frames = 0
        peers = [Peer(j, "tcp://127.0.0.1:1", 0.5, KEY) for j in (CALLED, CALLER)]
        introduction = Introduction(2, RUN, CONFIG, lambda: 0, 0, self._router.address)
        self.links = Links(self._router, introduction, peers, CODEC, self)
        asyncio.run(self.links.call())
        self._ours = self.links._links[CALLED].ours
        assert self._ours is not None

    def frame(self, _: int, __: RoundFrame) -> None:
        self.delivered += 1

    def control(self, _: int, __: Frame) -> None:
        self.delivered += 1

    def opened(self, _: int, __: Hello) -> None:
        pass

    def lost(self, _: int) -> None:
        pass

    def hear(self, raw: bytes) -> None:
        """One message: its first byte says on which connection it comes, and with which key."""
        self.frames += 1
        who, raw = raw[:1], raw[1:]
        links, before = self.links, (self.links.down, self.delivered)
        route = b"\0" + who
        if who < b"\x40":  # a stranger without a key, or with another one
            links.hear_stranger(route, [raw], None if who < b"\x20" else OTHER_KEY)
            assert (links.down, self.delivered) == before
        elif who < b"\x60":  # several parts
            links.hear_stranger(route, [raw[:3], raw[3:]], KEY)
            assert (links.down, self.delivered) == before
        elif who < b"\x90":  # a neighbor's first words
            links.hear_stranger(route, [raw], KEY)
            assert self.delivered == before[1]
        elif who < b"\xc0":  # where we have called: only a hello, or a refusal, has an effect
            assert self._ours is not None
            links._take_answer(links._links[CALLED], self._ours, raw)
        else:
            links._routes.known[b"\0known"] = links._links[CALLER]
            self._router.fed = (b"\0known", raw)
            assert links.drain()

    def close(self) -> None:
        self._router.close()
        self._context.destroy(linger=0)


class Handshake:
    """The hand-shake's state, which lasts from one frame to the next, for a while."""

    def __init__(self) -> None:
        self.scene = Scene()

    def __call__(self, raw: bytes) -> None:
        if self.scene.frames >= FRESH_EVERY:
            self.scene.close()
            self.scene = Scene()
        self.scene.hear(raw)


def all_targets() -> list[Target]:
    """In the order of the first byte."""
    return [codec, control, checkpoint, Handshake()]


def seeds() -> Iterator[bytes]:
    """Inputs that mean something: what a mutation begins with."""
    hello = Hello(PROTOCOL, RUN, CONFIG, CALLER, 0, 0, "tcp://127.0.0.1:5")
    vector = np.array([1.0, -2.5, 3e-9])
    frames: list[Frame] = [Delta(7, vector), Skip(300), hello, replace(hello, node=CALLED)]
    frames += [Delta(7, vector, promise=2), Delta(7, vector, word=-3, promise=3)]
    frames += [Need(1), Who(), Refuse("no"), Done(9), Abort("ended")]
    raws = [CODEC.encode(frame) for frame in frames]
    raws += [_rounded(code, *promise) for code in FORM_OF_CODE for promise in ((), (2,))]
    for raw in raws:
        yield b"\0" + raw
        for who in (0, 0x20, 0x40, 0x60, 0x90, 0xC0):
            yield bytes([3, who]) + raw
    yield b"\1" + pack(Join(PROTOCOL, 3, "t" * 64))
    yield b"\1" + pack(Horizon(10, final=True))
    engine = Engine(Remembering(), node=0, neighbors=[1], codec=CODEC)
    yield b"\2" + freeze(engine, OWNER)


class Remembering(Scripted):
    """A method with a state to keep."""

    STATE = ("k", "theta")

    def __init__(self) -> None:
        super().__init__([[1.0]])


def _rounded(code: int, *promise: int) -> bytes:
    kind = Delta.ROUNDED_PROMISING_CODE if promise else Delta.ROUNDED_CODE
    body = random.Random(1).randbytes(FORM_OF_CODE[code].size(DIM))
    raw: bytes = msgpack.packb([kind, 7, code, body, *promise])
    return raw
