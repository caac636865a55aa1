"""Two files, written in turn: whenever a write is cut short, the one before it is intact.

A slot is written over in place, which costs a hundredth of writing a new file and renaming it, and
never takes more room than the largest checkpoint so far. What a crash tears is told by its length
and checksum, and is always the newer of the two.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dlag_node.errors import CheckpointRefused, StorageError
from dlag_node.rounds.checkpoint import seal, unseal

log = logging.getLogger(__name__)

SLOTS = 2

T = TypeVar("T")


class Slots:
    """The checkpoints of one node; `durable` ones survive the machine, others the process.

    Use `newest` once, before the first `save`: it finds out whose turn it is.
    """

    def __init__(self, folder: Path, *, durable: bool) -> None:
        self._durable = durable
        self._paths = [folder / f"slot-{i}" for i in range(SLOTS)]
        self._files: list[int | None] = [None] * SLOTS
        self._turn = 0
        self._serial = 0

    def newest(self, accept: Callable[[bytes], T]) -> T | None:
        """The newest checkpoint that is intact and accepted; None where there never was one.

        Each one that is refused is logged with the reason. Where both have been written and none
        can be used, starting from nothing would only confuse the neighbors: StorageError.
        """
        sealed: list[tuple[int, int, bytes]] = []
        refused: list[str] = []
        for turn, path in enumerate(self._paths):
            try:
                serial, body = unseal(path.read_bytes())
            except FileNotFoundError:
                continue
            except (CheckpointRefused, OSError) as exc:
                refused.append(_refuse(path, exc))
            else:
                sealed.append((serial, turn, body))
        self._serial = max((serial for serial, _, _ in sealed), default=0)
        for _, turn, body in sorted(sealed, reverse=True):
            try:
                accepted = accept(body)
            except CheckpointRefused as exc:
                refused.append(_refuse(self._paths[turn], exc))
                continue
            self._turn = (turn + 1) % SLOTS
            return accepted
        if len(refused) == SLOTS:
            raise StorageError(f"no checkpoint can be used: {'; '.join(refused)}")
        return None

    def save(self, body: bytes) -> None:
        """Write a checkpoint over the older one; it is safe when this returns."""
        head = seal(body, self._serial + 1)
        path = self._paths[self._turn]
        try:
            file = self._open(self._turn)
            written = os.pwritev(file, (head, body), 0)
            if written < len(head) + len(body):
                raise OSError(f"only {written} of {len(head) + len(body)} bytes could be written")
            if self._durable:
                os.fdatasync(file)
        except OSError as exc:
            raise StorageError(
                f"cannot write checkpoint {path}: {exc}; the one before it is kept"
            ) from exc
        self._serial += 1
        self._turn = (self._turn + 1) % SLOTS

    def close(self) -> None:
        """Nothing follows."""
        for file in self._files:
            if file is not None:
                os.close(file)
        self._files = [None] * SLOTS

    def _open(self, turn: int) -> int:
        file = self._files[turn]
        if file is None:
            path = self._paths[turn]
            file = self._files[turn] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if self._durable:
                sync_folder(path.parent)
        return file


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive the machine."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _refuse(path: Path, why: Exception) -> str:
    log.warning("checkpoint %s is not used: %s", path, why)
    return f"{path.name}: {why}"
