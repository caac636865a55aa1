"""A method as people write it, `name` or `name:param=value,...`, and its parameters checked."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import Field, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeVar

from dlag_node.errors import ConfigError

PRESETS = ("paper", "theory", "auto")
FROM_THEOREM = "theorem"  # a parameter as the method's theorem gives it
BALANCED = "balanced"  # a parameter by what the nodes reported at joining

_WORDS = "words"  # of a field: what else may be said for which number


class Parameters(Protocol):
    """What can be set of a family of methods: a frozen dataclass that checks its own fields.

    A field is annotated `int`, `float`, `str`, or `float | str` where it may be "theorem" or
    "balanced"; the dataclass says which. Words that stand for a number are in the field's metadata
    (`worded`).
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


P = TypeVar("P", bound=Parameters)


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """A method's name, its preset, and what was set by hand."""

    name: str
    preset: str = "paper"
    given: MappingProxyType[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __str__(self) -> str:
        given = ",".join(f"{key}={value}" for key, value in self.given.items())
        return f"{self.name}:{given}" if given else self.name

    def parameters(self, defaults: P, takes: Collection[str] | None = None) -> P:
        """`defaults` with what was given; a parameter the method does not take is an error.

        A method takes every field of its dataclass, or those that are named.
        """
        known = {each.name: each for each in fields(defaults)}
        allowed = known if takes is None else takes
        changes: dict[str, Any] = {}
        for key, text in self.given.items():
            if key not in allowed:
                names = ", ".join(sorted(allowed))
                raise ConfigError(f"{self.name} has no parameter {key!r}: expected one of {names}")
            changes[key] = _value(text, known[key])
        return replace(defaults, **changes)


def parse_method(text: str, preset: str = "paper") -> MethodSpec:
    """`dlag:gamma=1e-4,D=10` as a MethodSpec; what is not of that form is a ConfigError."""
    if preset not in PRESETS:
        raise ConfigError(f"preset {preset!r}: expected one of {', '.join(PRESETS)}")
    name, colon, rest = text.strip().partition(":")
    if not name or (colon and not rest):
        raise ConfigError(f"method {text!r}: expected name or name:param=value,...")
    given: dict[str, str] = {}
    for item in rest.split(",") if rest else ():
        key, equals, value = item.partition("=")
        if not (key and equals and value):
            raise ConfigError(f"method {text!r}: {item!r} is not of the form param=value")
        if key in given:
            raise ConfigError(f"method {text!r}: {key} is given twice")
        given[key] = value
    return MethodSpec(name, preset, MappingProxyType(given))


def presets(*, paper: P, theory: P | None = None, auto: P | None = None) -> dict[str, P]:
    """A method's defaults by preset; where a preset has none of its own it is `paper`."""
    return {"paper": paper, "theory": theory or paper, "auto": auto or paper}


def require_positive(name: str, value: float) -> None:
    """ConfigError unless the value is a positive number."""
    if not (math.isfinite(value) and value > 0):
        raise ConfigError(f"{name} = {value}: expected a positive number")


def worded(default: int, **words: int) -> int:
    """A field of whole numbers some of which have a name: `promise=off` is promise=0."""
    return field(default=default, metadata={_WORDS: MappingProxyType(words)})


def _value(text: str, wanted: Field[Any]) -> float | int | str:
    """The text as its field's annotation has it (annotations are text too)."""
    kind, words = str(wanted.type), wanted.metadata.get(_WORDS, {})
    if kind == "str" or (text in (FROM_THEOREM, BALANCED) and "str" in kind):
        return text
    if text in words:
        number: int = words[text]
        return number
    try:
        return int(text) if kind == "int" else float(text)
    except ValueError:
        expected = "a whole number" if kind == "int" else "a number"
        for word in (FROM_THEOREM,) if "str" in kind else words:
            expected += f" or {word!r}"
        raise ConfigError(f"{wanted.name} = {text!r}: expected {expected}") from None
