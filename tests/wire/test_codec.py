"""Frames between nodes: bit for bit there and back, and a table of bytes that are none."""

from __future__ import annotations

import math
import time
import warnings
from contextlib import suppress

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlag_node.errors import LocalProtocolError, RemoteProtocolError
from dlag_node.rounding import FORMS, rounded
from dlag_node.wire import (
    Abort,
    Delta,
    Done,
    Frame,
    Hello,
    Need,
    Refuse,
    Skip,
    Welcome,
    Who,
)
from dlag_node.wire.codec import Codec
from dlag_node.wire.limits import MAX_BACK, MAX_NODES, MAX_SEQ, MAX_TEXT, MAX_WIDTH, MAX_WORD

DIM = 13
CODEC = Codec(DIM)
SEQS = st.integers(0, MAX_SEQ - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)  # subnormals and -0.0 among them
TEXTS = st.text(max_size=40)
WORDS = st.integers(-MAX_WORD, MAX_WORD)
HELLOS = {
    "version": st.integers(-(2**63), 2**64 - 1),
    "run": TEXTS,
    "config": TEXTS,
    "node": st.integers(0, MAX_NODES - 1),
    "need": SEQS,
    "back": st.integers(0, MAX_BACK),
    "address": TEXTS,
}
CONTROL = st.one_of(
    st.builds(Hello, **HELLOS),
    st.builds(Welcome, **HELLOS),
    st.builds(Need, SEQS),
    st.builds(Who),
    st.builds(Refuse, TEXTS),
    st.builds(Done, SEQS),
    st.builds(Abort, TEXTS),
)
EDGES = [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1e200, 1.0]


@given(seq=SEQS, entries=st.lists(FINITE, min_size=1, max_size=40))
def test_a_delta_comes_back_bit_for_bit(seq: int, entries: list[float]) -> None:
    vector = np.array(entries)
    codec = Codec(len(vector))
    back = codec.decode(codec.encode(Delta(seq, vector)), "neighbor 1")
    assert isinstance(back, Delta)
    assert back.seq == seq
    assert back.vector.tobytes() == vector.tobytes()
    assert not back.vector.flags.writeable


@given(seq=SEQS, entries=st.lists(FINITE, min_size=1, max_size=40), name=st.sampled_from([*FORMS]))
def test_a_rounded_delta_comes_back_bit_for_bit(seq: int, entries: list[float], name: str) -> None:
    vector = rounded(np.clip(np.array(entries), -3e38, 3e38), FORMS[name])
    codec = Codec(len(entries))
    raw = codec.encode(Delta(seq, vector.values, vector))
    back = codec.decode(raw, "neighbor 1")
    assert isinstance(back, Delta)
    assert back.vector.tobytes() == vector.values.tobytes()
    assert back.payload_bytes == FORMS[name].size(len(entries))
    assert back.payload_bytes <= len(raw) <= back.payload_bytes + 16
    assert codec.encode(back) == raw


def test_the_edges_of_float64_come_back_bit_for_bit() -> None:
    codec = Codec(len(EDGES))
    back = codec.decode(codec.encode(Delta(0, np.array(EDGES))), "neighbor 1")
    assert isinstance(back, Delta)
    assert back.vector.tobytes() == np.array(EDGES).tobytes()


@given(seq=SEQS, word=WORDS)
def test_a_skip_comes_back(seq: int, word: int) -> None:
    assert CODEC.decode(CODEC.encode(Skip(seq, word)), "neighbor 1") == Skip(seq, word)


@given(seq=SEQS, word=WORDS, name=st.sampled_from([None, *FORMS]))
def test_a_word_on_stopping_takes_its_own_bytes_and_nothing_else(
    seq: int, word: int, name: str | None
) -> None:
    vector = None if name is None else rounded(np.ones(DIM), FORMS[name])
    plain = CODEC.encode(Delta(seq, np.ones(DIM), vector))
    raw = CODEC.encode(Delta(seq, np.ones(DIM), vector, word))
    back = CODEC.decode(raw, "neighbor 1")
    assert isinstance(back, Delta)
    assert back.word == word
    assert CODEC.encode(back) == raw
    assert len(raw) - len(plain) == (len(msgpack.packb(word)) if word else 0)


@given(frame=CONTROL)
def test_every_other_frame_comes_back(frame: Frame) -> None:
    back = CODEC.decode(CODEC.encode(frame), "neighbor 1")
    assert type(back) is type(frame)
    assert back == frame


