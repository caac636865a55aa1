"""A node's own files of a run: one JSON line and one theta a round."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import numpy as np

from dlag_node.errors import ConfigError
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
        self._lines.write(record.to_json())
        self._lines.write("\n")
        self._thetas.write(theta.astype(np.dtype("<f8"), copy=False).tobytes())

    def close(self) -> None:
        """Everything written is on its way to the disk."""
        self._lines.close()
        self._thetas.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
