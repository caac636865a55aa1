"""A method's lasting state as plain values by name: what a checkpoint keeps, and gives back.

Between two rounds a method is whole. Each of its parts (the method itself, its lazy rule, guard,
oracle, streams) says in `STATE` which of its attributes last from one round to the next; the rest
follows from the run's settings and is there again in a method that was built anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dlag_node.errors import CheckpointRefused, LocalProtocolError

Value = NDArray[np.float64] | NDArray[np.int64] | bytes | int | float | None
State = dict[str, Value]  # by path: "theta", "lazy.age", "oracle.rng"

_STREAM = "PCG64"
_STREAM_BYTES = 16 + 16 + 1 + 4  # state, increment, whether half a draw is left over, and which


class Lasting(Protocol):
    """An object with state that must survive a crash: arrays, numbers, streams, other such parts.

    A deque holds numbers, a list other parts or arrays of one length, a mapping other parts. A part
    may be None, in the restored object too.
    """

    @property
    def STATE(self) -> tuple[str, ...]:
        """The names of the attributes that last; a tuple in the class."""


def capture(part: Lasting) -> State:
    """Every lasting value of a part, nested parts included; arrays are not copied."""
    state: State = {}
    _capture(part, "", state)
    return state


def restore(part: Lasting, state: Mapping[str, Value]) -> None:
    """Give a part that was built anew the state that `capture` took from one like it."""
    left = dict(state)
    _restore(part, "", left)
    if left:
        raise CheckpointRefused(f"a checkpoint with {sorted(left)}, which nobody here keeps")


def _capture(part: Lasting, prefix: str, state: State) -> None:
    for name in part.STATE:
        value = getattr(part, name)
        parts = _parts(value)
        if parts is None:
            state[prefix + name] = _plain(value, prefix + name)
        else:
            for end, each in parts:
                _capture(each, f"{prefix}{name}{end}.", state)


def _parts(value: Any) -> list[tuple[str, Lasting]] | None:
    """The parts that an attribute is made of, each with the end of its name; None: it has none."""
    if hasattr(value, "STATE"):
        return [("", value)]
    if isinstance(value, dict):
        return [(f"[{key}]", each) for key, each in value.items()]
    if isinstance(value, list) and all(hasattr(each, "STATE") for each in value):
        # an empty list of arrays has no parts either: it is kept as what it is
        return [(f"[{i}]", each) for i, each in enumerate(value)] if value else None
    return None


def _plain(value: Any, path: str) -> Value:
    if isinstance(value, np.ndarray) and value.dtype in (np.float64, np.int64):
        return value
    if isinstance(value, np.random.Generator):
        return _stream_bytes(value)
    if isinstance(value, deque):
        return np.array(value, dtype=np.float64)
    if isinstance(value, list) and all(isinstance(each, np.ndarray) for each in value):
        return np.array(value, dtype=np.float64).reshape(len(value), len(value[0]) if value else 0)
    plain: object = value.item() if isinstance(value, np.generic) else value
    if plain is None or isinstance(plain, int | float):
        return plain
    raise LocalProtocolError(f"state {path} is a {type(value).__name__}: no checkpoint holds that")


def _restore(part: Lasting, prefix: str, left: dict[str, Value]) -> None:
    for name in part.STATE:
        now, path = getattr(part, name), prefix + name
        parts = _parts(now)
        if parts is not None:
            for end, each in parts:
                _restore(each, f"{path}{end}.", left)
            continue
        try:
            value = left.pop(path)
        except KeyError:
            raise CheckpointRefused(f"a checkpoint without {path}") from None
        if isinstance(now, np.random.Generator) and isinstance(value, bytes):
            _rewind(now, value, path)
        elif isinstance(now, deque) and isinstance(value, np.ndarray):
            now.clear()
            now.extend(value.tolist())
        elif isinstance(now, list) and isinstance(value, np.ndarray) and value.ndim == 2:
            setattr(part, name, [row.copy() for row in value])
        elif _alike(now, value):
            # a copy: it must be ours to write into
            setattr(part, name, value.copy() if isinstance(value, np.ndarray) else value)
        else:
            raise CheckpointRefused(f"a checkpoint with another kind of {path}: {_kind(value)}")


def _alike(now: object, value: Value) -> bool:
    """Whether `value` can take the place of what a method that was built anew has there."""
    if isinstance(now, np.ndarray):
        return isinstance(value, np.ndarray) and (now.dtype, now.ndim) == (value.dtype, value.ndim)
    if now is None:
        return value is None
    kind = float if isinstance(now, float) else int
    return isinstance(now, kind) and isinstance(value, kind)


def _kind(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return type(value).__name__


def _stream_bytes(rng: np.random.Generator) -> bytes:
    full: Mapping[str, Any] = rng.bit_generator.state
    if full["bit_generator"] != _STREAM:
        raise LocalProtocolError(f"a stream of {full['bit_generator']}: expected {_STREAM}")
    numbers = full["state"]
    return b"".join(
        (
            numbers["state"].to_bytes(16, "little"),
            numbers["inc"].to_bytes(16, "little"),
            full["has_uint32"].to_bytes(1, "little"),
            full["uinteger"].to_bytes(4, "little"),
        )
    )


def _rewind(rng: np.random.Generator, raw: bytes, path: str) -> None:
    if len(raw) != _STREAM_BYTES:
        raise CheckpointRefused(f"{path}: {len(raw)} bytes, expected {_STREAM_BYTES}")
    rng.bit_generator.state = {
        "bit_generator": _STREAM,
        "state": {
            "state": int.from_bytes(raw[:16], "little"),
            "inc": int.from_bytes(raw[16:32], "little"),
        },
        "has_uint32": raw[32],
        "uinteger": int.from_bytes(raw[33:], "little"),
    }
