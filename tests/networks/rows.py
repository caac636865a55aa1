"""What would give away samples in a capture, in all the ways in which programs put numbers down."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np

_WORD = 8  # bytes: every telltale has as many


class Haystack:
    """Streams in which tens of thousands of needles are looked for: by their first bytes, first."""

    def __init__(self, streams: Iterable[bytes]) -> None:
        self._bytes = b"".join(streams)
        words = range(len(self._bytes) - _WORD + 1)
        self._words = {self._bytes[i : i + _WORD] for i in words}

    def has(self, needles: Iterable[bytes]) -> bool:
        """Whether any of them is there."""
        for each in needles:
            assert len(each) >= _WORD
            if each[:_WORD] in self._words and each in self._bytes:
                return True
        return False


def forms(values: np.ndarray) -> Iterator[bytes]:
    """Numbers as bytes of floats and as text, in the ways in which programs put them down."""
    for dtype in ("<f8", ">f8", "<f4", ">f4"):
        yield values.astype(dtype).tobytes()
    for show in (repr, "{:.6g}".format, "{:.3f}".format):
        for between in (",", ", ", " ", "\t"):
            yield between.join(map(show, values.tolist())).encode()


def telltales(rows: np.ndarray, told: Collection[float] = ()) -> Iterator[bytes]:
    """Every row, and every single value but those that the node's operator agreed to tell."""
    for row in rows:
        yield from forms(row)
    kept = [v for v in rows.ravel().tolist() if v not in told and abs(v) != 1.0]
    assert len(kept) > 0.8 * rows.size
    for v in kept:
        yield np.array(v).astype("<f8").tobytes()
        yield np.array(v).astype(">f8").tobytes()
        yield repr(v).encode()
