"""Deltas that promise silence, to bytes and back: codes 11 and 12."""

from __future__ import annotations

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlag_node.errors import RemoteProtocolError
from dlag_node.rounding import FORMS, Rounded, rounded
from dlag_node.wire.codec import Codec
from dlag_node.wire.frames import Delta
from dlag_node.wire.limits import MAX_PROMISE, MAX_SEQ, MAX_WORD
from tests.wire.test_codec import DIM, body, decode_or_refuse, packed

CODEC = Codec(DIM)
NAMES = st.sampled_from([None, *FORMS])


def vector(name: str | None) -> Rounded | None:
    return None if name is None else rounded(np.linspace(-2.0, 3.0, DIM), FORMS[name])


def delta(seq: int, name: str | None, *, word: int = 0, promise: int = 0) -> Delta:
    short = vector(name)
    values = np.linspace(-2.0, 3.0, DIM) if short is None else short.values
    return Delta(seq, values, short, word, promise)


@given(
    seq=st.integers(0, MAX_SEQ - 1),
    name=NAMES,
    word=st.integers(-MAX_WORD, MAX_WORD),
    promise=st.integers(1, MAX_PROMISE),
)
def test_a_promise_comes_back_with_all_the_rest(
    seq: int, name: str | None, word: int, promise: int
) -> None:
    frame = delta(seq, name, word=word, promise=promise)
    raw = CODEC.encode(frame)
    back = CODEC.decode(raw, "neighbor 1")
    assert isinstance(back, Delta)
    assert (back.seq, back.word, back.promise) == (seq, word, promise)
    assert back.vector.tobytes() == frame.vector.tobytes()
    assert back.payload_bytes == frame.payload_bytes
    assert CODEC.encode(back) == raw
    assert msgpack.unpackb(raw)[0] == (11 if name is None else 12)


@given(seq=st.integers(0, MAX_SEQ - 1), name=NAMES, word=st.sampled_from([0, 7, -3]))
def test_a_promise_takes_one_byte_and_none_where_there_is_none(
    seq: int, name: str | None, word: int
) -> None:
    plain = CODEC.encode(delta(seq, name, word=word))
    assert msgpack.unpackb(plain)[0] == (1 if name is None else 10)
    for promise in (1, 2, 3, MAX_PROMISE):
        assert len(CODEC.encode(delta(seq, name, word=word, promise=promise))) == len(plain) + 1


F4 = bytes(4 * DIM)
NOT_A_PROMISE = {
    "0": 0,
    "-1": -1,
    "True": True,
    "False": False,
    "2.0": 2.0,
    "None": None,
    "'2'": "2",
    "a list of 1": [2],
    "a bytes of 1": b"\x02",
    f"{MAX_PROMISE + 1}": MAX_PROMISE + 1,
    "9223372036854775808": 2**63,
}
HEADS = {11: (11, 3, body()), 12: (12, 3, 1, F4)}


@pytest.mark.parametrize("code", HEADS)
@pytest.mark.parametrize("word", [(), (7,), (-MAX_WORD,)], ids=["alone", "with 7", "with a word"])
@pytest.mark.parametrize(("shown", "promise"), NOT_A_PROMISE.items(), ids=NOT_A_PROMISE)
def test_what_is_no_promise_is_refused(
    shown: str, promise: object, word: tuple[int, ...], code: int
) -> None:
    with pytest.raises(RemoteProtocolError) as error:
        CODEC.decode(packed(*HEADS[code], promise, *word), "neighbor 7")
    expected = f"neighbor 7 sent exchange 3 with a promise of {shown}, expected 1 to 100"
    assert str(error.value) == expected


HOSTILE = {
    "11, no promise": (packed(11, 3, body()), "a round frame of 3 fields"),
    "11, nothing": (packed(11, 3), "a round frame of 2 fields"),
    "11, too many": (packed(11, 3, body(), 2, 7, 7), "a round frame of 6 fields"),
    "11, promise first": (packed(11, 3, 2, body()), "with a promise of a bytes of 104"),
    "11, word 0": (packed(11, 3, body(), 2, 0), "sent 0 where a word on stopping was due"),
    "11, word True": (packed(11, 3, body(), 2, True), "sent True where a word on stopping"),
    "11, word too large": (packed(11, 3, body(), 2, MAX_WORD + 1), "where a word on stopping"),
    "11, huge seq": (packed(11, MAX_SEQ, body(), 2), "sent exchange 9007199254740992"),
    "11, bool seq": (packed(11, True, body(), 2), "sent exchange True, expected"),
    "11, one byte short": (packed(11, 3, body()[:-1], 2), "with 103 bytes, expected 104"),
    "11, nil body": (packed(11, 3, None, 2), "with a NoneType, expected 104 bytes"),
    "11, nan": (packed(11, 3, body(np.nan), 2), "entries that are not finite"),
    "11, rounded body": (packed(11, 3, 1, F4, 2), "where a word on stopping was due|a promise of"),
    "12, no promise": (packed(12, 3, 1, F4), "a round frame of 4 fields"),
    "12, too many": (packed(12, 3, 1, F4, 2, 7, 7), "a round frame of 7 fields"),
    "12, word 0": (packed(12, 3, 1, F4, 2, 0), "sent 0 where a word on stopping was due"),
    "12, form 0": (packed(12, 3, 0, F4, 2), "exchange 3 in form 0"),
    "12, form True": (packed(12, 3, True, F4, 2), "exchange 3 in form True"),
    "12, f2 as f4": (packed(12, 3, 2, F4, 2), "with 52 bytes, expected 28"),
    "12, whole body": (packed(12, 3, body(), 2, 7), "a promise of 7|in form"),
    "12, f4 nan": (packed(12, 3, 1, b"\xff" * 4 * DIM, 2), "entries that are not finite"),
    "10 with a promise and a word": (packed(10, 3, 1, F4, 2, 7), "a round frame of 6 fields"),
    "1 with a promise and a word": (packed(1, 3, body(), 2, 7), "a round frame of 5 fields"),
    "a token with a promise and a word": (packed(2, 3, 2, 7), "a round frame of 4 fields"),
}


@pytest.mark.parametrize(("raw", "words"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_promises_are_an_error_that_names_the_peer(raw: bytes, words: str) -> None:
    with pytest.raises(RemoteProtocolError, match=words) as error:
        CODEC.decode(raw, "neighbor 7")
    assert str(error.value).startswith("neighbor 7 sent ")
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("name", [None, *FORMS])
def test_a_promise_cut_at_any_length_is_none(name: str | None) -> None:
    raw = CODEC.encode(delta(300, name, word=-9, promise=2))
    for length in range(len(raw)):
        with pytest.raises(RemoteProtocolError, match=f"neighbor 7 sent {length} bytes"):
            CODEC.decode(raw[:length], "neighbor 7")


@given(name=NAMES, promise=st.integers(1, MAX_PROMISE), data=st.data())
def test_a_promise_with_a_changed_byte_is_a_frame_or_a_remote_error(
    name: str | None, promise: int, data: st.DataObject
) -> None:
    raw = bytearray(CODEC.encode(delta(3, name, promise=promise)))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    decode_or_refuse(bytes(raw))
