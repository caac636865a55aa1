"""A trained linear model as a file: what to do to a sample, the coefficients, where they are from.

    score(a) = <coefficients, (a - shift) * factor> + intercept

of a raw sample a. Logistic: the second class has probability 1 / (1 + exp(-score)) and is predicted
where the score is above 0. Ridge: the score is the prediction.

model.json is text, floats with all of their digits, and a hash over all of it; model.npz holds the
same, the vectors as arrays. Neither can make anything but numbers and texts when it is read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from dlag_node.data.arrays import DAMAGED
from dlag_node.data.storage import blocks
from dlag_node.data.summary import SCALES, dense_block
from dlag_node.errors import ConfigError, StorageError
from dlag_node.problems import LOGISTIC, Array, Rows, loss_named

FORMAT = "dlag-model"
VERSION = 1
_VECTORS = ("coefficients", "shift", "factor")


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A linear model of raw samples."""

    problem: str
    classes: tuple[float, ...]  # ascending; none for ridge
    coefficients: Array  # of the scaled features
    intercept: float
    scale: str
    shift: Array
    factor: Array
    names: tuple[str, ...] | None  # of the features, where the node's file had them
    provenance: Mapping[str, Any]  # run, node, method, rounds, ...

    def __post_init__(self) -> None:
        loss_named(self.problem)
        expected = 2 if self.problem == LOGISTIC.name else 0
        _require(len(self.classes) == expected, f"{len(self.classes)} classes")
        _require(self.scale in SCALES, f"scale {self.scale!r}")
        _require(len(self.coefficients) >= 1, "no coefficient")
        for name in _VECTORS:
            vector = getattr(self, name)
            _require(vector.shape == self.coefficients.shape, f"{name} of {len(vector)} numbers")
            _require(bool(np.isfinite(vector).all()), f"a number in {name} is not finite")
        _require(all(map(math.isfinite, (*self.classes, self.intercept))), "not finite")
        _require(self.names is None or len(self.names) == self.dim, "as many names as features")

    @property
    def dim(self) -> int:
        """The number of features of a raw sample."""
        return len(self.coefficients)

    def raw(self) -> tuple[Array, float]:
        """Coefficients and intercept for samples as they are: score(a) = <w, a> + b."""
        w = self.coefficients * self.factor
        return w, self.intercept - float(w @ self.shift)

    def scores(self, rows: Rows) -> Array:
        """score(a_j) of every row, block by block."""
        if rows.dim != self.dim:
            raise ConfigError(f"samples of {rows.dim} features: the model has {self.dim}")
        out = np.empty(rows.samples)
        for part in blocks(rows.samples, rows.dim):
            scaled = (dense_block(rows, part) - self.shift) * self.factor
            out[part] = scaled @ self.coefficients + self.intercept
        return out

    def decide(self, scores: Array) -> Array:
        """What is predicted at these scores: a class, or the score itself."""
        if not self.classes:
            return scores
        low, high = self.classes
        return np.where(scores > 0, high, low)

    def save(self, path: Path) -> None:
        """Write model.json or model.npz, by the name's ending; all of it or nothing."""
        check_suffix(path)
        body = self._body()
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                if path.suffix == ".json":
                    file.write(_json(body | {"sha256": _hash(body)}, indent=1).encode() + b"\n")
                else:
                    vectors = {name: np.array(body.pop(name)) for name in _VECTORS}
                    header = np.frombuffer(_json(body).encode(), np.uint8)
                    np.savez(file, allow_pickle=False, header=header, **vectors)
            temporary.replace(path)
        except OSError as exc:
            raise StorageError(f"cannot write {path}: {exc}") from exc

    def _body(self) -> dict[str, Any]:
        vectors = {name: getattr(self, name).tolist() for name in _VECTORS}
        return {
            "format": FORMAT,
            "version": VERSION,
            "problem": self.problem,
            "classes": list(self.classes),
            "intercept": self.intercept,
            "scale": self.scale,
            "names": None if self.names is None else list(self.names),
            "provenance": dict(self.provenance),
        } | vectors


def load_model_file(path: Path) -> Model:
    """The model in a file; foreign or damaged ones are a ConfigError that says why."""
    check_suffix(path)
    try:
        body = _read_json(path) if path.suffix == ".json" else _read_npz(path)
        _require(body.get("format") == FORMAT, f"format is {body.get('format')!r}")
        _require(body.get("version") == VERSION, f"version is {body.get('version')!r}")
        names = body["names"]
        _require(names is None or all(isinstance(each, str) for each in names), "bad names")
        _require(isinstance(body["provenance"], dict), "no provenance")
        return Model(
            problem=str(body["problem"]),
            classes=tuple(map(float, body["classes"])),
            intercept=float(body["intercept"]),
            scale=str(body["scale"]),
            names=None if names is None else tuple(names),
            provenance=body["provenance"],
            **{name: np.array(body[name], dtype=np.float64).reshape(-1) for name in _VECTORS},
        )
    except OSError as exc:
        raise ConfigError(f"cannot read {path}: {exc}") from exc
    except KeyError as exc:
        raise ConfigError(f"{path} is no model: it has no {exc}") from exc
    except (TypeError, AttributeError, ConfigError, *DAMAGED) as exc:
        raise ConfigError(f"{path} is no model: {exc}") from exc


def _read_json(path: Path) -> dict[str, Any]:
    body = json.loads(path.read_text(encoding="utf-8"))
    _require(isinstance(body, dict), f"a {type(body).__name__}, expected an object")
    _require(body.get("format") == FORMAT, f"format is {body.get('format')!r}")
    told = body.pop("sha256", None)
    _require(told == _hash(body), "its sha256 is another: it was changed or damaged")
    return dict(body)


def _read_npz(path: Path) -> dict[str, Any]:
    with path.open("rb") as raw, np.load(raw, allow_pickle=False) as archive:
        _require("header" in archive, "it has no header")
        body = json.loads(archive["header"].tobytes().decode())
        _require(isinstance(body, dict), "its header is no object")
        return dict(body) | {name: archive[name] for name in _VECTORS}


def _hash(body: Mapping[str, Any]) -> str:
    return sha256(_json(body).encode()).hexdigest()


def _json(body: Mapping[str, Any], indent: int | None = None) -> str:
    return json.dumps(body, indent=indent, sort_keys=True, allow_nan=False)


def check_suffix(path: Path) -> None:
    """ConfigError unless the name says which form the model has."""
    if path.suffix not in (".json", ".npz"):
        raise ConfigError(f"model {path}: expected a name that ends with .json or .npz")


def _require(holds: bool, found: str) -> None:
    if not holds:
        raise ConfigError(found)
