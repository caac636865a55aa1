"""Numbers as people read them: thousands, bytes, shares."""

from __future__ import annotations

import math

import numpy as np


def count(value: int | None) -> str:
    """All digits, in groups of three: `38 112`."""
    return "-" if value is None else f"{value:,}".replace(",", " ")


def some(number: int, thing: str) -> str:
    """`1 edge`, `40 edges`."""
    return f"{count(number)} {thing}" + ("" if number == 1 else "s")


def short(value: float) -> str:
    """Three digits and a prefix: `38.1 k`."""
    return _scaled(value, ("", "k", "M", "G", "T"))


def size(value: float) -> str:
    """Bytes with three digits and a decimal prefix: `4.06 MB`."""
    return _scaled(value, ("B", "kB", "MB", "GB", "TB"))


def share(value: float) -> str:
    """A share in percent, never rounded to nothing or to all: `49 %`, `< 1 %`, `> 99 %`."""
    if 0 < value < 0.01:
        return "< 1 %"
    if 0.99 < value < 1:
        return "> 99 %"
    return f"{100 * value:.0f} %"


def fine(value: float) -> str:
    """A share that is mostly small, with two digits: `0.03 %`, `4.2 %`."""
    return f"{100 * value:.2g} %" if value < 0.995 else "100 %"


def ratio(value: float) -> str:
    """A multiple with three digits, never rounded to nothing: `1.44`, `0.000191`."""
    return np.format_float_positional(value, precision=3, fractional=False, trim="-")


def small(value: float | None) -> str:
    """A measured number over many decades: `9.73e-8`."""
    if value is None or math.isnan(value):
        return "-"
    digits, e, exponent = f"{value:.3g}".partition("e")
    return f"{digits}e{int(exponent)}" if e else digits


def seconds(value: float | None) -> str:
    """A duration: `0.42 s`, `12.5 s`, `3 min 20 s`."""
    if value is None:
        return "-"
    if value >= 120:
        minutes, rest = divmod(round(value), 60)
        return f"{minutes} min {rest} s"
    return f"{value:.3g} s" if value < 100 else f"{value:.0f} s"


def _scaled(value: float, prefixes: tuple[str, ...]) -> str:
    step = 0
    while abs(value) >= 999.5 and step < len(prefixes) - 1:
        value, step = value / 1000, step + 1
    digits = f"{value:.3g}" if step else f"{value:.0f}"
    return f"{digits} {prefixes[step]}".rstrip()
