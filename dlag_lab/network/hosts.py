"""Where the processes of a mesh live: all on loopback, or each on a host of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

LOOPBACK = "tcp://127.0.0.1:*"


class Hosts(Protocol):
    """What the laboratory must know to place a process."""

    @property
    def laboratory(self) -> str:
        """Where the coordinator and the laboratory listen."""

    @property
    def netns(self) -> Mapping[str, str]:
        """The network namespace of each process, by its name; those not named stay where we are."""

    @property
    def emulator(self) -> Sequence[str]:
        """The command that makes the network what it is; empty where the kernel needs no help."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What the processes' environment has beside ours."""

    def node(self, node: int, /) -> str:
        """Where a node listens for its neighbors."""

    def advertised(self, node: int, /) -> str | None:
        """Where its neighbors reach it; None: where it listens."""

    def at_laboratory(self) -> AbstractContextManager[None]:
        """For the socket of ours that is bound meanwhile to be the laboratory's."""

    def counted(self) -> dict[str, Any] | None:
        """What the kernel has counted on the mesh's interfaces; None where it cannot tell."""


@dataclass(frozen=True, slots=True)
class Loopback:
    """All on 127.0.0.1: the fastest network there is."""

    laboratory: str = LOOPBACK
    netns: Mapping[str, str] = field(default_factory=dict)
    emulator: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def node(self, _: int, /) -> str:
        """Any free port, for every node."""
        return LOOPBACK

    def advertised(self, _: int, /) -> None:
        """Where it listens."""

    def at_laboratory(self) -> AbstractContextManager[None]:
        """We are there already."""
        return nullcontext()

    def counted(self) -> None:
        """Loopback carries everybody's packets."""
