"""From a frozen dataclass to msgpack bytes and back, with every field's type checked on arrival.

A message is the array `[code, field, field, ...]`: the class knows its `CODE`, its annotations are
the schema, and its `__post_init__` holds what a type cannot say (ranges, sizes). Nothing is built
from bytes that does not fit, and nothing but the classes listed by the caller is ever built.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, ClassVar, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

import msgpack

from dlag_node.errors import RemoteProtocolError
from dlag_node.wire.limits import MAX_FIELDS

_SHOWN = 40  # characters of a peer's value in our words about it


class Message(Protocol):
    """What `pack` takes: a dataclass with a code of its own."""

    CODE: ClassVar[int]
    __dataclass_fields__: ClassVar[dict[str, Any]]


M = TypeVar("M", bound=Message)


def pack(message: Message) -> bytes:
    """The bytes of a message."""
    values = [getattr(message, field.name) for field in fields(message)]
    packed: bytes = msgpack.packb([message.CODE, *map(_plain, values)])
    return packed


def unpack(
    raw: bytes,
    kinds: Mapping[int, type[M]],
    *,
    limit: int,
    peer: object,
    longest: int = MAX_FIELDS,
) -> M:
    """The message in `raw`, one of `kinds`; else a RemoteProtocolError that names `peer`."""
    items = unpack_array(raw, limit, peer, longest)
    kind = kinds.get(items[0]) if type(items[0]) is int else None
    if kind is None:
        raise RemoteProtocolError(f"{peer} sent a message of unknown type {shown(items[0])}")
    return build(kind, items[1:], peer=peer)


def unpack_array(raw: bytes, limit: int, peer: object, longest: int = MAX_FIELDS) -> list[Any]:
    """The msgpack array in `raw`, checked for size and form but not yet for meaning.

    No array in it is longer than `longest`. msgpack makes room for as many entries as an array
    says it has: without that limit a thousand arrays, one in the other, cost gigabytes.
    """
    if len(raw) > limit:
        raise RemoteProtocolError(f"{peer} sent {len(raw)} bytes, the limit is {limit}")
    try:
        items = msgpack.unpackb(raw, max_array_len=longest, max_map_len=0, max_ext_len=0)
    except (ValueError, msgpack.UnpackException) as exc:
        # truncated, trailing bytes, bad UTF-8, nested too deeply: msgpack's errors are these two
        raise RemoteProtocolError(f"{peer} sent {len(raw)} bytes that are no message") from exc
    if not isinstance(items, list) or not items:
        raise RemoteProtocolError(f"{peer} sent a {type(items).__name__} where a message was due")
    return items


def build(kind: type[M], values: list[Any], *, peer: object) -> M:
    """`kind(*values)` with every value checked against its field."""
    wanted = _schema(kind)
    if len(values) != len(wanted):
        raise RemoteProtocolError(
            f"{peer} sent a {kind.__name__} of {len(values)} fields, expected {len(wanted)}"
        )
    try:
        checked = [
            _checked(hint, value, f"{kind.__name__}.{name}")
            for (name, hint), value in zip(wanted, values, strict=True)
        ]
        return kind(*checked)
    except ValueError as exc:
        raise RemoteProtocolError(f"{peer} sent a bad {kind.__name__}: {exc}") from exc


def shown(value: Any) -> str:
    """A peer's value in our words: short, and without a walk into what may be nested deeply."""
    if isinstance(value, list | bytes):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, str):
        return repr(value[:_SHOWN])
    return repr(value)[:_SHOWN]


@cache
def _schema(kind: type[Any]) -> list[tuple[str, Any]]:
    hints = get_type_hints(kind)
    return [(field.name, hints[field.name]) for field in fields(kind)]


def _plain(value: Any) -> Any:
    """What msgpack can write: nested dataclasses become arrays of their fields."""
    if hasattr(value, "__dataclass_fields__"):
        return [_plain(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value


def _checked(hint: Any, value: Any, where: str) -> Any:
    """`value` as `hint` wants it, lists turned into tuples; ValueError otherwise."""
    origin = get_origin(hint)
    if origin is tuple:
        return _checked_tuple(get_args(hint), value, where)
    if origin is Union or origin is types.UnionType:
        if value is None and type(None) in get_args(hint):
            return None
        (hint,) = [each for each in get_args(hint) if each is not type(None)]
        return _checked(hint, value, where)
    if hasattr(hint, "__dataclass_fields__"):
        wanted = _schema(hint)
        if not isinstance(value, list) or len(value) != len(wanted):
            raise ValueError(f"{where} is no {hint.__name__}")
        inner = [
            _checked(each, v, f"{where}.{name}")
            for (name, each), v in zip(wanted, value, strict=True)
        ]
        return hint(*inner)
    if type(value) is hint:  # `type is`: a bool is not an int here
        return value
    raise ValueError(f"{where} is {shown(value)}, expected {hint.__name__}")


def _checked_tuple(inner: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{where} is {shown(value)}, expected an array")
    if len(inner) == 2 and inner[1] is Ellipsis:
        return tuple(_checked(inner[0], each, f"{where}[{i}]") for i, each in enumerate(value))
    if len(inner) != len(value):
        raise ValueError(f"{where} has {len(value)} entries, expected {len(inner)}")
    pairs = zip(inner, value, strict=True)
    return tuple(_checked(hint, each, f"{where}[{i}]") for i, (hint, each) in enumerate(pairs))
