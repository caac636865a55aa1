"""Frames between nodes, to bytes and back: a fast path for rounds, the schema for the rest."""

from __future__ import annotations

import sys

import msgpack
import numpy as np

from dlag_node.errors import LocalProtocolError, RemoteProtocolError
from dlag_node.rounding import FORM_OF_CODE, Rounded, values_of
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
from dlag_node.wire.limits import (
    FLOAT_BYTES,
    MAX_PROMISE,
    MAX_SEQ,
    MAX_WIDTH,
    MAX_WORD,
    frame_limit,
)
from dlag_node.wire.schema import build, pack, shown, unpack_array

_Control = Hello | Need | Who | Refuse | Done | Abort
_CONTROL: dict[int, type[_Control]] = {
    kind.CODE: kind for kind in (Hello, Welcome, Need, Who, Refuse, Done, Abort)
}
# of a round's frame: how many fields it has, but for a word, by its code
_FIELDS: dict[object, int] = {
    Delta.CODE: 3,
    Skip.CODE: 2,
    Delta.ROUNDED_CODE: 4,
    Delta.PROMISING_CODE: 4,
    Delta.ROUNDED_PROMISING_CODE: 5,
}
_PROMISING = (Delta.PROMISING_CODE, Delta.ROUNDED_PROMISING_CODE)
_ROUNDED = (Delta.ROUNDED_CODE, Delta.ROUNDED_PROMISING_CODE)
_FLOAT = np.dtype("<f8")
_SWAP = sys.byteorder == "big"


class Codec:
    """Encodes and decodes the frames of one run, whose vectors have `width` entries.

    On the wire a Delta is `[1, seq, bin]`, `bin` being the vector's 8 * width bytes, a Skip is
    `[2, seq]`, a rounded Delta `[10, seq, form, bin]`; with a promise r these are
    `[11, seq, bin, r]` and `[12, seq, form, bin, r]`. A word on stopping, if any, comes last. Every
    other frame is written by the schema.
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
            if frame.rounded is not None:
                return self._rounded(frame, frame.rounded)
            body = vector.astype(_FLOAT) if _SWAP else np.ascontiguousarray(vector)
            if frame.promise:
                items = (11, frame.seq, body.data.cast("B"), frame.promise)
                return self._packed(items, frame.word)
            return self._packed((1, frame.seq, body.data.cast("B")), frame.word)
        if type(frame) is Skip:
            return self._packed((2, frame.seq), frame.word)
        return pack(frame)

    def decode(self, raw: bytes, peer: object) -> Frame:
        """The frame in `raw`; anything that is none is a RemoteProtocolError naming `peer`."""
        items = unpack_array(raw, self.frame_limit, peer)
        code = items[0]
        if type(code) is int and (1 <= code <= 2 or 10 <= code <= 12):
            return self._round_frame(items, peer)
        kind = _CONTROL.get(code) if type(code) is int else None
        if kind is None:
            raise RemoteProtocolError(f"{peer} sent a frame of unknown type {shown(code)}")
        return build(kind, items[1:], peer=peer)

    def _round_frame(self, items: list[object], peer: object) -> RoundFrame:
        code, size, word, promise = items[0], len(items), 0, 0
        if size == _FIELDS[code] + 1:
            word = self._word(items[-1], peer)
        elif size != _FIELDS[code]:
            raise RemoteProtocolError(f"{peer} sent a round frame of {size} fields")
        seq = items[1]
        if type(seq) is not int or not 0 <= seq < MAX_SEQ:
            raise RemoteProtocolError(f"{peer} sent exchange {shown(seq)}, expected 0 to {MAX_SEQ}")
        if code == 2:
            return Skip(seq, word)
        rounded = None
        if code != Delta.CODE and code in _PROMISING:
            promise = self._promise(items[_FIELDS[code] - 1], seq, peer)
        if code == Delta.CODE or code not in _ROUNDED:
            # read-only: the bytes are ours alone
            vector = np.frombuffer(self._body(items[2], self._vector_bytes, seq, peer), _FLOAT)
        else:
            form = FORM_OF_CODE.get(items[2]) if type(items[2]) is int else None
            if form is None:
                raise RemoteProtocolError(f"{peer} sent exchange {seq} in form {shown(items[2])}")
            body = self._body(items[3], form.size(self.width), seq, peer)
            vector = values_of(body, form)
            rounded = Rounded(form, body, vector)
        if not all_finite(vector):
            raise RemoteProtocolError(
                f"{peer} sent exchange {seq} with entries that are not finite"
            )
        return Delta(seq, vector, rounded, word, promise)

    @staticmethod
    def _body(body: object, size: int, seq: int, peer: object) -> bytes:
        """The bytes of a vector, if there are as many as there must be."""
        if type(body) is bytes and len(body) == size:
            return body
        found = f"{len(body)} bytes" if type(body) is bytes else f"a {type(body).__name__}"
        raise RemoteProtocolError(f"{peer} sent exchange {seq} with {found}, expected {size} bytes")

    @staticmethod
    def _word(word: object, peer: object) -> int:
        """A word about stopping, if it is one; 0 is told by leaving it out."""
        if type(word) is not int or not 0 < abs(word) <= MAX_WORD:
            raise RemoteProtocolError(f"{peer} sent {shown(word)} where a word on stopping was due")
        return word

    @staticmethod
    def _promise(promise: object, seq: int, peer: object) -> int:
        """For how many exchanges there will be silence; 0 is told by another code."""
        if type(promise) is not int or not 0 < promise <= MAX_PROMISE:
            raise RemoteProtocolError(
                f"{peer} sent exchange {seq} with a promise of {shown(promise)}, "
                f"expected 1 to {MAX_PROMISE}"
            )
        return promise

    def _rounded(self, frame: Delta, vector: Rounded) -> bytes:
        body = (frame.seq, vector.form.code, vector.body)
        if frame.promise:
            items = (Delta.ROUNDED_PROMISING_CODE, *body, frame.promise)
            return self._packed(items, frame.word)
        return self._packed((Delta.ROUNDED_CODE, *body), frame.word)

    def _packed(self, items: tuple[object, ...], word: int) -> bytes:
        raw: bytes = self._packer.pack((*items, word) if word else items)
        return raw
