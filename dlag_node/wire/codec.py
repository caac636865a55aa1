"""Frames between nodes, to bytes and back: a fast path for rounds, the schema for the rest."""

from __future__ import annotations

import sys

import msgpack
import numpy as np

from dlag_node.errors import LocalProtocolError, RemoteProtocolError
from dlag_node.wire.frames import (
    Abort,
    Delta,
    Done,
    Frame,
    Hello,
    Need,
    Refuse,
    RoundFrame,
    Skip,
    Welcome,
    Who,
    all_finite,
)
from dlag_node.wire.limits import FLOAT_BYTES, MAX_SEQ, MAX_WIDTH, frame_limit
from dlag_node.wire.schema import build, pack, shown, unpack_array

_Control = Hello | Need | Who | Refuse | Done | Abort
_CONTROL: dict[int, type[_Control]] = {
    kind.CODE: kind for kind in (Hello, Welcome, Need, Who, Refuse, Done, Abort)
}
_FLOAT = np.dtype("<f8")
_SWAP = sys.byteorder == "big"


class Codec:
    """Encodes and decodes the frames of one run, whose vectors have `width` entries.

    On the wire a Delta is `[1, seq, bin]`, `bin` being the vector's 8 * width bytes, a Skip is
    `[2, seq]`; every other frame is written by the schema.
    """

    def __init__(self, width: int) -> None:
        if not 1 <= width <= MAX_WIDTH:
            raise LocalProtocolError(f"vectors of {width} entries: expected 1 to {MAX_WIDTH}")
        self.width = width
        self.frame_limit = frame_limit(width)
        self._vector_bytes = FLOAT_BYTES * width
        self._packer = msgpack.Packer()

    def encode(self, frame: Frame) -> bytes:
        """The bytes of a frame; a vector of the wrong length or not finite is our own bug."""
        if type(frame) is Delta:
            vector = frame.vector
            if (
                vector.shape != (self.width,)
                or vector.dtype != np.float64
                or not all_finite(vector)
            ):
                raise LocalProtocolError(
                    f"exchange {frame.seq}: a delta of shape {vector.shape}, dtype {vector.dtype}; "
                    f"expected {self.width} finite float64"
                )
            body = vector.astype(_FLOAT) if _SWAP else np.ascontiguousarray(vector)
            raw: bytes = self._packer.pack((1, frame.seq, body.data.cast("B")))
            return raw
        if type(frame) is Skip:
            token: bytes = self._packer.pack((2, frame.seq))
            return token
        return pack(frame)

    def decode(self, raw: bytes, peer: object) -> Frame:
        """The frame in `raw`; anything that is none is a RemoteProtocolError naming `peer`."""
        items = unpack_array(raw, self.frame_limit, peer)
        code = items[0]
        if type(code) is int and 1 <= code <= 2:
            return self._round_frame(items, peer)
        kind = _CONTROL.get(code) if type(code) is int else None
        if kind is None:
            raise RemoteProtocolError(f"{peer} sent a frame of unknown type {shown(code)}")
        return build(kind, items[1:], peer=peer)

    def _round_frame(self, items: list[object], peer: object) -> RoundFrame:
        code, size = items[0], len(items)
        if size != (3 if code == 1 else 2):
            raise RemoteProtocolError(f"{peer} sent a round frame of {size} fields")
        seq = items[1]
        if type(seq) is not int or not 0 <= seq < MAX_SEQ:
            raise RemoteProtocolError(f"{peer} sent exchange {shown(seq)}, expected 0 to {MAX_SEQ}")
        if code == 2:
            return Skip(seq)
        body = items[2]
        if type(body) is not bytes or len(body) != self._vector_bytes:
            found = f"{len(body)} bytes" if type(body) is bytes else f"a {type(body).__name__}"
            raise RemoteProtocolError(
                f"{peer} sent exchange {seq} with {found}, expected {self._vector_bytes} bytes"
            )
        vector = np.frombuffer(body, _FLOAT)  # read-only: the bytes are ours alone
        if not all_finite(vector):
            raise RemoteProtocolError(
                f"{peer} sent exchange {seq} with entries that are not finite"
            )
        return Delta(seq, vector)
