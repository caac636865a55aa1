"""A node's own files of a run: one JSON line and one theta a round."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

import numpy as np

from dlag_node.errors import ConfigError, StorageError
from dlag_node.methods.flow import Array
from dlag_node.rounds.record import Record

_FLOAT = np.dtype("<f8")


class Recorder:
    """Appends to `node-007.jsonl` and `node-007.theta` (little-endian float64, a row a round).

    It begins anew, or after the first `rounds` rounds of an earlier process: what that one wrote
    beyond them is cut off, and will be written again, the same.
    """

    def __init__(self, folder: Path, node: int, *, rounds: int = 0, dim: int = 0) -> None:
        lines, thetas = folder / f"node-{node:03d}.jsonl", folder / f"node-{node:03d}.theta"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if rounds:
                _cut(lines, _end_of_line(lines, rounds), rounds)
                _cut(thetas, rounds * dim * _FLOAT.itemsize, rounds)
            mode = "a" if rounds else "w"
            self._lines = lines.open(mode, encoding="ascii")
            self._thetas = thetas.open(f"{mode}b")
        except OSError as exc:
            raise ConfigError(f"cannot write records in {folder}: {exc}") from exc

    def write(self, record: Record, theta: Array) -> None:
        """One finished round."""
        try:
            self._lines.write(record.to_json())
            self._lines.write("\n")
            self._thetas.write(theta.astype(_FLOAT, copy=False).tobytes())
        except OSError as exc:
            raise StorageError(f"cannot write {self._lines.name}: {exc}") from exc

    def flush(self, *, durable: bool = False) -> None:
        """Everything written survives this process; `durable`: and the machine."""
        try:
            for file in (self._lines, self._thetas):
                file.flush()
                if durable:
                    os.fdatasync(file.fileno())
        except OSError as exc:
            raise StorageError(f"cannot write {self._lines.name}: {exc}") from exc

    def close(self) -> None:
        """Everything written is on its way to the disk."""
        try:
            self._lines.close()
            self._thetas.close()
        except OSError as exc:
            raise StorageError(f"cannot write {self._lines.name}: {exc}") from exc

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _end_of_line(path: Path, count: int) -> int:
    """Where line number `count` ends; behind the file's end if it has fewer whole lines."""
    end = whole = 0
    with path.open("rb") as file:
        for line in file:
            end += len(line)
            whole += line.endswith(b"\n")
            if whole == count:
                return end
    return end + 1


def _cut(path: Path, size: int, rounds: int) -> None:
    if path.stat().st_size < size:
        raise StorageError(f"{path} ends before round {rounds}, where the checkpoint goes on")
    os.truncate(path, size)