def test_a_strided_vector_is_written_as_its_entries() -> None:
    wide = np.arange(2.0 * DIM)
    back = CODEC.decode(CODEC.encode(Delta(3, wide[::2])), "neighbor 1")
    assert isinstance(back, Delta)
    assert np.array_equal(back.vector, wide[::2])


@pytest.mark.parametrize(
    ("frame", "size"),
    [
        # array head 1, code 1, seq 300 as uint16 3; the vector's head 2 (bin 8), 8 * 13 = 104
        (Delta(300, np.ones(DIM)), 111),
        (Skip(300), 5),
        (Skip(0), 3),  # a fixint, 1
        (Skip(127), 3),
        (Skip(128), 4),  # uint8, 2
        (Skip(65_536), 7),  # uint32, 5
        (Skip(MAX_SEQ - 1), 11),  # uint64, 9
        (Skip(0, 18), 4),  # a word on stopping from -32 to 127, 1
        (Skip(0, -24), 4),
        (Skip(0, -33), 5),  # int8, 2
        (Skip(0, 128), 5),
        (Delta(300, np.ones(DIM), word=7), 112),
        (Who(), 2),
    ],
    ids=repr,
)
def test_the_size_on_the_wire(frame: Frame, size: int) -> None:
    assert len(CODEC.encode(frame)) == size


@pytest.mark.parametrize(("dim", "head"), [(31, 2), (32, 3), (8_191, 3), (8_192, 5)])
def test_a_vectors_head_grows_with_it(dim: int, head: int) -> None:
    """bin 8 up to 255 bytes (2), bin 16 up to 65,535 (3), then bin 32 (5)."""
    assert len(Codec(dim).encode(Delta(0, np.ones(dim)))) == 3 + head + 8 * dim


@given(frame=CONTROL)
def test_an_honest_frame_is_within_its_limit(frame: Frame) -> None:
    assert len(Codec(1).encode(frame)) <= Codec(1).frame_limit


@pytest.mark.parametrize(
    "vector",
    [
        np.ones(DIM - 1),
        np.ones(DIM + 1),
        np.ones((1, DIM)),
        np.float64(1.0).reshape(()),
        np.ones(DIM, dtype=np.float32),
        np.ones(DIM, dtype=np.int64),
        np.where(np.arange(DIM) == 4, np.nan, 1.0),
        np.where(np.arange(DIM) == 4, np.inf, 1.0),
        np.where(np.arange(DIM) == 4, -np.inf, 1e200),
    ],
    ids=["short", "long", "matrix", "scalar", "float32", "int64", "nan", "inf", "-inf"],
)
def test_a_vector_that_breaks_the_rules_is_our_own_bug(vector: np.ndarray) -> None:
    with pytest.raises(LocalProtocolError, match=r"exchange 7: a delta of shape .* 13 finite"):
        CODEC.encode(Delta(7, vector))
    # and the codec is none the worse for it
    assert CODEC.decode(CODEC.encode(Skip(8)), "neighbor 1") == Skip(8)


@pytest.mark.parametrize("dim", [0, -1, MAX_WIDTH + 1])
def test_a_dimension_out_of_range_is_our_own_bug(dim: int) -> None:
    with pytest.raises(LocalProtocolError, match=f"vectors of {dim} entries"):
        Codec(dim)


def packed(*items: object) -> bytes:
    raw: bytes = msgpack.packb(list(items))
    return raw


def body(entry: float = 1.0, at: int = 4) -> bytes:
    return np.where(np.arange(DIM) == at, entry, 1.0).astype("<f8").tobytes()


def signalling_nan() -> bytes:
    return (0x7FF0000000000001).to_bytes(8, "little") * DIM


def nested(depth: int, width: int = 1) -> bytes:
    """Arrays one in the other, each of which says that it has `width` entries."""
    head = bytes([0x90 + width]) if width < 16 else b"\xdd" + width.to_bytes(4, "big")
    return head * depth + b"\x01"


