"""What went wrong on this node, as its own log says it: every warning, kept for who watches."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from dlag_node.wire.limits import MAX_TEXT
from dlag_node.wire.watching import MAX_FAULTS, Fault

_LOGGER = "dlag_node"


class Faults(logging.Handler):
    """Hears the warnings of this process while it is entered: the last few, and how many.

    In `folder` they are also written down, one JSON line each, as `node-007.faults.jsonl`: for a
    replay. A disk that takes no more lines is no reason to fail.
    """

    def __init__(
        self, node: int, rounds: Callable[[], int], folder: Path | None, *, life: int
    ) -> None:
        """`rounds` are those that are finished, `life` the processes before this one."""
        super().__init__(logging.WARNING)
        self.life = life
        self.total = 0
        self.latest: deque[Fault] = deque(maxlen=MAX_FAULTS)
        self._rounds = rounds
        self._path = None if folder is None else folder / f"node-{node:03d}.faults.jsonl"

    def emit(self, record: logging.LogRecord) -> None:
        """A warning was logged."""
        self.add(record.created, record.getMessage())

    def add(self, at: float, text: str) -> None:
        """Note a fault."""
        fault = Fault(at, self._rounds(), self.life, text[:MAX_TEXT])
        self.total += 1
        self.latest.append(fault)
        if self._path is not None:
            with suppress(OSError), self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(fault)) + "\n")

    def forget(self) -> None:
        """Begin a new file: what another run may have left there is not ours."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def __enter__(self) -> Faults:
        logging.getLogger(_LOGGER).addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger(_LOGGER).removeHandler(self)
