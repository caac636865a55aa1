"""A method as people write it, `name` or `name:param=value,...`, and its parameters checked."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, TypeVar

from dlag_node.errors import ConfigError
from dlag_node.solvers import SOLVERS, parse_stop

Filled = TypeVar("Filled")  # a frozen dataclass of parameters

PRESETS = ("paper", "theory")
FROM_THEOREM = "theorem"  # gamma and c as Theorem 1 gives them; stop as Lemma 1 needs it


@dataclass(frozen=True, slots=True)
class Parameters:
    """Everything that can be set of a dual method; which of them a method takes is its own matter.

    eta = eta_beta / beta. `gamma` and `c` may be "theorem" (Theorem 1), `stop` may be "theorem"
    (the contraction of Lemma 1, certified by gradient norms). K = 0 is floor(1/sqrt(zeta(U))).
    """

    eta_beta: float = 1.0
    s: float = 1.0
    gamma: float | str = 1e-4
    c: float | str = 1e-4
    D: int = 50
    K: int = 0
    solver: str = "katyusha"
    stop: str = "epochs:30"
    max_epochs: int = 100_000

    def __post_init__(self) -> None:
        _positive("eta_beta", self.eta_beta)
        if not (math.isfinite(self.s) and self.s >= 1):
            raise ConfigError(f"s = {self.s}: expected a number of at least 1")
        _fraction("gamma", self.gamma)
        _fraction("c", self.c)
        if self.D < 1:
            raise ConfigError(f"D = {self.D}: expected a whole number of at least 1")
        if self.K < 0:
            raise ConfigError(f"K = {self.K}: expected 0 (by zeta) or a whole number of at least 1")
        if self.max_epochs < 1:
            raise ConfigError(f"max_epochs = {self.max_epochs}: expected at least 1")
        if self.solver not in SOLVERS:
            raise ConfigError(f"solver = {self.solver!r}: expected one of {', '.join(SOLVERS)}")
        if self.stop != FROM_THEOREM:
            parse_stop(self.stop)


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """A method's name, its preset, and what was set by hand."""

    name: str
    preset: str = "paper"
    given: MappingProxyType[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __str__(self) -> str:
        given = ",".join(f"{key}={value}" for key, value in self.given.items())
        return f"{self.name}:{given}" if given else self.name

    def parameters(self, defaults: Parameters, takes: frozenset[str]) -> Parameters:
        """`defaults` with what was given; a parameter the method does not take is an error."""
        changes: dict[str, Any] = {}
        for key, text in self.given.items():
            if key not in takes:
                names = ", ".join(sorted(takes))
                raise ConfigError(f"{self.name} has no parameter {key!r}: expected one of {names}")
            changes[key] = _value(key, text)
        return replace(defaults, **changes)

    def fill(self, defaults: Filled) -> Filled:
        """`defaults`, a method's own dataclass of parameters, with what was given."""
        kinds = {each.name: str(each.type) for each in fields(defaults)}  # type: ignore[arg-type]
        changes: dict[str, Any] = {}
        for key, text in self.given.items():
            if key not in kinds:
                names = ", ".join(sorted(kinds))
                raise ConfigError(f"{self.name} has no parameter {key!r}: expected one of {names}")
            changes[key] = _typed(key, text, kinds[key])
        return replace(defaults, **changes)  # type: ignore[type-var]


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


_TYPES = {f.name: f.type for f in fields(Parameters)}  # as written: annotations are text here


def _value(key: str, text: str) -> float | int | str:
    return _typed(key, text, str(_TYPES[key]))


def _typed(key: str, text: str, kind: str) -> float | int | str:
    if kind == "str" or (text == FROM_THEOREM and "str" in kind):
        return text
    try:
        return int(text) if kind == "int" else float(text)
    except ValueError:
        wanted = "a whole number" if kind == "int" else "a number"
        theorem = f" or {FROM_THEOREM!r}" if "str" in kind else ""
        raise ConfigError(f"{key} = {text!r}: expected {wanted}{theorem}") from None


def _positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ConfigError(f"{name} = {value}: expected a positive number")


def _fraction(name: str, value: float | str) -> None:
    if value == FROM_THEOREM:
        return
    if isinstance(value, str) or not (math.isfinite(value) and 0 <= value < 1):
        raise ConfigError(f"{name} = {value}: expected 0 <= {name} < 1, or {FROM_THEOREM!r}")
