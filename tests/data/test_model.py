"""Model files: every bit comes back, and files that are none are refused with the reason."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dlag_node.data.model import Model, load_model_file
from dlag_node.errors import ConfigError, StorageError
from dlag_node.problems import rows_of

MODEL = Model(
    problem="logistic",
    classes=(1.0, 2.0),
    coefficients=np.array([0.1, -2.5e-300, 1 / 3]),
    intercept=-0.7,
    scale="standard",
    shift=np.array([100.0, 0.0, -1e9]),
    factor=np.array([0.01, 0.0, 3.0]),
    names=("age", "dose", "größe"),
    provenance={"run": "ab", "rounds": 7, "lambda": 0.01},
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def same(one: Model, other: Model) -> None:
    for name in ("coefficients", "shift", "factor"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
    for name in ("problem", "classes", "intercept", "scale", "names", "provenance"):
        assert getattr(one, name) == getattr(other, name)


@pytest.mark.parametrize("name", ["model.json", "deep/er/model.npz"])
@pytest.mark.parametrize("model", [MODEL, replace(MODEL, problem="ridge", classes=(), names=None)])
def test_a_model_comes_back_bit_for_bit(tmp_path: Path, name: str, model: Model) -> None:
    model.save(tmp_path / name)
    same(load_model_file(tmp_path / name), model)
    assert [each.name for each in (tmp_path / name).parent.iterdir()] == [Path(name).name]


@given(vectors=st.lists(st.tuples(FLOATS, FLOATS, FLOATS), min_size=1, max_size=5), b=FLOATS)
def test_any_numbers_come_back(
    tmp_path_factory: pytest.TempPathFactory, vectors: list[tuple[float, float, float]], b: float
) -> None:
    path = tmp_path_factory.mktemp("model") / "model.json"
    w, shift, factor = np.array(vectors).T
    model = replace(MODEL, coefficients=w, shift=shift, factor=factor, intercept=b, names=None)
    model.save(path)
    same(load_model_file(path), model)


def test_scores_are_those_of_the_raw_coefficients_dense_and_sparse() -> None:
    rng = np.random.default_rng(0)
    model = replace(MODEL, shift=rng.normal(size=3), factor=rng.normal(size=3), names=None)
    X = rng.normal(size=(20, 3))
    w, b = model.raw()
    np.testing.assert_allclose(model.scores(rows_of(X)), X @ w + b, rtol=1e-12)
    sparse = rows_of(sp.csr_array(np.where(X > 1, X, 0.0)))
    np.testing.assert_allclose(model.scores(sparse), np.where(X > 1, X, 0.0) @ w + b, rtol=1e-12)
    assert model.decide(np.array([-1.0, 0.0, 1e-300])).tolist() == [1.0, 1.0, 2.0]
    with pytest.raises(ConfigError, match="samples of 2 features: the model has 3"):
        model.scores(rows_of(X[:, :2]))


def changed(**change: object) -> bytes:
    """A model's text with other values, its hash made to fit."""
    body = replace(MODEL)._body() | change
    from dlag_node.data.model import _hash

    body = {key: value for key, value in body.items() if value is not ...}
    return json.dumps(body | {"sha256": _hash(body)}).encode()


BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "Expecting value"),
    "no text": (b"\xff\xfe", "can't decode"),
    "a list": (b"[1]", "a list, expected an object"),
    "foreign": (b'{"a": 1}', "format is None"),
    "another version": (changed(version=2), "version is 2"),
    "a digit changed": (changed().replace(b"-0.7", b"-0.8"), "its sha256 is another"),
    "cut": (changed()[:-20], "delimiter|Unterminated|Expecting"),
    "no coefficients": (changed(coefficients=...), "it has no 'coefficients'"),
    "none of them": (changed(coefficients=[], shift=[], factor=[], names=None), "no coefficient"),
    "too few factors": (changed(factor=[1.0]), "factor of 1 numbers"),
    "text for a number": (changed(coefficients=["x", 1, 2]), "could not convert string"),
    "one class": (changed(classes=[1.0]), "1 classes"),
    "unknown problem": (changed(problem="svm"), "unknown problem 'svm'"),
    "unknown scale": (changed(scale="log"), "scale 'log'"),
    "names that are none": (changed(names=[1, 2, 3]), "bad names"),
    "too few names": (changed(names=["a"]), "as many names as features"),
    "no provenance": (changed(provenance=[]), "no provenance"),
}


@pytest.mark.parametrize(("raw", "words"), BAD.values(), ids=BAD)
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, raw: bytes, words: str) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(raw)
    with pytest.raises(ConfigError, match=words) as caught:
        load_model_file(path)
    assert str(path) in str(caught.value)


@given(at=st.floats(0, 1), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed_or_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, at: float, bit: int
) -> None:
    folder = tmp_path_factory.mktemp("flip")
    for name in ("model.json", "model.npz"):
        MODEL.save(folder / name)
        raw = bytearray((folder / name).read_bytes())
        raw[min(int(at * len(raw)), len(raw) - 1)] ^= 1 << bit
        (folder / name).write_bytes(raw)
        try:
            loaded = load_model_file(folder / name)
        except ConfigError:
            continue
        same(loaded, MODEL)


def test_where_nothing_can_be_written_the_error_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        MODEL.save(tmp_path / "file" / "model.json")
    with pytest.raises(ConfigError, match=r"ends with \.json or \.npz"):
        MODEL.save(tmp_path / "model.txt")
    with pytest.raises(ConfigError, match="cannot read"):
        load_model_file(tmp_path / "none.json")
