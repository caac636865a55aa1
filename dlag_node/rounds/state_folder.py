"""A node's state folder: all that it needs to come back after a crash, without a coordinator.

identity       who we are for the coordinator: a place that was given to us is given again
place          shard, neighbors and constants, as the coordinator told them, and where we listened;
               of samples that the node holds itself, the file's name and hash
slot-0/1       checkpoints
lives          how many processes have used the folder
lock           held while a process uses the folder
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from secrets import token_bytes

import msgpack

from dlag_node.data import HeldFile, Table
from dlag_node.errors import CheckpointRefused, ConfigError, RemoteProtocolError, StorageError
from dlag_node.rounds.checkpoint import seal, unseal
from dlag_node.rounds.slots import Slots, sync_folder
from dlag_node.wire.control import FROM_COORDINATOR, Assignment, Enrol
from dlag_node.wire.limits import MAX_CONTROL_BYTES, MAX_NODES
from dlag_node.wire.schema import pack, unpack

_IDENTITY_BYTES = 16


@dataclass(frozen=True, slots=True)
class Place:
    """A node's place in a run: what the coordinator said, and the address that we had bound."""

    enrol: Enrol
    assignment: Assignment
    shard: bytes | bytearray | HeldFile
    bound: str

    @property
    def names(self) -> tuple[str, ...] | None:
        """Of the features, where the node's own file has them."""
        return self.shard.names if isinstance(self.shard, HeldFile) else None

    def samples(self) -> bytes | bytearray | Table:
        """The shard, or what the node's own file holds."""
        return self.shard.table() if isinstance(self.shard, HeldFile) else self.shard


class StateFolder:
    """One node's state on disk; a context manager that holds the folder's lock."""

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        self.path = path
        self.slots = Slots(path, durable=durable)
        self.durable = durable
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise ConfigError(f"cannot keep state in {path}: {exc}") from exc
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            os.close(self._lock)
            raise ConfigError(f"state folder {path} is in use by another process") from exc
        self.used = (path / "identity").exists()  # by an earlier process
        self.identity = self._identity()
        self.restarts = self._restarts()  # processes that used the folder before this one

    def __enter__(self) -> StateFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.slots.close()
        os.close(self._lock)

    def place(self) -> Place | None:
        """The place that an earlier process was given; None if it was not given one."""
        path = self.path / "place"
        try:
            _, body = unseal(path.read_bytes())
            words, shard, bound = msgpack.unpackb(body)
            enrol, assignment = (
                unpack(
                    word,
                    FROM_COORDINATOR,
                    limit=MAX_CONTROL_BYTES,
                    longest=MAX_NODES,
                    peer=str(path),
                )
                for word in words
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, CheckpointRefused, RemoteProtocolError) as exc:
            raise StorageError(f"{path} cannot be used: {exc}") from exc
        if not (isinstance(enrol, Enrol) and isinstance(assignment, Assignment)):
            raise StorageError(f"{path} holds other words than an enrolment and an assignment")
        if enrol.held:
            name, label, dim, sha256, names = shard
            shard = HeldFile(Path(name), label, dim, sha256, names and tuple(names))
        return Place(enrol, assignment, shard, bound)

    def write_place(self, place: Place) -> None:
        """Keep a place; after this the coordinator may vanish."""
        words = (pack(place.enrol), pack(place.assignment))
        body = msgpack.packb((words, _plain(place.shard), place.bound))
        self._write("place", seal(body, 0) + body)

    def _identity(self) -> bytes:
        try:
            known = bytes.fromhex((self.path / "identity").read_text(encoding="ascii"))
        except FileNotFoundError:
            known = token_bytes(_IDENTITY_BYTES)
            self._write("identity", known.hex().encode())
        except (OSError, ValueError) as exc:
            raise StorageError(f"{self.path / 'identity'} cannot be used: {exc}") from exc
        return known

    def _restarts(self) -> int:
        path = self.path / "lives"
        try:
            before = int(path.read_text(encoding="ascii")) if path.exists() else int(self.used)
        except (OSError, ValueError) as exc:
            raise StorageError(f"{path} cannot be used: {exc}") from exc
        self._write("lives", b"%d" % (before + 1))
        return before

    def _write(self, name: str, raw: bytes) -> None:
        """All of a file or nothing of it."""
        path, temporary = self.path / name, self.path / f".{name}.tmp"
        try:
            with temporary.open("wb") as file:
                file.write(raw)
                if self.durable:
                    file.flush()
                    os.fsync(file.fileno())
            temporary.replace(path)
            if self.durable:
                sync_folder(self.path)
        except OSError as exc:
            raise StorageError(f"cannot write {path}: {exc}") from exc


def _plain(shard: bytes | bytearray | HeldFile) -> bytes | bytearray | tuple[object, ...]:
    if isinstance(shard, HeldFile):
        return str(shard.path), shard.label, shard.dim, shard.sha256, shard.names
    return shard
