"""Vectors in fewer bytes: float32, float16 and int8 bodies, and the values that they stand for.

The values are what both ends compute with: who rounds a delta adds the very same values to its own
copy, and the rest of the delta comes back by itself in the next one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dlag_node.errors import LocalProtocolError

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Form:
    """How a body holds its entries; `head` bytes before them are the exponent of a common scale.

    An entry of value v is stored as v / 2^exponent. The largest is brought to m 2^top with
    1/2 <= m <= `most`: all of the dtype's digits are used, nothing overflows, and what was rounded
    once is rounded to itself.
    """

    name: str
    code: int  # on the wire
    dtype: np.dtype[np.floating | np.integer]
    head: int = 0
    top: int = 0
    most: float = 1.0

    def size(self, width: int) -> int:
        """The bytes of a body of `width` entries."""
        return self.head + self.dtype.itemsize * width


_EXPONENT_BYTES = 2  # of a double: -1074 to 1023

FORMS = {
    form.name: form
    for form in (
        Form("f4", 1, np.dtype("<f4")),
        Form("f2", 2, np.dtype("<f2"), _EXPONENT_BYTES, top=15, most=1.0 - 2.0**-11),
        Form("i1", 3, np.dtype("i1"), _EXPONENT_BYTES, top=7, most=127.0 / 128.0),
    )
}
FORM_OF_CODE = {form.code: form for form in FORMS.values()}
WHOLE = "f8"  # float64: not rounded at all


@dataclass(frozen=True, slots=True, eq=False)
class Rounded:
    """A rounded vector: its body, and the values that every reader makes of it."""

    form: Form
    body: bytes
    values: Array


def rounded(vector: Array, form: Form) -> Rounded:
    """The vector in that form, each entry at the nearest value; what f4 cannot hold becomes inf."""
    if not np.isfinite(vector).all():
        raise LocalProtocolError("a vector that is not finite cannot be rounded")
    with np.errstate(over="ignore", under="ignore"):
        if form.head:
            exponent = _exponent(vector, form)
            scaled = np.ldexp(vector, -exponent)
            if form.dtype.kind == "i":
                scaled = np.rint(scaled)
            head = exponent.to_bytes(_EXPONENT_BYTES, "little", signed=True)
        else:
            scaled, head = vector, b""
        body = head + scaled.astype(form.dtype).tobytes()
    return Rounded(form, body, values_of(body, form))


def values_of(body: bytes, form: Form) -> Array:
    """The values that a body of the right size stands for."""
    entries = np.frombuffer(body, form.dtype, offset=form.head)
    # a peer's bytes may be anything, a signalling NaN too: whoever decodes looks at the values
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        values = entries.astype(np.float64)
        if not form.head:
            return values
        exponent = int.from_bytes(body[: form.head], "little", signed=True)
        return np.asarray(np.ldexp(values, exponent), dtype=np.float64)


def _exponent(vector: Array, form: Form) -> int:
    """The exponent that brings the largest entry to at most `most` 2^top."""
    largest = float(np.abs(vector).max(initial=0.0))
    if largest == 0.0:
        return 0
    mantissa, exponent = math.frexp(largest)  # largest = mantissa * 2^exponent, mantissa < 1
    return exponent - form.top + (mantissa > form.most)
