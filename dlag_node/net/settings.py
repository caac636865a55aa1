"""What an operator sets on one node, checked before any socket opens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dlag_node.data import HeldData
from dlag_node.data.model import check_suffix
from dlag_node.errors import ConfigError
from dlag_node.net.sockets import HEARTBEAT, check_address, check_heartbeat, page_address
from dlag_node.rounds.keeper import DEFAULT_EVERY, MAX_EVERY
from dlag_node.trust.loopback import require_loopback


def parse_neighbors(texts: Sequence[str]) -> dict[int, str]:
    """Addresses of neighbors by id, from words like `7=tcp://host:port`."""
    known: dict[int, str] = {}
    for text in texts:
        node, equals, address = text.partition("=")
        if not (equals and node.isascii() and node.isdecimal()):
            raise ConfigError(f"neighbor {text!r}: expected ID=tcp://host:port")
        known[int(node)] = address
    return known


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """What an operator sets on one node."""

    coordinator: str | None  # None: the state folder knows all that a coordinator would say
    bind: str = "tcp://127.0.0.1:*"
    advertise: str | None = None  # where neighbors reach us; None: where we listen (`reached_at`)
    node: int | None = None
    out: Path | None = None
    observer: str | None = None
    watch: str | None = None  # where a watcher listens
    metrics: str | None = None  # host:port where Prometheus finds our metrics
    join_timeout: float = 600.0
    neighbor_timeout: float = 120.0
    heartbeat: float = HEARTBEAT  # seconds from ping to ping on connections of ours; 0: none
    state: Path | None = None  # where checkpoints are kept; None: a crash is the end
    checkpoint: int = DEFAULT_EVERY  # rounds from one to the next
    durable: bool = False  # they survive the machine, and not only the process
    key: Path | None = None  # our secret key; None: a run without keys
    coordinator_key: Path | None = None  # the public keys of whom we call
    observer_key: Path | None = None
    watch_key: Path | None = None
    token: Path | None = None  # for one join of a key that the coordinator does not know
    post: Path | None = None  # where our public key goes; our pair is made if need be
    insecure: bool = False  # no keys, and not on loopback either
    neighbors: Mapping[int, str] = field(default_factory=dict)  # that are not where they were
    data: HeldData | None = None  # samples of our own; None: the coordinator hands out some
    model: Path | None = None  # where the model goes at the end; None: into `out`, if there is one

    def __post_init__(self) -> None:
        check_address(self.bind, wildcard=True)
        called = (self.coordinator, self.advertise, self.observer, self.watch)
        for address in (*called, *self.neighbors.values()):
            if address is not None:
                check_address(address)
        if self.metrics is not None:
            page_address(self.metrics)
        for name in ("join_timeout", "neighbor_timeout"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} = {getattr(self, name)}: expected seconds above 0")
        check_heartbeat(self.heartbeat)
        if not 1 <= self.checkpoint <= MAX_EVERY:
            raise ConfigError(f"checkpoint = {self.checkpoint}: expected 1 to {MAX_EVERY} rounds")
        if self.model is not None:
            check_suffix(self.model)
        if self.coordinator is None and self.state is None:
            raise ConfigError("no coordinator: expected its address, or a state folder to go on")
        if self.key is None:
            addresses = (self.bind, self.coordinator, self.advertise, self.observer, self.watch)
            require_loopback(*addresses, unless=self.insecure)
        for name in ("coordinator", "observer", "watch"):
            key = getattr(self, f"{name}_key")
            address = getattr(self, name)
            if (address is not None and self.key is not None) != (key is not None):
                raise ConfigError(
                    f"key = {self.key}, {name} = {address}, {name}_key = {key}: expected all three "
                    f"(or, without keys, the address alone)"
                )
        if self.token is not None and self.key is None:
            raise ConfigError(f"token = {self.token}: expected a key too, which it lets in")
        if self.post is not None and self.key is None:
            raise ConfigError(
                f"post = {self.post}: expected a key too, whose public half goes there"
            )
