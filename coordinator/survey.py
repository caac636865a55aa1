"""The survey behind `--topology measured:N`: who reached whom how fast, and the graph from it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dlag_node.columns import columns
from dlag_node.errors import ConfigError
from dlag_node.graphs.sparse import sparse_graph
from dlag_node.graphs.topology import Graph
from dlag_node.wire.control import Measured

MOST_NODES = 256  # everybody calls everybody
_SHOWN = 40  # rows of a table in a message


def surveyed_nodes(topology: str) -> int | None:
    """N where the topology reads measured:N, else None."""
    kind, _, size = topology.partition(":")
    if kind == "auto":
        raise ConfigError(f"topology {topology!r}: auto:N is called measured:N now")
    if kind != "measured":
        return None
    if re.fullmatch("[0-9]{1,9}", size) is None or not 2 <= int(size) <= MOST_NODES:
        raise ConfigError(
            f"topology {topology!r}: expected measured:N with N from 2 to {MOST_NODES}"
        )
    return int(size)


def chosen_graph(measured: Mapping[int, Measured], addresses: Sequence[str]) -> Graph:
    """A connected sparse graph, or a ConfigError with a table of who cannot reach whom.

    Of two neighbors the one with the higher id calls: it must reach the other one.
    """
    times = np.array([measured[i].times for i in range(len(measured))])
    calls = np.tril(np.where(times > 0.0, times, np.inf), -1)
    seconds = calls + calls.T
    try:
        return sparse_graph(seconds)
    except ConfigError as exc:
        raise ConfigError(
            f"no connected graph: {exc}; the one with the higher id calls:\n"
            f"{unreached(times, addresses)}"
        ) from exc


def unreached(times: NDArray[np.float64], addresses: Sequence[str]) -> str:
    """The table of those who could not call whom they would have to."""
    rows = [("node", "cannot reach", "at", "from", "error")]
    for i, j in np.argwhere(np.tril(times < 0.0, -1)):
        error = os.strerror(int(-times[i, j]))
        rows.append((str(i), str(j), addresses[j], addresses[i], error))
    more = [] if len(rows) <= _SHOWN else [f"... and {len(rows) - _SHOWN} more"]
    return "\n".join([columns(rows[:_SHOWN]), *more])
