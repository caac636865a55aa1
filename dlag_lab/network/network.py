"""Every node on a host of its own: namespaces, a switch between them, and what the links are like.

    node's host    mesh0  10.77.x.y ---- bridge `mesh` ---- the other nodes' hosts
                   mgmt0  10.78.x.y ---- bridge `mgmt` ---- the laboratory's host 10.78.255.254

Both bridges are in one more namespace, the switch: the machine's own network is not touched. The
coordinator and the laboratory's socket are in the laboratory's host. What they say goes over the
management bridge, undelayed, and is not counted as the mesh's.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from dlag_lab.mesh import name_of
from dlag_lab.network.commands import attempt, check_machine, command
from dlag_lab.network.namespaces import counters, inside, new_namespace, path_of
from dlag_lab.network.qdiscs import htb, netem
from dlag_lab.network.spec import NetworkSpec
from dlag_node.errors import ConfigError
from dlag_node.graphs.topology import Graph

MOST_NODES = 1_000  # a bridge of Linux has 1,023 ports
MESH_INTERFACE = "mesh0"
MANAGEMENT_INTERFACE = "mgmt0"

_MESH, _MANAGEMENT = "10.77", "10.78"  # both /16
_LABORATORY = f"{_MANAGEMENT}.255.254"
# In the namespace of the writer. Without: the kernel's IPv6 chatter would be counted as the mesh's.
_QUIET = {"net/ipv6/conf/all/disable_ipv6": "1", "net/ipv6/conf/default/disable_ipv6": "1"}
_PLAIN_SWITCH = {"net/bridge/bridge-nf-call-iptables": "0"}


class Network:
    """Hosts for a run, as long as it is entered; nothing of it outlives its processes."""

    def __init__(self, spec: NetworkSpec, graph: Graph) -> None:
        if graph.nodes > MOST_NODES:
            raise ConfigError(f"network {spec}: {graph.nodes} nodes: expected at most {MOST_NODES}")
        self._spec = spec
        self._graph = graph
        self._nodes = graph.nodes
        self._descriptors: list[int] = []
        self.switch = ""  # the namespace of the bridges, while it is entered
        self.netns: dict[str, str] = {}
        self.emulator: list[str] = []
        self.environment: dict[str, str] = {}
        self.laboratory = f"tcp://{_LABORATORY}:*"

    def __enter__(self) -> Network:
        check_machine(self._spec)
        try:
            self.switch = self._new(_PLAIN_SWITCH)
            self.netns["coordinator"] = self._new()
            for node in range(self._nodes):
                self.netns[name_of(node)] = self._new()
            self._wire()
            self._shape()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def node(self, node: int, /) -> str:
        """Where a node listens for its neighbors: its address on the mesh."""
        return f"tcp://{_address(_MESH, node)}:*"

    def advertised(self, _: int, /) -> None:
        """Where it listens."""

    def at_laboratory(self) -> AbstractContextManager[None]:
        """In the laboratory's namespace."""
        return inside(self.netns["coordinator"])

    def counted(self) -> dict[str, Any]:
        """Bytes with their Ethernet headers and packets that the nodes' mesh interfaces sent.

        `dropped` are packets that the emulator was too slow to take: loss that nobody asked for.
        """
        sent_bytes = packets = dropped = 0
        for node in range(self._nodes):
            with inside(self.netns[name_of(node)]):
                more_bytes, more_packets = counters(MESH_INTERFACE)
                dropped += _dropped() if self.emulator else 0
            sent_bytes += more_bytes
            packets += more_packets
        return {
            "asked": str(self._spec),
            "bytes": sent_bytes,
            "packets": packets,
            "dropped": dropped,
            "by": "emulator" if self.emulator else "kernel",
        }

    def _new(self, switches: dict[str, str] | None = None) -> str:
        descriptor = new_namespace()
        self._descriptors.append(descriptor)
        path = path_of(descriptor)
        with inside(path):
            for name, value in (_QUIET | (switches or {})).items():
                with suppress(FileNotFoundError):  # a kernel without it has nothing to be quieted
                    Path("/proc/sys", name).write_text(value, encoding="ascii")
        return path

    def _wire(self) -> None:
        """Bridges and cables, then the addresses at their ends."""
        lines = [f"link add {bridge} type bridge mcast_snooping 0" for bridge in ("mesh", "mgmt")]
        lines += [f"link set {bridge} up" for bridge in ("mesh", "mgmt")]
        lines += _cable("mgmt", "lab", MANAGEMENT_INTERFACE, self.netns["coordinator"])
        for node in range(self._nodes):
            path = self.netns[name_of(node)]
            lines += _cable("mesh", str(node), MESH_INTERFACE, path)
            lines += _cable("mgmt", str(node), MANAGEMENT_INTERFACE, path)
        self._ip(self.switch, lines)
        self._ip(self.netns["coordinator"], _end(MANAGEMENT_INTERFACE, _LABORATORY))
        for node in range(self._nodes):
            ends = _end(MANAGEMENT_INTERFACE, _address(_MANAGEMENT, node))
            ends += _end(MESH_INTERFACE, _address(_MESH, node))
            # packets as a cable carries them: counted, paced and lost one by one
            ends.append(f"link set {MESH_INTERFACE} gso_max_segs 1")
            self._ip(self.netns[name_of(node)], ends)

    def _shape(self) -> None:
        spec = self._spec
        netem = spec.disturbs and self._netem()
        for node in range(self._nodes):
            with inside(self.netns[name_of(node)]):
                if spec.rate is not None:
                    neighbors = [_address(_MESH, j) for j in self._graph.neighbors(node)]
                    command(["tc", "-batch", "-"], [*htb(spec.rate, MESH_INTERFACE, neighbors)])
                if spec.disturbs and not netem:
                    rule = ["-A", "PREROUTING", "-i", MESH_INTERFACE, "-j", "NFQUEUE"]
                    command(["iptables", "-w", "-t", "mangle", *rule, "--queue-num", "0"])
        if spec.disturbs and not netem:
            hosts = [self.netns[name_of(node)] for node in range(self._nodes)]
            self.emulator = ["dlag-network", "--network", str(spec), *hosts]

    def _netem(self) -> bool:
        """Delay and loss by the kernel itself, on the switch's ports; False where it cannot."""
        with inside(self.switch):
            if attempt(netem(self._spec, "mesh-0")):
                return False
            for node in range(1, self._nodes):
                command(netem(self._spec, f"mesh-{node}"))
        return True

    def _ip(self, path: str, lines: list[str]) -> None:
        with inside(path):
            command(["ip", "-batch", "-"], lines)

    def _close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())


def _cable(bridge: str, port: str, interface: str, path: str) -> list[str]:
    name = f"{bridge}-{port}"
    return [
        f"link add {name} type veth peer name {interface} netns {path}",
        f"link set {name} master {bridge} up",
    ]


def _end(interface: str, address: str) -> list[str]:
    return [f"addr add {address}/16 dev {interface}", f"link set {interface} up"]


def _address(network: str, node: int) -> str:
    return f"{network}.{(node + 1) >> 8}.{(node + 1) & 0xFF}"


def _dropped() -> int:
    """Packets that the kernel could not queue, or not tell of."""
    queue = Path("/proc/thread-self/net/netfilter/nfnetlink_queue")
    lines = queue.read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[5]) + int(line.split()[6]) for line in lines)
