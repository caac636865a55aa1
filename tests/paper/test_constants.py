"""The constants of the reference run: heart on the 5x5 grid, uneven shards, lambda = 0.01."""

from __future__ import annotations

import pytest

from coordinator.datasets import load_dataset
from coordinator.shards import split
from dlag_node.graphs import chebyshev_for, gossip_matrix, parse_topology, spectrum_of
from dlag_node.problems import LOGISTIC, Problem


def test_the_constants_of_the_reference_run() -> None:
    heart = load_dataset("heart")
    graph = parse_topology("grid:5x5", seed=0)
    shards = split("uneven:1,10", heart.labels, nodes=graph.nodes, seed=0)
    workers = [
        Problem(heart.rows.take(shard), heart.labels[shard], LOGISTIC, n0=270, lam=0.01)
        for shard in shards
    ]
    mu_min = min(f.mu for f in workers)
    L_max = max(f.L for f in workers)
    # the reference figures have six or five digits
    assert mu_min == pytest.approx(1.48148e-4, rel=5e-6)
    assert L_max == pytest.approx(0.0652756, rel=1e-6)
    assert L_max / mu_min == pytest.approx(440.61, abs=5e-3)

    spectrum = spectrum_of(gossip_matrix(graph, "metropolis"))
    assert L_max / mu_min / spectrum.zeta == pytest.approx(7816, abs=0.5)
    assert chebyshev_for(spectrum).K == 4
