"""The LIBSVM reader: what it reads, and the words with which it refuses."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlag_node.data import libsvm
from dlag_node.data.libsvm import Samples, read_libsvm
from dlag_node.errors import ConfigError


def read(text: bytes) -> Samples:
    return read_libsvm(io.BytesIO(text), "file")


def dense(samples: Samples) -> list[list[float]]:
    A = np.zeros((len(samples.labels), samples.dim))
    for j, (a, b) in enumerate(zip(samples.start, samples.start[1:], strict=False)):
        A[j, samples.columns[a:b]] = samples.values[a:b]
    return A.tolist()


@pytest.mark.parametrize(
    ("text", "labels", "rows"),
    [
        (b"1 1:2 3:4\n", [1], [[2, 0, 4]]),
        (b"+1 1:.5\n-1 1:-1e-3 2:+7.\n", [1, -1], [[0.5, 0], [-0.001, 7]]),
        (b"1 1:2\n-1 2:3", [1, -1], [[2, 0], [0, 3]]),  # no end to the last line
        (b"1 1:2\r\n-1 2:3 \r\n", [1, -1], [[2, 0], [0, 3]]),
        (b"  1\t1:2  2:3 \n", [1], [[2, 3]]),
        (b"# head\n\n1 1:2 # tail 9:9\n   \n\r\n#\n-1 1:3\n\n", [1, -1], [[2], [3]]),
        (b"-1\n1 2:5\n-1 \n", [-1, 1, -1], [[0, 0], [0, 5], [0, 0]]),
        (b"3.25 1:0\n", [3.25], [[0]]),
        (b"0 0001:1 12:1\n", [0], [[1] + [0] * 10 + [1]]),
    ],
)
def test_the_text_is_read_as_written(
    text: bytes, labels: list[float], rows: list[list[float]]
) -> None:
    samples = read(text)
    assert samples.labels.tolist() == labels
    assert dense(samples) == rows


MALFORMED = [
    (b"", "file holds no sample"),
    (b"# nothing\n\n", "file holds no sample"),
    (b"1 1:2\nx 1:2\n", "file, line 2: label 'x', expected a finite number"),
    (b"nan 1:2\n", "line 1: label 'nan', expected a finite number"),
    (b"1,2 1:2\n", "line 1: label '1,2', expected a finite number"),
    (b"1:2 2:3\n", "line 1: label '1:2', expected a finite number"),
    (b"\n# c\n1 qid:3 1:2\n", "line 3: 'qid:3' is for ranking, expected index:value"),
    (b"1 2\n", "line 1: '2', expected index:value"),
    (b"1 1 :2\n", "line 1: '1', expected index:value"),
    (b"1 1: 2\n", "line 1: value '' of index 1, expected a finite number"),
    (b"1 :2\n", "line 1: index '', expected 1 to 999999999"),
    (b"1 a:2\n", "line 1: index 'a', expected 1 to 999999999"),
    (b"1 -1:2\n", "line 1: index '-1', expected 1"),
    (b"1 1.5:2\n", "line 1: index '1.5', expected 1"),
    (b"1 9999999999:2\n", "line 1: index '9999999999', expected 1 to 999999999"),
    (b"1 1:nan\n", "line 1: value 'nan' of index 1, expected a finite number"),
    (b"1 1:inf\n", "line 1: value 'inf' of index 1"),
    (b"1 1:0x10\n", "line 1: value '0x10' of index 1"),
    (b"1 1:1_000\n", "line 1: value '1_000' of index 1"),
    (b"1 1:2:3\n", "line 1: value '2:3' of index 1"),
    (b"1 1:2,2:3\n", "line 1: value '2,2:3' of index 1"),
    (b"1 1:1e\n", "line 1: value '1e' of index 1"),
    (b"1 1:.\n", "line 1: value '.' of index 1"),
    (b"1 0:2\n", "line 1: index 0, expected indices from 1 up"),
    (b"1 1:2\n\n# c\n1 2:1 2:3\n", "line 4: index 2 after 2, expected increasing indices"),
    (b"1 1:2\n1 5:1 3:3\n", "line 2: index 3 after 5, expected increasing indices"),
    (b"1\n1 1:2 2:1e999\n", "line 2: the value of index 2 is too large"),
    (b"1 1:2\n-1e999 1:2\n", "line 2: the label is too large"),
    (b"1 0:1\n1e999\n", "line 1: index 0"),
    (b"1e999\n1 0:1\n", "line 1: the label is too large"),
    (b"1 1:2\r1 1:2\n", "line 1: value '2\\r1' of index 1, expected a finite number"),
    (b"1 1:2\x0c2:3\n", "line 1: value '2\\x0c2:3' of index 1"),
    (b"1 1:2 x\r\n", "line 1: 'x', expected index:value"),
    (b"\r1 1:2\r\n", "line 1: label '\\r1'"),
    (b"\x00\x01\x02", "line 1: label"),
    (b"\xff\xfe1 1:2\n", "line 1: label '\\\\xff\\\\xfe1'"),
    ("1 \u0661:2\n".encode(), "line 1: index '\u0661', expected 1"),
]


@pytest.mark.parametrize(("text", "words"), MALFORMED)
def test_a_malformed_line_is_refused_with_its_number(text: bytes, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        read(text)


@pytest.mark.parametrize("block", [1, 3, 7, 64])
def test_lines_are_whole_however_the_text_is_cut(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"1 1:2 3:4\n\n# c\n-1 2:0.125\n-1\n1 3:1e-3 4:8"
    whole = read(text)
    monkeypatch.setattr(libsvm, "_BLOCK", block)
    cut = read(text)
    for name in ("labels", "values", "columns", "start"):
        assert np.array_equal(getattr(cut, name), getattr(whole, name))
    with pytest.raises(ConfigError, match="line 7: 'x', expected index:value"):
        read(text + b"\n1 x")
    with pytest.raises(ConfigError, match="line 7: index 0"):
        read(text + b"\n1 0:1")


@given(st.text("01 \t\r\n#:.-+eqidx", max_size=30))
def test_whatever_the_text_it_is_read_or_refused(text: str) -> None:
    try:
        samples = read(text.encode())
    except ConfigError:
        return
    assert len(samples.labels) == len(samples.start) - 1 >= 1
    assert samples.start[-1] == len(samples.values) == len(samples.columns)


def test_a_text_without_line_ends_cannot_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libsvm, "_BLOCK", 10)
    monkeypatch.setattr(libsvm, "_LONGEST_LINE", 100)
    with pytest.raises(ConfigError, match="a line of more than 100 bytes"):
        read(b"1" * 1000)


@given(
    st.lists(
        st.tuples(
            st.floats(allow_nan=False, allow_infinity=False),
            st.dictionaries(
                st.integers(1, 40), st.floats(allow_nan=False, allow_infinity=False), max_size=6
            ),
        ),
        min_size=1,
    )
)
def test_every_float_comes_back_to_the_bit(lines: list[tuple[float, dict[int, float]]]) -> None:
    text = "".join(
        f"{label!r} " + " ".join(f"{i}:{v!r}" for i, v in sorted(entries.items())) + "\n"
        for label, entries in lines
    )
    samples = read(text.encode())
    assert samples.labels.tolist() == [label for label, _ in lines]
    stored = [(i - 1, v) for _, entries in lines for i, v in sorted(entries.items())]
    assert list(zip(samples.columns.tolist(), samples.values.tolist(), strict=True)) == stored
    assert np.diff(samples.start).tolist() == [len(entries) for _, entries in lines]
