"""Data files of the kinds that LIBSVM's sets are, made here: a clone alone has all of them.

Each is drawn from a seed and has what its namesake has of form: how many features, how full its
rows are, which labels, how many digits, how it is packed. Where `DLAG_DATA_DIR` names a folder with
the real sets, tests that read files take those too.
"""

from __future__ import annotations

import bz2
import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coordinator.datasets import load_dataset

Array = NDArray[np.float64]

# Statlog (Heart): least and largest value of each feature, and its digits after the point
_HEART_LEAST = np.array([29, 0, 1, 94, 126, 0, 0, 71, 0, 0, 1, 0, 3])
_HEART_LARGEST = np.array([77, 1, 4, 200, 564, 1, 2, 202, 1, 6.2, 3, 3, 7])
_HEART_DIGITS = 1

_REAL = {  # name: features
    "heart": 13,
    "heart_scale": 13,
    "covtype.libsvm.binary.scale.bz2": 54,
    "a1a": 123,
    "a9a.gz": 123,
    "w8a.gz": 300,
    "mushrooms": 112,
}


def raw_heart() -> tuple[Array, Array]:
    """The features of the bundled heart_scale before they were scaled to [-1, 1], and labels."""
    heart = load_dataset("heart")
    share = (heart.rows.matrix() + 1) / 2
    raw = _HEART_LEAST + share * (_HEART_LARGEST - _HEART_LEAST)
    return raw.round(_HEART_DIGITS), heart.labels


def adult(samples: int = 1_605) -> bytes:
    """As a1a: each of 14 questions has one answer of several, which is a feature that is 1."""
    random = np.random.default_rng(123)
    choices = np.array([5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41])
    first = np.cumsum(choices) - choices
    answers = first + (random.random((samples, 14)) ** 2 * choices).astype(int)
    taste = random.normal(size=choices.sum())
    score = taste[answers].sum(axis=1) + random.normal(size=samples)
    labels = np.where(score > np.quantile(score, 0.75), "+1", "-1")
    rows = [" ".join(f"{i + 1}:1" for i in row) for row in answers]
    return _lines(labels, rows)


def web() -> bytes:
    """As w8a: few of 300 words in a row, in some none at all, and a class that is rare."""
    random = np.random.default_rng(300)
    full = (random.random((1_500, 300)) < 0.04) & (random.random(1_500) > 0.08)[:, None]
    labels = np.where(random.random(1_500) < 0.03, "+1", "-1")
    return _lines(labels, [" ".join(f"{i + 1}:1" for i in np.flatnonzero(row)) for row in full])


def mushrooms() -> bytes:
    """As mushrooms: 21 of 112 features are 1, labels are 1 and 2, and the classes are separable."""
    random = np.random.default_rng(112)
    rows = [np.sort(random.permutation(112)[:21]) for _ in range(800)]
    labels = np.array(["1" if row[0] < 3 else "2" for row in rows])
    return _lines(labels, [" ".join(f"{i + 1}:1" for i in row) for row in rows])


def forest() -> bytes:
    """As covtype: ten numbers in [0, 1] of up to six digits, and two features that are 1."""
    random = np.random.default_rng(54)
    rows = []
    for _ in range(1_000):
        numbers = [f"{i + 1}:{value:.6g}" for i, value in enumerate(random.random(10))]
        area, soil = 11 + random.integers(4), 15 + random.integers(40)
        rows.append(" ".join([*numbers, f"{area}:1", f"{soil}:1"]))
    return _lines(np.where(random.random(1_000) < 0.49, "2", "1"), rows)


def heart() -> bytes:
    """As the raw heart: nearly full rows of whole numbers, one of them with a digit more."""
    raw, labels = raw_heart()
    rows = [" ".join(f"{i + 1}:{value:g}" for i, value in enumerate(row) if value) for row in raw]
    return _lines(np.where(labels > 0, "+1", "-1"), rows)


_MADE: dict[str, tuple[Callable[[], bytes], Callable[[bytes], bytes], int]] = {
    "as heart": (heart, bytes, 13),
    "as covtype.bz2": (forest, bz2.compress, 54),
    "as a1a": (adult, bytes, 123),
    "as a9a.gz": (lambda: adult(6_000), gzip.compress, 123),
    "as w8a.gz": (web, gzip.compress, 300),
    "as mushrooms": (mushrooms, bytes, 112),
}


def names() -> list[str]:
    """Of all files that `path_of` has here: those that are made, and those that are there."""
    folder = os.environ.get("DLAG_DATA_DIR")
    there = [name for name in _REAL if folder and (Path(folder) / name).is_file()]
    return [*_MADE, *there]


def path_of(name: str, folder: Path) -> tuple[Path, int]:
    """The file of that name, made in the folder if need be, and how many features it has."""
    if name in _REAL:
        return Path(os.environ["DLAG_DATA_DIR"]) / name, _REAL[name]
    make, pack, features = _MADE[name]
    path = folder / name
    path.write_bytes(pack(make()))
    return path, features


def _lines(labels: NDArray[np.str_], rows: list[str]) -> bytes:
    lines = [f"{label} {row}".rstrip() for label, row in zip(labels, rows, strict=True)]
    return ("\n".join(lines) + "\n").encode()
