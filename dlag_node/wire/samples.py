"""What may be said of samples on the way to an agreement: ranges and sizes, checked on arrival."""

from __future__ import annotations

import math

import numpy as np

from dlag_node.data import SCALES, Agreement, Spread, Summary
from dlag_node.wire.limits import (
    FLOAT_BYTES,
    MAX_DIM,
    MAX_SAMPLES,
    MAX_SCALED_DIM,
    MAX_TEXT,
    require,
)


def check_summary(said: Summary) -> None:
    """ValueError unless a node can mean what it says of its samples."""
    require(1 <= said.samples <= MAX_SAMPLES, f"samples is {said.samples}")
    require(1 <= said.dim <= MAX_DIM, f"dim is {said.dim}")
    require(said.names is None or len(said.names) <= MAX_TEXT, "the names' hash is too long")
    labels = said.labels or (0.0,)
    require(len(labels) <= 2 and all(map(math.isfinite, labels)), f"labels are {labels}")
    _check_spread(said.scale, said.spread, said.dim)
    if said.spread is not None:
        first, second = said.spread.vectors
        least = first if said.scale == "minmax" else np.zeros(said.dim)
        require(bool((least <= second).all()), f"vectors that are no {said.scale}")


def check_agreement(agreed: Agreement, dim: int) -> None:
    """ValueError unless this can be done to samples of so many features."""
    classes = agreed.classes
    require(len(classes) in (0, 2) and list(classes) == sorted(set(classes)), "bad classes")
    require(all(map(math.isfinite, (*classes, agreed.intercept))), "a number is not finite")
    _check_spread(agreed.scale, agreed.spread, dim)


def _check_spread(scale: str, spread: Spread | None, dim: int) -> None:
    require(scale in SCALES, f"scale is {scale[:MAX_TEXT]!r}")
    require((spread is None) == (scale == "none"), f"scale is {scale}, its vectors do not fit")
    if spread is not None:
        require(dim <= MAX_SCALED_DIM, f"dim is {dim}, scaled at most {MAX_SCALED_DIM}")
        lengths = len(spread.first), len(spread.second)
        require(lengths == (FLOAT_BYTES * dim,) * 2, f"vectors of {lengths} bytes, dim is {dim}")
        for vector in spread.vectors:
            require(bool(np.isfinite(vector).all()), "a number of the scaling is not finite")
