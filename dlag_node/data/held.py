"""The samples that a node holds itself: which file, what may be told of it, and that it stays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from dlag_node.data.reading import read_table
from dlag_node.data.summary import Summary, check_scale, summarise
from dlag_node.data.table import Table
from dlag_node.errors import ConfigError, StorageError

MIN_SAMPLES = 10  # of a node that tells anything of its features


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file of samples; `sha256` is what it must still have, once a run has begun with it."""

    path: Path
    label: str | None = None
    dim: int | None = None
    sha256: str | None = None
    names: tuple[str, ...] | None = None  # of its features, once it has been read

    def table(self) -> Table:
        """What the file holds."""
        table = read_table(self.path, label=self.label, dim=self.dim)
        if self.sha256 is not None and table.sha256 != self.sha256:
            raise StorageError(
                f"{self.path} has changed since the run began: sha256 {table.sha256[:12]}, "
                f"expected {self.sha256[:12]}"
            )
        return table


@dataclass(frozen=True, slots=True, eq=False)
class Holding:
    """What a file was found to hold: the samples, what is told of them, the file with its hash."""

    table: Table
    summary: Summary
    file: HeldFile


@dataclass(frozen=True, slots=True)
class HeldData:
    """A node's own file, and what its operator lets it tell of the features: see `summary`."""

    file: HeldFile
    scale: str = "none"
    min_samples: int = MIN_SAMPLES

    def __post_init__(self) -> None:
        check_scale(self.scale)
        if self.min_samples < 1:
            raise ConfigError(f"min-samples = {self.min_samples}: expected at least 1")

    def open(self) -> Holding:
        """Read the file, and find out what the coordinator is to be told before it can plan."""
        table = self.file.table()
        samples = table.rows.samples
        if self.scale != "none" and samples < self.min_samples:
            raise ConfigError(
                f"{self.file.path} has {samples} samples: --scale {self.scale} would tell the "
                "coordinator numbers of each feature from which so few could be guessed (of a "
                f"single sample, all of it); expected at least {self.min_samples} (--min-samples), "
                "or --scale none"
            )
        summary = summarise(table, self.scale, who=str(self.file.path))
        file = replace(
            self.file, path=self.file.path.absolute(), sha256=table.sha256, names=table.names
        )
        return Holding(table, summary, file)