LIMIT = CODEC.frame_limit
NO_MESSAGE = "bytes that are no message"
HELLO = (3, 1, "run", "config", 4, 0, 2, "tcp://h:1")
HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", f"sent 0 {NO_MESSAGE}"),
    "trailing byte": (packed(2, 3) + b"\x00", f"sent 4 {NO_MESSAGE}"),
    "two frames": (packed(2, 3) + packed(2, 4), NO_MESSAGE),
    "text": (b"GET / HTTP/1.1\r\n\r\n", NO_MESSAGE),
    "never used code": (b"\xc1", NO_MESSAGE),
    "oversized": (packed(2, 3).ljust(LIMIT + 1, b"\0"), f"sent {LIMIT + 1} bytes, the limit is"),
    "just under": (packed(2, 3).ljust(LIMIT, b"\0"), f"sent {LIMIT} {NO_MESSAGE}"),
    "integer": (b"\x05", "sent a int where a message was due"),
    "nil": (b"\xc0", "sent a NoneType where"),
    "string": (msgpack.packb("hello"), "sent a str where"),
    "empty map": (b"\x80", "sent a dict where"),
    "map": (msgpack.packb({"seq": 1}), NO_MESSAGE),
    "map with a list for a key": (b"\x81\x90\x01", NO_MESSAGE),
    "map inside": (packed(2, {"seq": 1}), NO_MESSAGE),
    "empty array": (b"\x90", "sent a list where"),
    "code 0": (packed(0, 3), "a frame of unknown type 0"),
    "code 13": (packed(13, 3), "a frame of unknown type 13"),
    "code -1": (packed(-1, 3), "a frame of unknown type -1"),
    "code 2^64 - 1": (packed(2**64 - 1, 3), "a frame of unknown type 18446744073709551615"),
    "bool as code": (packed(True, 3, body()), "a frame of unknown type True"),
    "float as code": (packed(1.0, 3, body()), "a frame of unknown type 1.0"),
    "string as code": (packed("1", 3, body()), "a frame of unknown type '1'"),
    "nil as code": (packed(None, 3), "a frame of unknown type None"),
    "list as code": (packed([1], 3), "a frame of unknown type a list of 1"),
    "bytes as code": (packed(bytes(99), 3), "a frame of unknown type a bytes of 99"),
    "long text as code": (packed("x" * 5_000), f"a frame of unknown type '{'x' * 40}'"),
    "a code of the coordinator": (packed(20, 1, None), "a frame of unknown type 20"),
    "delta of 2 fields": (packed(1, 3), "a round frame of 2 fields"),
    "delta of 5 fields": (packed(1, 3, body(), 1, 1), "a round frame of 5 fields"),
    "delta with word 0": (packed(1, 3, body(), 0), "sent 0 where a word on stopping was due"),
    "skip of 1 field": (packed(2), "a round frame of 1 fields"),
    "skip with a payload": (
        packed(2, 3, body()),
        "a bytes of 104 where a word on stopping was due",
    ),
    "skip of 4 fields": (packed(2, 3, 1, 1), "a round frame of 4 fields"),
    "skip with True": (packed(2, 3, True), "sent True where a word on stopping was due"),
    "a word too large": (
        packed(2, 3, MAX_WORD + 1),
        f"sent {MAX_WORD + 1} where a word on stopping was due",
    ),
    "a word too small": (
        packed(2, 3, -MAX_WORD - 1),
        f"sent {-MAX_WORD - 1} where a word on stopping was due",
    ),
    "float seq": (packed(2, 3.0), "sent exchange 3.0, expected 0 to 9007199254740992"),
    "negative seq": (packed(2, -1), "sent exchange -1, expected"),
    "huge seq": (packed(2, MAX_SEQ), "sent exchange 9007199254740992, expected"),
    "huge seq of a delta": (packed(1, 2**64 - 1, body()), "sent exchange 18446744073709551615"),
    "bool seq": (packed(2, True), "sent exchange True, expected"),
    "nil seq": (packed(2, None), "sent exchange None, expected"),
    "string seq": (packed(2, "3"), "sent exchange '3', expected"),
    "nan seq": (packed(2, math.nan), "sent exchange nan, expected"),
    "string payload": (packed(1, 3, "x" * 8 * DIM), "exchange 3 with a str, expected 104 bytes"),
    "list payload": (packed(1, 3, [1.0] * DIM), "exchange 3 with a list, expected 104 bytes"),
    "nil payload": (packed(1, 3, None), "exchange 3 with a NoneType, expected 104 bytes"),
    "empty payload": (packed(1, 3, b""), "exchange 3 with 0 bytes, expected 104 bytes"),
    "one byte short": (packed(1, 3, body()[:-1]), "exchange 3 with 103 bytes, expected 104"),
    "one byte long": (packed(1, 3, body() + b"\0"), "exchange 3 with 105 bytes, expected 104"),
    "nan": (packed(1, 3, body(math.nan)), "exchange 3 with entries that are not finite"),
    "signalling nan": (packed(1, 3, signalling_nan()), "entries that are not finite"),
    "inf": (packed(1, 3, body(math.inf)), "exchange 3 with entries that are not finite"),
    "-inf": (packed(1, 3, body(-math.inf, 0)), "exchange 3 with entries that are not finite"),
    "rounded of 3 fields": (packed(10, 3, bytes(52)), "a round frame of 3 fields"),
    "rounded of 6 fields": (packed(10, 3, 1, bytes(52), 1, 1), "a round frame of 6 fields"),
    "rounded in form 0": (packed(10, 3, 0, bytes(52)), "exchange 3 in form 0"),
    "rounded in form 4": (packed(10, 3, 4, bytes(15)), "exchange 3 in form 4"),
    "rounded in form True": (packed(10, 3, True, bytes(52)), "exchange 3 in form True"),
    "rounded in form nil": (packed(10, 3, None, bytes(52)), "exchange 3 in form None"),
    "rounded in form [1]": (packed(10, 3, [1], bytes(52)), "exchange 3 in form a list of 1"),
    "f4, one byte short": (packed(10, 3, 1, bytes(51)), "with 51 bytes, expected 52"),
    "f2 as f4": (packed(10, 3, 2, bytes(52)), "with 52 bytes, expected 28"),
    "i1 without its exponent": (packed(10, 3, 3, bytes(DIM)), "with 13 bytes, expected 15"),
    "i1, nil body": (packed(10, 3, 3, None), "with a NoneType, expected 15 bytes"),
    "f4 nan": (packed(10, 3, 1, b"\xff" * 52), "exchange 3 with entries that are not finite"),
    "f2 inf": (packed(10, 3, 2, b"\0\0" + b"\x00\x7c" * DIM), "entries that are not finite"),
    "i1 to the sky": (packed(10, 3, 3, b"\xff\x7f" + b"\x01" * DIM), "entries that are not finite"),
    "rounded, huge seq": (packed(10, MAX_SEQ, 1, bytes(52)), "sent exchange 9007199254740992"),
    "ext": (packed(2, msgpack.ExtType(5, b"x")), NO_MESSAGE),
    "timestamp of 4 bytes": (packed(2, msgpack.Timestamp(1)), NO_MESSAGE),
    "timestamp of 12 bytes": (packed(2, msgpack.Timestamp(2**40, 1)), NO_MESSAGE),
    "timestamp that is none": (b"\x92\x02\xc7\x0c\xff" + b"\xff" * 12, NO_MESSAGE),
    "nested 1,000 deep": (nested(1_000), "a frame of unknown type a list of 1"),
    "nested in a skip": (b"\x92\x02" + nested(1_000), "exchange a list of 1, expected"),
    "nested in a refuse": (b"\x92\x07" + nested(1_000), "Refuse.reason is a list of 1"),
    "nested 8,000 deep": (nested(8_000), NO_MESSAGE),
    "17 fields": (packed(*range(17)), NO_MESSAGE),
    "array that says 2^32 - 1": (b"\xdd\xff\xff\xff\xff\x02", NO_MESSAGE),
    "bytes that say 2^32 - 1": (b"\x93\x01\x03\xc6\xff\xff\xff\xff", NO_MESSAGE),
    "bad UTF-8 in a hello": (b"\x96\x03\x01\xa2\xff\xfe\xa1c\x04\x00", NO_MESSAGE),
    "surrogates in a hello": (b"\x96\x03\x01\xa3\xed\xa0\x80\xa1c\x04\x00", NO_MESSAGE),
    "hello of 6 fields": (packed(*HELLO[:-1]), "a Hello of 6 fields, expected 7"),
    "hello of 8 fields": (packed(*HELLO, 0), "a Hello of 8 fields, expected 7"),
    "hello, version": (packed(3, "1", *HELLO[2:]), "Hello.version is '1', expected int"),
    "hello, bool version": (packed(3, True, *HELLO[2:]), "Hello.version is True, expected int"),
    "hello, run": (packed(3, 1, b"run", *HELLO[3:]), "Hello.run is a bytes of 3, expected str"),
    "hello, config": (packed(3, 1, "run", None, *HELLO[4:]), "Hello.config is None, expected str"),
    "hello, node": (packed(*HELLO[:4], 4.0, *HELLO[5:]), "Hello.node is 4.0, expected int"),
    "hello, node -1": (packed(*HELLO[:4], -1, *HELLO[5:]), "a bad Hello: node is -1"),
    "hello, back -1": (packed(*HELLO[:6], -1, "tcp://h:1"), "a bad Hello: back is -1"),
    "hello, far back": (packed(*HELLO[:6], 2_001, "tcp://h:1"), "a bad Hello: back is 2001"),
    "hello, address": (packed(*HELLO[:7], 5), "Hello.address is 5, expected str"),
    "hello, node 10,000": (packed(*HELLO[:4], MAX_NODES, *HELLO[5:]), "node is 10000"),
    "hello, need": (packed(*HELLO[:5], -1, *HELLO[6:]), "exchange -1 is out of range"),
    "hello, long run": (packed(3, 1, "r" * 2_001, *HELLO[3:]), "a text of 2001 characters"),
    "welcome, need": (packed(4, *HELLO[1:5], MAX_SEQ, *HELLO[6:]), "a bad Welcome: exchange"),
    "need of nothing": (packed(5), "a Need of 0 fields, expected 1"),
    "need, negative": (packed(5, -1), "a bad Need: exchange -1 is out of range"),
    "need, bool": (packed(5, False), "Need.seq is False, expected int"),
    "who with a field": (packed(6, 1), "a Who of 1 fields, expected 0"),
    "refuse, too long": (packed(7, "x" * (MAX_TEXT + 1)), "a text of 2001 characters"),
    "refuse, bytes": (packed(7, b"why"), "Refuse.reason is a bytes of 3, expected str"),
    "done, huge": (packed(8, 2**64 - 1), "a bad Done: exchange 18446744073709551615"),
    "abort, too long": (packed(9, "x" * (MAX_TEXT + 1)), "a bad Abort: a text of 2001 characters"),
    "abort, number": (packed(9, 1), "Abort.reason is 1, expected str"),
}


