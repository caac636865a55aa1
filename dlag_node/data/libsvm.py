"""A strict reader of LIBSVM text: one sample a line, `label index:value index:value ...`.

The text is read in blocks of whole lines. One regular expression holds the grammar of a line; numpy
then turns a block's numbers into arrays. Only a line that broke the rules is looked at word by
word, to say what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from dlag_node.errors import ConfigError

_BLOCK = 4 << 20  # bytes of text in hand at a time, the rest of a line on top
_LONGEST_LINE = 64 << 20  # bytes; a file without line ends must not fill the memory
_SHOWN = 60  # characters of an offending word

# No word can be read in two ways, so a line is passed once. (Possessive quantifiers would say so,
# but Python 3.11.2, which is Debian 12's, gets them wrong.)
_NUMBER = rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_INDEX = rb"[0-9]{1,9}"
_SAMPLE = re.compile(_NUMBER + rb"(?:[ \t]+" + _INDEX + rb":" + _NUMBER + rb")*")
_COMMENT = re.compile(rb"#[^\n]*")


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """The stored entries: sample j has `values[start[j]:start[j+1]]` at `columns[...]`, from 0."""

    labels: NDArray[np.float64]
    values: NDArray[np.float64]
    columns: NDArray[np.int64]
    start: NDArray[np.int64]

    @property
    def dim(self) -> int:
        """The least number of features that holds every index."""
        return int(self.columns.max()) + 1 if len(self.columns) else 0


def read_libsvm(stream: BinaryIO, name: str) -> Samples:
    """All samples of the text, or a ConfigError with `name`, the line and what was expected there.

    Labels and values are finite decimal numbers, indices count from 1 and increase along the line;
    blank lines and whatever follows `#` do not matter. `qid:` belongs to ranking and is refused.
    """
    parts: list[Samples] = []
    first_line = 1
    for block in _blocks(stream, name):
        parts.append(_parse(block, name, first_line))
        first_line += block.count(b"\n")
    labels = np.concatenate([part.labels for part in parts]) if parts else np.empty(0)
    if not len(labels):
        raise ConfigError(f"{name} holds no sample: expected lines of `label index:value ...`")
    offsets = np.cumsum([0, *(len(part.values) for part in parts)])
    starts = [part.start[1:] + offset for part, offset in zip(parts, offsets, strict=False)]
    return Samples(
        labels,
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.columns for part in parts]),
        np.concatenate([np.zeros(1, np.int64), *starts]),
    )


def _blocks(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """The text in blocks of whole lines, each with its line's end."""
    rest = b""
    while more := stream.read(_BLOCK):
        cut = more.rfind(b"\n") + 1
        if cut:
            yield rest + more[:cut]
            rest = more[cut:]
        else:
            rest += more
        if len(rest) > _LONGEST_LINE:
            raise ConfigError(
                f"{name}: a line of more than {_LONGEST_LINE} bytes, expected LIBSVM text"
            )
    if rest:
        yield rest + b"\n"


def _parse(block: bytes, name: str, first_line: int) -> Samples:
    text = _COMMENT.sub(b"", block) if b"#" in block else block
    lines = [line.lstrip(b" \t").rstrip(b" \t\r") for line in text.split(b"\n")]
    for number, line in enumerate(lines, first_line):
        if line and not _SAMPLE.fullmatch(line):
            _explain(line.decode("utf-8", "backslashreplace"), f"{name}, line {number}")
    samples = b"".join(line + b"\n" for line in lines if line)
    raw = np.frombuffer(samples, dtype=np.uint8)
    colons_before = np.searchsorted(np.flatnonzero(raw == ord(":")), np.flatnonzero(raw == 10))
    start = np.concatenate([np.zeros(1, np.int64), colons_before.astype(np.int64)])
    numbers = np.fromstring(samples.replace(b":", b" ").decode("ascii"), sep=" ")
    at = 2 * start[:-1] + np.arange(len(start) - 1)  # a line is its label, then pairs
    pairs = np.delete(numbers, at).reshape(-1, 2)
    parsed = Samples(
        numbers[at], np.ascontiguousarray(pairs[:, 1]), pairs[:, 0].astype(np.int64) - 1, start
    )
    _check(parsed, text, name, first_line)
    return parsed


def _check(parsed: Samples, text: bytes, name: str, first_line: int) -> None:
    """What the grammar cannot see: the order of the indices, and numbers too large for a float."""
    columns = parsed.columns
    before = np.empty_like(columns)
    before[1:] = columns[:-1]
    filled = parsed.start[:-1] < parsed.start[1:]
    before[parsed.start[:-1][filled]] = -1
    wrong = np.flatnonzero((columns <= before) | ~np.isfinite(parsed.values))
    rows = np.searchsorted(parsed.start, wrong[:1], side="right") - 1
    rows = np.concatenate([rows, np.flatnonzero(~np.isfinite(parsed.labels))[:1]])
    if not len(rows):
        return
    row = int(rows.min())
    lines = [n for n, line in enumerate(text.split(b"\n"), first_line) if line.strip()]
    where = f"{name}, line {lines[row]}"
    if not np.isfinite(parsed.labels[row]):
        raise ConfigError(f"{where}: the label is too large, expected a finite number")
    entry = int(wrong[0])
    index = int(columns[entry]) + 1
    if index == 0:
        raise ConfigError(f"{where}: index 0, expected indices from 1 up")
    if columns[entry] <= before[entry]:
        raise ConfigError(
            f"{where}: index {index} after {int(before[entry]) + 1}, expected increasing indices"
        )
    raise ConfigError(f"{where}: the value of index {index} is too large, expected a finite number")


def _explain(line: str, where: str) -> NoReturn:
    """Say which word of a line that the grammar refused is wrong."""
    label, *pairs = re.split("[ \t]+", line)
    number = re.compile(_NUMBER.decode())
    if not number.fullmatch(label):
        raise ConfigError(f"{where}: label {label[:_SHOWN]!r}, expected a finite number")
    for pair in pairs:
        index, colon, value = pair.partition(":")
        if index == "qid":
            raise ConfigError(f"{where}: {pair[:_SHOWN]!r} is for ranking, expected index:value")
        if not colon:
            raise ConfigError(f"{where}: {pair[:_SHOWN]!r}, expected index:value")
        if not re.fullmatch(_INDEX.decode(), index):
            raise ConfigError(f"{where}: index {index[:_SHOWN]!r}, expected 1 to 999999999")
        if not number.fullmatch(value):
            raise ConfigError(
                f"{where}: value {value[:_SHOWN]!r} of index {index}, expected a finite number"
            )
    raise AssertionError(f"{where}: the grammar refused a line of good words")
