"""Control and observing messages: there and back, ranges, and bytes that are none of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlag_node.data import SCALES, Agreement, Spread, Summary
from dlag_node.errors import RemoteProtocolError
from dlag_node.wire import control, observing
from dlag_node.wire.control import (
    Assignment,
    Census,
    Chunk,
    Enrol,
    Failed,
    Fetch,
    Join,
    Peer,
    Report,
)
from dlag_node.wire.frames import Abort, Refuse
from dlag_node.wire.limits import (
    CHUNK_BYTES,
    MAX_CENSUS_EDGES,
    MAX_CENSUS_NODES,
    MAX_CONTROL_BYTES,
    MAX_DIM,
    MAX_NODES,
    MAX_SCALED_DIM,
    MAX_TEXT,
)
from dlag_node.wire.observing import Fallen, Farewell, Halted, Horizon, Ready, Snapshots
from dlag_node.wire.schema import pack, unpack

Kinds = Mapping[int, type[Any]]
ALL: dict[str, Kinds] = {
    "from a node": control.FROM_NODE,
    "from the coordinator": control.FROM_COORDINATOR,
    "to the laboratory": observing.FROM_NODE,
    "from the laboratory": observing.FROM_LABORATORY,
}
WIDE = st.integers(-(2**63), 2**64 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(max_size=30)


@st.composite
def enrols(draw: st.DrawFn) -> Enrol:
    n0 = draw(st.integers(1, 10**9))
    samples, dim = draw(st.integers(1, n0)), draw(st.integers(1, MAX_DIM))
    entries = draw(st.none() | st.integers(0, 2**40))
    numbers = samples * (1 + dim) if entries is None else 2 * (entries + samples) + 1
    return Enrol(
        run=draw(TEXTS),
        node=draw(st.integers(0, MAX_NODES - 1)),
        problem=draw(TEXTS),
        lam=draw(FLOATS),
        n0=n0,
        samples=samples,
        dim=dim,
        entries=entries,
        size=8 * numbers,
        sha256=draw(TEXTS),
        agreement=draw(AGREEMENTS if dim > MAX_SCALED_DIM else scaled_agreements(dim)),
    )


CLASSES = st.just(()) | st.tuples(st.floats(-9, 0), st.floats(1, 9))
AGREEMENTS = st.builds(Agreement, CLASSES, FLOATS, st.just("none"), st.none())


@st.composite
def scaled_agreements(draw: st.DrawFn, dim: int) -> Agreement:
    scale = draw(st.sampled_from(SCALES))
    spread = None if scale == "none" else Spread(bytes(8 * dim), bytes(8 * dim))
    return Agreement(draw(CLASSES), draw(FLOATS), scale, spread)


@st.composite
def summaries(draw: st.DrawFn) -> Summary:
    dim, scale = draw(st.integers(1, 50)), draw(st.sampled_from(SCALES))
    low = np.array(draw(st.lists(FLOATS, min_size=dim, max_size=dim)))
    spread = None
    if scale != "none":
        spread = Spread(low.tobytes(), np.abs(low).tobytes())
    labels = st.lists(FLOATS, min_size=1, max_size=2).map(tuple)
    return Summary(
        samples=draw(st.integers(1, 2**53)),
        dim=dim,
        names=draw(st.none() | TEXTS),
        labels=draw(st.none() | labels),
        scale=scale,
        spread=spread,
    )


@st.composite
def reports(draw: st.DrawFn) -> Report:
    mu = draw(st.floats(1e-300, 1e300))
    L = draw(st.floats(mu, 1e301))
    return Report(
        draw(TEXTS),
        draw(st.integers(1, 10**9)),
        mu,
        L,
        *[draw(st.none() | st.floats(1, 1e301)) for _ in range(3)],
    )


PEERS = st.lists(
    st.builds(
        Peer,
        st.integers(0, MAX_NODES - 1),
        TEXTS,
        FLOATS,
        st.none() | st.binary(min_size=32, max_size=32),
    ),
    max_size=5,
    unique_by=lambda peer: peer.node,
).map(lambda peers: tuple(sorted(peers, key=lambda peer: peer.node)))
ASSIGNMENTS = st.builds(
    Assignment,
    config=TEXTS,
    method=TEXTS,
    preset=TEXTS,
    rounds=st.integers(1, 2**40),
    tol=st.none() | st.floats(1e-300, 1.0),
    max_seconds=st.none() | st.floats(0.1, 1e9),
    diameter=st.integers(1, MAX_NODES - 1),
    seed=st.integers(0, 2**63),
    own_weight=FLOATS,
    peers=PEERS,
    spectrum=st.lists(FLOATS, max_size=6).map(tuple),
    mu_min=FLOATS,
    L_max=FLOATS,
    L_sample=st.none() | FLOATS,
    census=st.none()
    | st.just(Census((), (), (0.1,), (0.5,), None, None))
    | st.just(Census(((0, 1),), (-1.0,), (0.1, 0.2), (0.5, 1.0), (1.0, 2.0), (3.0, 4.0))),
)
MESSAGES = st.one_of(
    st.builds(Join, WIDE, st.none() | WIDE, st.none() | TEXTS, st.none() | summaries()),
    enrols(),
    st.builds(Fetch, WIDE),
    st.builds(Chunk, WIDE, st.binary(max_size=50)),
    reports(),
    ASSIGNMENTS,
    st.builds(control.Started),
    st.builds(control.Finished, WIDE),
    st.builds(Failed, TEXTS),
    st.builds(Refuse, TEXTS),
    st.builds(Abort, TEXTS),
    st.builds(Ready, WIDE, WIDE, FLOATS, WIDE, TEXTS),
    st.builds(Snapshots, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, st.binary(max_size=80)),
    st.builds(Farewell, WIDE, WIDE, WIDE, FLOATS, WIDE, FLOATS, WIDE, TEXTS),
    st.builds(Horizon, WIDE, st.booleans()),
    st.builds(Halted, WIDE, WIDE, FLOATS, WIDE, TEXTS),
    st.builds(Fallen, WIDE, TEXTS),
    st.builds(control.Full, st.integers(1, MAX_NODES)),
)


def read(raw: bytes, kinds: Kinds, longest: int = MAX_NODES) -> object:
    return unpack(raw, kinds, limit=MAX_CONTROL_BYTES, peer="peer 7", longest=longest)


def test_no_two_messages_share_a_code() -> None:
    kinds = {kind for each in ALL.values() for kind in each.items()}  # Refuse is in two of them
    assert len({code for code, _ in kinds}) == len(kinds)


@given(message=MESSAGES)
def test_every_message_comes_back(message: Any) -> None:
    for kinds in (each for each in ALL.values() if message.CODE in each):
        back = read(pack(message), kinds)
        assert type(back) is type(message)
        assert back == message


def test_the_largest_assignment_fits() -> None:
    address, key = "tcp://[fe80::1234:5678:9abc:def0]:65535", bytes(32)
    peers = tuple(Peer(j, address, -0.5, key) for j in range(1, 9_999))
    largest = replace(assignment(), peers=peers, spectrum=(1.0,) * MAX_NODES)
    assert read(pack(largest), control.FROM_COORDINATOR) == largest


def test_the_largest_census_fits() -> None:
    n, floats = MAX_CENSUS_NODES, (0.1,) * MAX_CENSUS_NODES
    census = Census(
        ((n - 2, n - 1),) * MAX_CENSUS_EDGES,
        (-0.123456789,) * MAX_CENSUS_EDGES,
        floats,
        floats,
        floats,
        floats,
    )
    address, key = "tcp://[fe80::1234:5678:9abc:def0]:65535", bytes(32)
    peers = tuple(Peer(j, address, -0.5, key) for j in range(1, n))
    largest = replace(assignment(), peers=peers, spectrum=floats, census=census)
    assert read(pack(largest), control.FROM_COORDINATOR) == largest


def test_the_largest_scaling_fits_on_both_ways() -> None:
    vector = np.full(MAX_SCALED_DIM, 0.5).tobytes()
    said = Summary(2**53, MAX_SCALED_DIM, "ab" * 32, (-1.0, 1.0), "minmax", Spread(vector, vector))
    join = Join(1, 9_999, held=said)
    assert read(pack(join), control.FROM_NODE, longest=16) == join
    told = Agreement((-1.0, 1.0), 1.0, "minmax", Spread(vector, vector))
    large = replace(enrol(), dim=MAX_SCALED_DIM, size=0, agreement=told)
    assert read(pack(large), control.FROM_COORDINATOR) == large


def test_the_largest_chunk_fits() -> None:
    chunk = Chunk(2**63, bytes(CHUNK_BYTES))
    assert read(pack(chunk), control.FROM_COORDINATOR, longest=16) == chunk


def enrol() -> Enrol:
    agreed = Agreement((-1.0, 1.0), 0.0, "none", None)
    return Enrol("run", 3, "logistic", 0.01, 270, 10, 13, None, 1_120, "ab" * 32, agreed)


def join(**change: object) -> list[object]:
    """The samples of a Join, as they travel, with a change."""
    good: dict[str, object] = {
        "samples": 10,
        "dim": 2,
        "names": None,
        "labels": [-1.0, 1.0],
        "scale": "minmax",
        "spread": [bytes(16), bytes(16)],
    }
    return list((good | change).values())


def floats(*values: float) -> bytes:
    return np.array(values).astype("<f8").tobytes()


def assignment() -> Assignment:
    return Assignment(
        config="c",
        method="dlag",
        preset="paper",
        rounds=5,
        tol=1e-6,
        max_seconds=None,
        diameter=3,
        seed=0,
        own_weight=1.0,
        peers=(Peer(1, "tcp://h:1", -0.5), Peer(4, "tcp://h:2", -0.5)),
        spectrum=(1.5, 0.0),
        mu_min=0.1,
        L_max=1.0,
        L_sample=1.0,
        census=None,
    )


OUT_OF_RANGE: dict[str, tuple[type[Any], dict[str, object], str]] = {
    "node -1": (Enrol, {"node": -1}, "node is -1"),
    "node 10,000": (Enrol, {"node": MAX_NODES}, "node is 10000"),
    "dim 0": (Enrol, {"dim": 0}, "dim is 0"),
    "dim too large": (Enrol, {"dim": MAX_DIM + 1}, "dim is 10000001"),
    "no samples": (Enrol, {"samples": 0}, "samples is 0 of n0 = 270"),
    "more samples than all": (Enrol, {"samples": 271}, "samples is 271 of n0 = 270"),
    "entries -1": (Enrol, {"entries": -1}, "entries is -1"),
    "size -1": (Enrol, {"size": -1}, "size is -1"),
    "one class": (Enrol, {"agreement": [[1.0], 0.0, "none", None]}, "bad classes"),
    "classes out of order": (Enrol, {"agreement": [[1.0, 0.0], 0.0, "none", None]}, "bad classes"),
    "no class": (Enrol, {"agreement": [[0.0, math.nan], 0.0, "none", None]}, "is not finite"),
    "no intercept": (Enrol, {"agreement": [[], math.inf, "none", None]}, "is not finite"),
    "no scaling": (Enrol, {"agreement": [[], 0.0, "max", None]}, "scale is 'max'"),
    "no vectors": (Enrol, {"agreement": [[], 0.0, "minmax", None]}, "its vectors do not fit"),
    "vectors for nothing": (
        Enrol,
        {"agreement": [[], 0.0, "none", [bytes(104), bytes(104)]]},
        "its vectors do not fit",
    ),
    "short vectors": (
        Enrol,
        {"agreement": [[], 0.0, "minmax", [bytes(104), bytes(103)]]},
        "vectors of (104, 103) bytes, dim is 13",
    ),
    "held: no samples": (Join, {"held": join(samples=0)}, "samples is 0"),
    "held: too many samples": (Join, {"held": join(samples=2**53 + 1)}, "samples is 900719"),
    "held: no features": (Join, {"held": join(dim=0)}, "dim is 0"),
    "held: too many features": (Join, {"held": join(dim=MAX_DIM + 1)}, "dim is 10000001"),
    "held: too many to scale": (
        Join,
        {"held": join(dim=MAX_SCALED_DIM + 1)},
        "dim is 60001, scaled at most 60000",
    ),
    "held: long names": (Join, {"held": join(names="x" * (MAX_TEXT + 1))}, "hash is too long"),
    "held: three labels": (Join, {"held": join(labels=[0.0, 1.0, 2.0])}, "labels are (0.0, 1.0"),
    "held: no label": (Join, {"held": join(labels=[math.nan])}, "labels are (nan,)"),
    "held: not finite": (
        Join,
        {"held": join(spread=[floats(0, math.nan), bytes(16)])},
        "a number of the scaling is not finite",
    ),
    "held: least above largest": (
        Join,
        {"held": join(spread=[floats(0, 2), floats(0, 1)])},
        "vectors that are no minmax",
    ),
    "held: negative variance": (
        Join,
        {"held": join(scale="standard", spread=[floats(0, 2), floats(0, -1)])},
        "vectors that are no standard",
    ),
    "address": (Report, {"address": "x" * (MAX_TEXT + 1)}, "the address is too long"),
    "samples 0": (Report, {"samples": 0}, "samples is 0"),
    "mu 0": (Report, {"mu": 0.0}, "mu is 0.0"),
    "mu -1": (Report, {"mu": -1.0}, "mu is -1.0"),
    "mu nan": (Report, {"mu": math.nan}, "mu is nan"),
    "mu inf": (Report, {"mu": math.inf}, "mu is inf"),
    "L nan": (Report, {"L": math.nan}, "L is nan"),
    "L inf": (Report, {"L": math.inf}, "L is inf"),
    "L below mu": (Report, {"L": 0.05}, "L is 0.05, mu is 0.1"),
    "L_sample -1": (Report, {"L_sample": -1.0}, "L_sample is -1.0"),
    "L_sample nan": (Report, {"L_sample": math.nan}, "L_sample is nan"),
    "L_sum -1": (Report, {"L_sum": -1.0}, "L_sum is -1.0"),
    "root_sum 0": (Report, {"root_sum": 0.0}, "root_sum is 0.0"),
    "census of two lengths": (
        Assignment,
        {"census": [[], [], [0.1], [0.2], [], [1.0]]},
        "1 mu, others are [1, 0, 1]",
    ),
    "an edge without a weight": (
        Assignment,
        {"census": [[[0, 0]], [], [0.1], [0.2], [1.0], [1.0]]},
        "1 edges, 0 weights",
    ),
    "a weight that is no number": (
        Assignment,
        {"census": [[[0, 0]], [math.nan], [0.1], [0.2], [1.0], [1.0]]},
        "a number is not finite",
    ),
    "an edge to nowhere": (
        Assignment,
        {"census": [[[0, 1]], [-1.0], [0.1], [0.2], [1.0], [1.0]]},
        "an edge leaves the 1 nodes",
    ),
    "rounds 0": (Assignment, {"rounds": 0}, "rounds is 0"),
    "peers out of order": (
        Assignment,
        {"peers": [[4, "a", 1.0, None], [1, "a", 1.0, None]]},
        "[4, 1], not in",
    ),
    "a peer twice": (
        Assignment,
        {"peers": [[4, "a", 1.0, None], [4, "a", 1.0, None]]},
        "[4, 4], not in",
    ),
    "a peer's key": (
        Assignment,
        {"peers": [[4, "a", 1.0, b"short"]]},
        "the key is not of 32 bytes",
    ),
    "token": (Join, {"token": "x" * (MAX_TEXT + 1)}, "the token is too long"),
    "configuration": (Ready, {"config": "x" * (MAX_TEXT + 1)}, "the configuration is too long"),
    "halted's configuration": (
        Halted,
        {"config": "x" * (MAX_TEXT + 1)},
        "the configuration is too long",
    ),
    "reason": (Failed, {"reason": "x" * (MAX_TEXT + 1)}, "the reason is too long"),
}
WRONG_TYPE: dict[str, tuple[type[Any], dict[str, object], str]] = {
    "bool for int": (Fetch, {"chunk": True}, "Fetch.chunk is True, expected int"),
    "float for int": (Fetch, {"chunk": 1.0}, "Fetch.chunk is 1.0, expected int"),
    "int for float": (Report, {"mu": 1}, "Report.mu is 1, expected float"),
    "str for int or None": (Join, {"wanted": "3"}, "Join.wanted is '3', expected int"),
    "number for samples": (Join, {"held": 7}, "Join.held is no Summary"),
    "text for a vector": (Join, {"held": join(spread=["", b""])}, "first is '', expected bytes"),
    "bool for int or None": (Join, {"wanted": False}, "Join.wanted is False, expected int"),
    "None for int": (Join, {"version": None}, "Join.version is None, expected int"),
    "str for bytes": (Chunk, {"body": "x"}, "Chunk.body is 'x', expected bytes"),
    "int for bool": (Horizon, {"final": 1}, "Horizon.final is 1, expected bool"),
    "None for peers": (Assignment, {"peers": None}, "Assignment.peers is None, expected an array"),
    "number for a peer": (Assignment, {"peers": [7]}, "Assignment.peers[0] is no Peer"),
    "peer of 2 fields": (Assignment, {"peers": [[1, "a"]]}, "Assignment.peers[0] is no Peer"),
    "peer's weight": (
        Assignment,
        {"peers": [[1, "a", 0.5, None], [2, "b", 1, None]]},
        "Assignment.peers[1].weight is 1, expected float",
    ),
    "eigenvalue": (Assignment, {"spectrum": [1.0, "0"]}, "Assignment.spectrum[1] is '0', expected"),
    "None for a configuration": (Ready, {"config": None}, "Ready.config is None, expected str"),
    "bytes for a configuration": (
        Halted,
        {"config": bytes(64)},
        "Halted.config is a bytes of 64, expected str",
    ),
    "list for str": (Failed, {"reason": [[[]]]}, "Failed.reason is a list of 1, expected str"),
}
GOOD: dict[type[Any], Any] = {
    Join: Join(1, None),
    Enrol: enrol(),
    Fetch: Fetch(0),
    Chunk: Chunk(0, b"x"),
    Report: Report("tcp://h:1", 10, 0.1, 1.0, 1.0, 1.0, 1.0),
    Assignment: assignment(),
    Failed: Failed("why"),
    Horizon: Horizon(10, False),
    Ready: Ready(0, 0, 0.1, 1, "c0" * 32),
    Halted: Halted(0, 10, 0.1, 1, "c0" * 32),
}


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [*OUT_OF_RANGE.values(), *WRONG_TYPE.values()],
    ids=[*OUT_OF_RANGE, *WRONG_TYPE],
)
def test_a_field_that_does_not_fit_is_named(
    kind: type[Any], change: dict[str, object], words: str
) -> None:
    good = GOOD[kind]
    (kinds,) = [each for each in ALL.values() if kind.CODE in each]
    items = msgpack.unpackb(pack(good))
    for at, field in enumerate(fields(kind), start=1):
        items[at] = change.get(field.name, items[at])
    with pytest.raises(RemoteProtocolError) as error:
        read(msgpack.packb(items), kinds)
    assert f"peer 7 sent a bad {kind.__name__}: " in str(error.value)
    assert words in str(error.value)


def test_a_message_for_somebody_else_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="peer 7 sent a message of unknown type 25"):
        read(pack(assignment()), control.FROM_NODE)
    with pytest.raises(RemoteProtocolError, match="peer 7 sent a message of unknown type True"):
        read(msgpack.packb([True]), control.FROM_NODE)


def test_a_message_over_the_limit_is_refused_unread() -> None:
    with pytest.raises(RemoteProtocolError, match="peer 7 sent 1052673 bytes, the limit is"):
        read(bytes(MAX_CONTROL_BYTES + 1), control.FROM_NODE)


def test_arrays_are_short_unless_the_caller_expects_long_ones() -> None:
    long = replace(assignment(), spectrum=(1.0,) * 17)
    with pytest.raises(RemoteProtocolError, match="no message"):
        read(pack(long), control.FROM_COORDINATOR, longest=16)
    assert read(pack(long), control.FROM_COORDINATOR, longest=17) == long


@dataclass(frozen=True, slots=True)
class Pair:
    CODE: ClassVar[int] = 99
    pair: tuple[int, str]


def test_a_tuple_of_fixed_length_is_checked_entry_by_entry() -> None:
    assert read(pack(Pair((1, "a"))), {99: Pair}) == Pair((1, "a"))
    with pytest.raises(RemoteProtocolError, match=r"Pair\.pair has 1 entries, expected 2"):
        read(msgpack.packb([99, [1]]), {99: Pair})
    with pytest.raises(RemoteProtocolError, match=r"Pair\.pair\[1\] is 2, expected str"):
        read(msgpack.packb([99, [1, 2]]), {99: Pair})


TREES = st.recursive(
    st.none() | st.booleans() | WIDE | st.floats() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("kinds", ALL.values(), ids=ALL)
@given(raw=st.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_remote_error(kinds: Kinds, raw: bytes) -> None:
    read_or_refuse(raw, kinds)


@pytest.mark.parametrize("kinds", ALL.values(), ids=ALL)
@given(data=st.data())
def test_any_well_formed_array_is_a_message_or_a_remote_error(
    kinds: Kinds, data: st.DataObject
) -> None:
    code = data.draw(st.sampled_from(sorted(kinds)))
    rest = data.draw(st.lists(TREES, max_size=11))
    read_or_refuse(msgpack.packb([code, *rest]), kinds)


@given(message=MESSAGES, data=st.data())
def test_a_message_with_a_changed_byte_is_one_or_a_remote_error(
    message: Any, data: st.DataObject
) -> None:
    raw = bytearray(pack(message))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    for kinds in ALL.values():
        read_or_refuse(bytes(raw), kinds)


def read_or_refuse(raw: bytes, kinds: Kinds) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with suppress(RemoteProtocolError):
            assert type(read(raw, kinds)) in kinds.values()
