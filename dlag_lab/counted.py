"""What the kernel counted of a run: packets and bytes between neighbors, whoever counted them.

Bytes are those of IP, headers included, so that runs on loopback, on other hosts and on emulated
networks can be compared. Interfaces of the mesh alone count everything; where there are none, every
node counts on its own sockets, without what opens and closes them (`dlag_node.net.kernel`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dlag_node.net.kernel import KernelCount, count_path

_ETHERNET = 14  # bytes a packet, which interfaces count and IP does not


def wire_of(
    folder: Path, nodes: int, network: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """`wire` of the summary, by what nodes left in the run folder; None: somebody could not count.

    `complete` is false where a connection was lost with its count, or a node was started again.
    """
    if network is not None:
        packets = network["packets"]
        octets = network["bytes"] - _ETHERNET * packets
        return _wire(packets, octets, by="interfaces", complete=True)
    counts = [KernelCount.read(count_path(folder / "nodes", node)) for node in range(nodes)]
    found = [count for count in counts if count is not None]
    if len(found) < nodes:
        return None
    return _wire(
        sum(each.packets for each in found),
        sum(each.bytes for each in found),
        by="sockets",
        complete=all(each.complete for each in found),
    )


def _wire(packets: int, octets: int, *, by: str, complete: bool) -> dict[str, Any]:
    return {"packets": packets, "bytes": octets, "counted_by": by, "complete": complete}
