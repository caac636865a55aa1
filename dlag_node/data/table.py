"""Samples with their labels and the names of their features, as a file has them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dlag_node.errors import ConfigError
from dlag_node.problems import Array, Rows, rows_of

_NAMED_AT_MOST = 20  # columns in an error


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """What a file holds: labels are None where it does not say which they are, names likewise."""

    rows: Rows
    labels: Array | None
    names: tuple[str, ...] | None = None
    sha256: str = ""  # of the file as it is stored

    def known_labels(self, who: str) -> Array:
        """The labels; a ConfigError where nobody has said which they are."""
        if self.labels is None:
            names = self.names or ()
            columns = f"; its columns: {', '.join(names[:_NAMED_AT_MOST])}" if names else ""
            raise ConfigError(f"{who}: expected --label to say where the labels are{columns}")
        return self.labels

    def with_features(self, names: tuple[str, ...], who: str, whose: str) -> Table:
        """These features alone, in this order; a ConfigError where one is missing."""
        if self.names is None or self.names == names:
            return self
        at = {name: k for k, name in enumerate(self.names)}
        for name in names:
            if name not in at:
                shown = ", ".join(self.names[:_NAMED_AT_MOST])
                raise ConfigError(f"{who} has no column {name!r}: {whose} needs it; it has {shown}")
        columns = self.rows.matrix()[:, [at[name] for name in names]]
        return replace(self, rows=rows_of(columns), names=names)


def split_label(columns: list[str], label: str | None, who: str) -> tuple[int | None, list[int]]:
    """Which of these columns is the label, if it was said, and which are the features."""
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise ConfigError(f"{who}: column {twice[0]!r} comes twice: expected different names")
    if label is not None and label not in columns:
        shown = ", ".join(columns[:_NAMED_AT_MOST])
        raise ConfigError(f"{who}: no column {label!r}: expected one of {shown}")
    at = None if label is None else columns.index(label)
    features = [k for k in range(len(columns)) if k != at]
    if not features:
        raise ConfigError(f"{who}: no column beside the label: expected features")
    return at, features
