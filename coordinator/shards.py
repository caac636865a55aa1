"""Who gets which samples: the n0 samples dealt to the workers, evenly, unevenly or by label."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from dlag_node.errors import ConfigError

Index = NDArray[np.int64]
Array = NDArray[np.float64]

_FORMS = "even, uneven:a,b or labels:alpha"
_REAL = r"([0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?)"
_LEAST_ALPHA = 1e-3  # below, a Dirichlet draw is one node's in all but rounding
_MOST = 1e9  # of b and alpha: far above it, sums of draws overflow
_MOST_CLASSES = 100  # more distinct labels than this are not classes but measurements


def split(spec: str, labels: Array, *, nodes: int, seed: int) -> list[Index]:
    """The indices of each worker's samples: every sample once, every worker at least one.

        even          sizes that differ by at most one
        uneven:a,b    m_i proportional to p_i ~ U[a, b], as in the paper's experiments
        labels:alpha  each class dealt in Dirichlet(alpha) proportions: the smaller, the more skewed

    The same spec, labels, nodes and seed give the same shards.
    """
    n0 = len(labels)
    if nodes < 1:
        raise ConfigError(f"{nodes} nodes to share the samples: expected at least 1")
    if n0 < nodes:
        raise ConfigError(f"{n0} samples for {nodes} nodes: expected at least one each")
    if seed < 0:
        raise ConfigError(f"seed = {seed}: expected an integer >= 0")
    rng = np.random.default_rng(seed)
    if spec == "even":
        return _deal(rng.permutation(n0), _whole(np.ones(nodes), n0, least=1))
    if match := re.fullmatch(f"uneven:{_REAL},{_REAL}", spec):
        a, b = map(float, match.groups())
        if not 0 < a < b <= _MOST:
            raise ConfigError(
                f"shards {spec!r}: a = {a:g}, b = {b:g}, expected 0 < a < b <= {_MOST:g}"
            )
        counts = _whole(rng.uniform(a, b, nodes), n0, least=1)
        return _deal(rng.permutation(n0), counts)
    if match := re.fullmatch(f"labels:{_REAL}", spec):
        alpha = float(match[1])
        if not _LEAST_ALPHA <= alpha <= _MOST:
            raise ConfigError(
                f"shards {spec!r}: alpha = {alpha:g}, expected {_LEAST_ALPHA:g} to {_MOST:g}"
            )
        return _by_label(labels, nodes, alpha, rng)
    raise ConfigError(f"unknown shards {spec!r}: expected {_FORMS}")


def _whole(p: Array, total: int, *, least: int) -> Index:
    """Whole numbers near total * p_i / sum p, none below `least`, that add up to `total`.

    Rounded down, then one more where most is missing (or, where `least` has given out too much, one
    less where most is over), until it adds up; the lowest index wins a tie.
    """
    exact = total * p / p.sum()
    counts: Index = np.maximum(least, np.floor(exact)).astype(np.int64)
    while counts.sum() < total:
        counts[np.argmax(exact - counts)] += 1
    while counts.sum() > total:
        counts[np.argmax(np.where(counts > least, counts - exact, -np.inf))] -= 1
    return counts


def _deal(order: Index, counts: Index) -> list[Index]:
    """Consecutive blocks of `order`, of these lengths."""
    return np.split(order, np.cumsum(counts)[:-1])


def _by_label(labels: Array, nodes: int, alpha: float, rng: np.random.Generator) -> list[Index]:
    classes = np.unique(labels)
    if len(classes) > _MOST_CLASSES:
        raise ConfigError(
            f"{len(classes)} different labels: expected at most {_MOST_CLASSES} classes to deal by"
        )
    hands: list[list[Index]] = [[] for _ in range(nodes)]
    for label in classes:
        members = rng.permutation(np.flatnonzero(labels == label))
        counts = _whole(rng.dirichlet(np.full(nodes, alpha)), len(members), least=0)
        for hand, dealt in zip(hands, _deal(members, counts), strict=True):
            hand.append(dealt)
    shards = [np.concatenate(hand) for hand in hands]
    for i in range(nodes):
        if not len(shards[i]):
            # n0 >= nodes, so while somebody has none, the largest has two or more
            largest = max(range(nodes), key=lambda j: len(shards[j]))
            shards[i], shards[largest] = shards[largest][-1:], shards[largest][:-1]
    return shards
