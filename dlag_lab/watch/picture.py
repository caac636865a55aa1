"""What the page is told, live or in replay: the mesh once, then one picture of it after another.

A picture holds sums, never differences: whoever misses one has lost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dlag_lab.layout import positions

Edges = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Mesh:
    """What does not change while the run goes on."""

    title: str
    live: bool
    nodes: int
    edges: list[tuple[int, int]]  # i < j
    at: list[list[float]]  # where each node stands, y upwards
    samples: list[int] | None
    target: float | None
    rounds: int | None  # that there are to see; None: who knows
    wire: list[int] | None  # packets and bytes of the whole run, as the kernel counted them

    def to_json(self) -> dict[str, Any]:
        """In JSON's own types."""
        return asdict(self)


def mesh_of(
    run: Mapping[str, Any],
    *,
    live: bool,
    rounds: int | None,
    wire: Mapping[str, Any] | None = None,
) -> Mesh:
    """The mesh of a run folder's run.json."""
    edges = [(int(i), int(j)) for i, j in run["edges"]]
    nodes, topology = int(run["nodes"]), str(run["topology"])
    return Mesh(
        title=f"{run['method']} on {topology}",
        live=live,
        nodes=nodes,
        edges=edges,
        at=positions(topology, nodes, edges).tolist(),
        samples=run.get("shard_sizes"),
        target=run.get("target"),
        rounds=rounds,
        wire=None if wire is None else [int(wire["packets"]), int(wire["bytes"])],
    )


def mesh_heard(run: str, nodes: int, edges: list[tuple[int, int]]) -> Mesh:
    """The mesh as the nodes themselves describe it, each by its neighbors."""
    return Mesh(
        title=f"run {run[:8]}",
        live=True,
        nodes=nodes,
        edges=edges,
        at=positions("", nodes, edges).tolist(),
        samples=None,
        target=None,
        rounds=None,
        wire=None,
    )


@dataclass(frozen=True, slots=True)
class Picture:
    """The mesh at one moment; lists are by node, or by edge and direction where they have two."""

    k: int  # rounds that every node has finished
    round: list[int]
    age: list[int]
    residual: list[float | None]
    restarts: list[int]
    unheard: list[float | None]  # seconds since it was; None: it never was, or has finished
    finished: list[bool]
    exchanges: list[int]
    compute: list[float]  # seconds
    wait: list[float]
    told: list[list[int]]  # deltas i to j, j to i
    tokened: list[list[int]]  # tokens i to j, j to i
    waited: list[list[float]]  # seconds i for j, j for i
    deltas: int
    tokens: int
    quiet: int  # exchanges in which a neighbor got nothing
    payload_bytes: int
    sent_bytes: int
    refused: int

    def to_json(self) -> dict[str, Any]:
        """In JSON's own types."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}
