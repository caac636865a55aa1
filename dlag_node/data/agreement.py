"""What all nodes do alike to their samples: agreed once, from what each of them says of its own.

    a' = (a - shift) * factor, feature by feature      minmax: to [-1, 1]; standard: mean 0,
                                                       variance 1; a constant feature becomes 0
    a' = (a', intercept)                               if there is to be one: a constant feature
    b' = -1 for the first class, 1 for the second      ridge: b' = b

The regulariser holds for the constant feature as for all others. Without that no f_i would be
strongly convex, which every dual method needs; the larger its value, the less it weighs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from dlag_node.data.storage import blank, blocks
from dlag_node.data.summary import Spread, Summary, dense_block, pooled_moments
from dlag_node.errors import ConfigError
from dlag_node.problems import LOGISTIC, Array, DenseRows, Loss, Rows, rows_of

_NAMED_AT_MOST = 10  # nodes in a reason, and groups of them
_CONSTANT = 1e-12  # a spread that is smaller than so much of the value is none
_MORE_FEATURES = " (LIBSVM text does not say how many there are: give all nodes the same --dim)"


@dataclass(frozen=True, slots=True)
class Agreement:
    """How rows and labels of any node's table become those of its f_i."""

    classes: tuple[float, ...]  # ascending; empty: labels are targets
    intercept: float  # value of the constant feature; 0: there is none
    scale: str
    spread: Spread | None  # shift and factor

    @property
    def extra(self) -> int:
        """Features beside those of the table."""
        return int(self.intercept != 0.0)

    def labels(self, labels: Array) -> Array:
        """b' of these labels."""
        if not self.classes:
            return labels
        if not np.isin(labels, self.classes).all():
            raise ConfigError(f"a label beside the agreed classes {list(self.classes)}")
        return np.where(labels == self.classes[1], 1.0, -1.0)

    def rows(self, rows: Rows) -> Rows:
        """a' of these rows; the very same rows where nothing is to be done."""
        if self.spread is None and not self.extra:
            return rows
        shift, factor = self.scaling(rows.dim)
        if not isinstance(rows, DenseRows) and not shift.any():
            return self._sparse(rows, factor)
        out = blank(rows.samples, rows.dim + self.extra)
        for part in blocks(*out.shape):
            out[part, : rows.dim] = (dense_block(rows, part) - shift) * factor
            out[part, rows.dim :] = self.intercept
        return DenseRows(out)

    def scaling(self, dim: int) -> tuple[Array, Array]:
        """Shift and factor of every feature."""
        if self.spread is None:
            return np.zeros(dim), np.ones(dim)
        return self.spread.vectors

    def _sparse(self, rows: Rows, factor: Array) -> Rows:
        import scipy.sparse as sp  # 20 MiB that dense samples do without

        parts = [rows.matrix() @ sp.diags_array(factor)]
        if self.extra:
            parts.append(sp.csr_array(np.full((rows.samples, 1), self.intercept)))
        return rows_of(sp.hstack(parts, format="csr"))


def agree(said: Mapping[str, Summary], *, loss: Loss, scale: str, intercept: float) -> Agreement:
    """The agreement of those who said this; a ConfigError that names them where there is none."""
    _same(said, "the number of features", lambda each: each.dim, _MORE_FEATURES)
    _same(
        said,
        "the features' names",
        lambda each: f"sha256 {each.names[:12]}" if each.names else "no names",
    )
    _same(said, "--scale", lambda each: each.scale)
    (told,) = {each.scale for each in said.values()}
    if told != scale:
        raise ConfigError(f"{_some(list(said))}: --scale {told}, the run has --scale {scale}")
    classes = _classes(said) if loss is LOGISTIC else ()
    return Agreement(classes, intercept, scale, _spread(list(said.values()), scale))


def _classes(said: Mapping[str, Summary]) -> tuple[float, ...]:
    many = [who for who, each in said.items() if each.labels is None]
    if many:
        raise ConfigError(
            f"more than two different labels: {_some(many)}; expected two classes (for real-valued "
            "targets use the ridge problem)"
        )
    found = sorted({label for each in said.values() for label in each.labels or ()})
    if len(found) == 1:
        raise ConfigError(f"all labels are {found[0]:g}: expected two classes")
    if len(found) > 2:
        _same(said, "the labels", lambda each: ", ".join(f"{b:g}" for b in each.labels or ()))
    return tuple(found)


def _spread(said: list[Summary], scale: str) -> Spread | None:
    """Shift and factor from what each of them told."""
    told = [(each.samples, *each.spread.vectors) for each in said if each.spread is not None]
    if scale == "none":
        return None
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if scale == "minmax":
            low = np.min([first for _, first, _ in told], axis=0)
            high = np.max([second for _, _, second in told], axis=0)
            shift, width = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
        else:
            shift, deviations = pooled_moments(told)
            width = np.sqrt(deviations / sum(count for count, _, _ in told))
        # constant, but for rounding: of no use, and nothing to divide by
        factor = np.where(width > _CONSTANT * np.abs(shift), 1.0 / width, 0.0)
    if not (np.isfinite(shift).all() and np.isfinite(factor).all()):
        raise ConfigError(f"--scale {scale}: values are too large or too small to be scaled")
    return Spread(shift.astype("<f8").tobytes(), factor.astype("<f8").tobytes())


def _same(
    said: Mapping[str, Summary], what: str, of: Callable[[Summary], Hashable], hint: str = ""
) -> None:
    groups: dict[Hashable, list[str]] = {}
    for who, each in said.items():
        groups.setdefault(of(each), []).append(who)
    if len(groups) > 1:
        shown = list(groups.items())[:_NAMED_AT_MOST]
        words = "; ".join(f"{value} on {_some(who)}" for value, who in shown)
        raise ConfigError(f"the nodes do not agree on {what}: {words}{hint}")


def _some(who: list[str]) -> str:
    more = f" and {len(who) - _NAMED_AT_MOST} more" if len(who) > _NAMED_AT_MOST else ""
    return ", ".join(who[:_NAMED_AT_MOST]) + more