@pytest.mark.parametrize(("raw", "words"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_bytes_are_an_error_that_names_the_peer(raw: bytes, words: str) -> None:
    with pytest.raises(RemoteProtocolError) as error:
        CODEC.decode(raw, "neighbor 7")
    assert str(error.value).startswith("neighbor 7 sent ")
    assert words in str(error.value)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    "frame",
    [
        Delta(300, np.arange(1.0, DIM + 1)),
        Skip(300),
        Hello(1, "run", "config", 4, 300, 2, "tcp://h:1"),
        Need(300),
        Refuse("not of this run"),
    ],
    ids=lambda frame: type(frame).__name__,
)
def test_an_honest_frame_cut_at_any_length_is_none(frame: Frame) -> None:
    raw = CODEC.encode(frame)
    for length in range(len(raw)):
        with pytest.raises(RemoteProtocolError, match=f"neighbor 7 sent {length} {NO_MESSAGE}"):
            CODEC.decode(raw[:length], "neighbor 7")


@given(raw=st.binary(max_size=300))
def test_any_bytes_are_a_frame_or_a_remote_error(raw: bytes) -> None:
    decode_or_refuse(raw)


TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=9)
    | st.binary(max_size=9)
    | st.just(bytes(8 * DIM)),
    lambda inner: st.lists(inner, max_size=7) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


