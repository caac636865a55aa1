"""A node between two rounds as bytes, and back: engine, method, and who has said goodbye.

What the barrier held is not in it: neighbors send that again. Our own last frames are: two
neighbors that crash together may come back at different rounds, and each needs the other's.

    sealed:  magic, serial number, length and CRC-32 of all that follows them, then the body
    body:    a msgpack array; a vector is [dtype, shape, little-endian bytes]
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import msgpack
import numpy as np

from dlag_node.errors import CheckpointRefused, RemoteProtocolError
from dlag_node.methods.state import State, Value, capture, restore
from dlag_node.rounds.engine import Engine, Outgoing, Saved
from dlag_node.wire.codec import Codec
from dlag_node.wire.frames import Delta, RoundFrame, Skip

VERSION = 3
_MAGIC = b"DLAGstat"
_HEAD = struct.Struct("<8sQQI")  # magic, serial, length of the body, CRC-32
_KINDS = {"d": "<f8", "l": "<i8", "q": "<i8"}  # by numpy's letter; looked up far faster than made
_PACKER = msgpack.Packer()  # keeps its buffer from one checkpoint to the next
_SWAP = sys.byteorder == "big"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose checkpoint it is: of no other run, configuration or node is one ever taken."""

    run: str
    config: str
    node: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A node between two rounds."""

    saved: Saved
    state: State
    finished: bool = False  # it has done all of its rounds
    done: frozenset[int] = frozenset()  # neighbors that have said goodbye
    moved: Mapping[int, str] = field(default_factory=dict)  # new addresses of neighbors

    def into(self, engine: Engine) -> None:
        """Bring an engine that was built anew to where this was taken."""
        restore(engine.method, self.state)
        engine.go_on(self.saved)


def freeze(
    engine: Engine,
    owner: Owner,
    *,
    finished: bool = False,
    done: Set[int] = frozenset(),
    moved: Mapping[int, str] | None = None,
) -> bytes:
    """The body of a checkpoint of this engine, which is between two rounds."""
    saved = engine.saved()
    state, stopping = (
        {name: _packed(value) for name, value in part.items()}
        for part in (capture(engine.method), saved.stopping)
    )
    frames = [(each.raw, None if each.to is None else sorted(each.to)) for each in saved.kept]
    numbers = (saved.rounds, saved.seq, saved.back, saved.starts, saved.kept_from)
    whose = (VERSION, owner.run, owner.config, owner.node)
    body: bytes = _PACKER.pack(
        (*whose, *numbers, frames, finished, sorted(done), moved or {}, state, stopping)
    )
    return body


def thaw(body: bytes, owner: Owner, codec: Codec) -> Checkpoint:
    """The checkpoint in `body`; CheckpointRefused, with the reason, if it is not this owner's."""
    try:
        items = msgpack.unpackb(body, strict_map_key=False)
        version, run, config, node = items[:4]
    except (ValueError, TypeError, msgpack.UnpackException) as exc:
        raise CheckpointRefused(f"{len(body)} bytes that are no checkpoint") from exc
    if version != VERSION:
        raise CheckpointRefused(f"a checkpoint of version {version!r:.20}, ours is {VERSION}")
    for what, found, ours in zip(
        ("run", "configuration", "node"),
        (run, config, node),
        (owner.run, owner.config, owner.node),
        strict=True,
    ):
        if found != ours:
            raise CheckpointRefused(f"a checkpoint of {what} {found!r:.20}, ours is {ours!r:.20}")
    try:
        rounds, seq, back, starts, kept_from, frames, finished, done, moved, *states = items[4:]
        kept = tuple(_outgoing(codec, *each) for each in frames)
        state, stopping = (
            {name: _unpacked(value) for name, value in part.items()} for part in states
        )
        return Checkpoint(
            Saved(rounds, seq, back, tuple(starts), kept_from, kept, stopping),
            state,
            finished,
            frozenset(done),
            moved,
        )
    except (ValueError, TypeError, AttributeError, RemoteProtocolError) as exc:
        raise CheckpointRefused(f"a checkpoint that makes no sense: {exc}") from exc


def seal(body: bytes, serial: int) -> bytes:
    """What stands before a body in its file; the higher serial number is the newer one."""
    crc = zlib.crc32(body, zlib.crc32(_HEAD.pack(_MAGIC, serial, len(body), 0)))
    return _HEAD.pack(_MAGIC, serial, len(body), crc)


def unseal(raw: bytes) -> tuple[int, bytes]:
    """Serial number and body of what was sealed; what lies behind it in the file is ignored."""
    if len(raw) < _HEAD.size:
        raise CheckpointRefused(f"torn: {len(raw)} bytes, the head alone has {_HEAD.size}")
    magic, serial, size, _ = _HEAD.unpack_from(raw)
    if magic != _MAGIC:
        raise CheckpointRefused(f"not ours: it begins with {magic!r}")
    body = raw[_HEAD.size : _HEAD.size + size]
    if len(body) < size:
        raise CheckpointRefused(f"torn: {len(body)} of {size} bytes are there")
    if seal(body, serial) != raw[: _HEAD.size]:
        raise CheckpointRefused(f"torn: the checksum of its {size} bytes is another one")
    return serial, body


def _packed(value: Value) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    kind = _KINDS[value.dtype.char]
    if _SWAP or not value.flags.c_contiguous:
        value = np.ascontiguousarray(value.astype(kind))
    return (kind, value.shape, value.data.cast("B") if value.size else b"")


def _unpacked(value: Any) -> Value:
    if not isinstance(value, list):
        plain: Value = value
        return plain
    dtype, shape, raw = value
    if dtype not in _KINDS.values():
        raise ValueError(f"a vector of {dtype!r:.20}")
    array = np.frombuffer(raw, dtype).reshape(shape)
    return array.astype(array.dtype.newbyteorder("="))


def _outgoing(codec: Codec, raw: bytes, to: list[int] | None) -> Outgoing:
    return Outgoing(_frame(codec, raw), raw, None if to is None else frozenset(to))


def _frame(codec: Codec, raw: bytes) -> RoundFrame:
    frame = codec.decode(raw, "the checkpoint")
    if not isinstance(frame, Delta | Skip):
        raise ValueError(f"a {type(frame).__name__} among the frames")
    return frame
