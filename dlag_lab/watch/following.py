"""Reading a trajectory while the laboratory still writes it."""

from __future__ import annotations

import json
from pathlib import Path

from dlag_lab.watch.series import Series


class Following:
    """What the laboratory has measured so far, from its file; a torn last line waits."""

    def __init__(self, path: Path) -> None:
        self.gap = Series()
        self._path = path
        self._read = 0  # bytes

    def look(self) -> None:
        """Take what was written since the last look."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                new = file.read()
        except OSError:
            return  # not there yet
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            point = json.loads(line)
            self.gap.add(point["k"] + 1, [point["suboptimality"]])