@given(code=st.integers(0, 12) | TREES, rest=st.lists(TREES, max_size=6))
def test_any_well_formed_array_is_a_frame_or_a_remote_error(
    code: object, rest: list[object]
) -> None:
    decode_or_refuse(packed(code, *rest))


@given(frame=CONTROL | st.builds(Skip, SEQS), data=st.data())
def test_a_frame_with_a_changed_byte_is_a_frame_or_a_remote_error(
    frame: Frame, data: st.DataObject
) -> None:
    raw = bytearray(CODEC.encode(frame))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    decode_or_refuse(bytes(raw))


@given(words=st.lists(st.integers(0, 2**64 - 1), min_size=DIM, max_size=DIM))
def test_any_bits_for_a_vector_are_a_delta_or_a_remote_error(words: list[int]) -> None:
    decode_or_refuse(packed(1, 3, b"".join(word.to_bytes(8, "little") for word in words)))


def decode_or_refuse(raw: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with suppress(RemoteProtocolError):
            frame = CODEC.decode(raw, "neighbor 7")
            again = CODEC.encode(frame)
            assert CODEC.encode(CODEC.decode(again, "neighbor 7")) == again


def test_arrays_that_lie_about_their_length_cost_nothing() -> None:
    """A thousand heads of one array in the other ask msgpack for as much room as they claim."""
    codec = Codec(1_000_000)
    raw = nested(1_000, width=7_000_000).ljust(codec.frame_limit, b"\x01")
    started = time.process_time()
    for _ in range(100):
        with pytest.raises(RemoteProtocolError):
            codec.decode(raw, "neighbor 7")
    assert time.process_time() - started < 1.0  # seconds; by the claims it took 20
