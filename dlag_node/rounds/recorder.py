"""A node's own files of a run: one JSON line and one theta a round."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import numpy as np

from dlag_node.errors import ConfigError, StorageError
from dlag_node.methods.flow import Array
from dlag_node.rounds.record import Record


class Recorder:
    """Appends to `node-007.jsonl` and `node-007.theta` (little-endian float64, a row a round)."""

    def __init__(self, folder: Path, node: int) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lines = (folder / f"node-{node:03d}.jsonl").open("w", encoding="ascii")
            self._thetas = (folder / f"node-{node:03d}.theta").open("wb")
        except OSError as exc:
            raise ConfigError(f"cannot write records in {folder}: {exc}") from exc

    def write(self, record: Record, theta: Array) -> None:
        """One finished round."""
        try:
            self._lines.write(record.to_json())
            self._lines.write("\n")
            self._thetas.write(theta.astype(np.dtype("<f8"), copy=False).tobytes())
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
