"""Keeps a node's checkpoints: when one is due, what is in it, and how far back it may lead."""

from __future__ import annotations

from collections.abc import Mapping, Set

from dlag_node.errors import ConfigError
from dlag_node.rounds.checkpoint import Checkpoint, Owner, freeze, thaw
from dlag_node.rounds.engine import Engine
from dlag_node.rounds.slots import SLOTS
from dlag_node.rounds.state_folder import StateFolder
from dlag_node.wire.limits import MAX_BACK

MAX_EVERY = MAX_BACK // SLOTS  # rounds from one checkpoint to the next
# Saving each round takes about half of the rounds a second of a mesh without compute, one in ten
# less (benchmarks/results/survival.md); a crash then costs a few rounds made again.
DEFAULT_EVERY = 10


class Keeper:
    """Saves an engine, with what the mesh around it must not forget.

    That is due every `every` rounds, before a frame of the next round leaves.
    """

    def __init__(
        self,
        folder: StateFolder,
        owner: Owner,
        *,
        every: int,
        addresses: Mapping[int, str] | None = None,
    ) -> None:
        if not 1 <= every <= MAX_EVERY:
            raise ConfigError(f"checkpoint every {every} rounds: expected 1 to {MAX_EVERY}")
        self.folder = folder
        self.every = every
        self.moved: dict[int, str] = {}  # neighbors' addresses that the assignment does not have
        self.saved_rounds = 0
        self._owner = owner
        self._addresses = dict(addresses or {})

    @property
    def back(self) -> int:
        """Rounds that this node may fall back by: should the newer checkpoint be unreadable too."""
        return SLOTS * self.every

    @property
    def durable(self) -> bool:
        """Whether a checkpoint survives the machine, and not only this process."""
        return self.folder.durable

    @property
    def comfort(self) -> str:
        """What to say to somebody whose run ends here."""
        return (
            f"round {self.saved_rounds} is saved in {self.folder.path}: "
            "start the node again to go on from there (--neighbor, if one has moved meanwhile)"
        )

    def meet(self, neighbor: int, address: str) -> None:
        """The neighbor is here now: if that is news, the next checkpoint tells it."""
        if address != self._addresses.get(neighbor):
            self._addresses[neighbor] = self.moved[neighbor] = address

    def recall(self, engine: Engine) -> Checkpoint | None:
        """Bring an engine that was built anew to the last checkpoint, if there is one."""
        found = self.folder.slots.newest(lambda body: thaw(body, self._owner, engine.codec))
        if found is not None:
            found.into(engine)
            self.moved |= found.moved
            self._addresses |= found.moved
            self.saved_rounds = engine.rounds
        return found

    def save(self, engine: Engine, *, finished: bool = False, done: Set[int] = frozenset()) -> None:
        """Write a checkpoint; when this returns, what it leads to may be told.

        `done` are the neighbors that have said goodbye.
        """
        body = freeze(engine, self._owner, finished=finished, done=done, moved=self.moved)
        self.folder.slots.save(body)
        self.saved_rounds = engine.rounds
