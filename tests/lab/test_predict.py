"""`dlag predict` on models that runs left behind."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss, r2_score

from coordinator.plan import RunSettings
from dlag_lab.cli import app
from dlag_lab.runs import Run, RunRequest
from dlag_node.data.model import load_model_file
from dlag_node.process import run_command

RNG = np.random.default_rng(7)
X = 50 + 20 * RNG.normal(size=(60, 3))
SIGNAL = (X - 50) @ [0.05, -0.1, 0.02]


def write_csv(path: Path, y: np.ndarray, names: str = "a,b,c,y") -> Path:
    rows = np.column_stack([X, y]).tolist()
    path.write_text("\n".join([names, *(",".join(map(repr, row)) for row in rows)]))
    return path


def trained(
    tmp_path: Path, data: Path, problem: str, mode: Literal["simulate", "mesh"] = "simulate"
) -> Path:
    settings = RunSettings(
        topology="path:3", data=str(data), label="y", problem=problem, scale="standard", intercept=1
    )
    request = RunRequest(settings=settings, mode=mode, target=1e-10, out=tmp_path / "run")
    Run(request).execute()
    models = sorted((tmp_path / "run" / "nodes").glob("*.model.json"))
    assert [each.name for each in models] == [f"node-00{i}.model.json" for i in range(3)]
    return models[1]


def predict(*argv: object) -> int:
    return run_command(app, ["predict", *map(str, argv)], "dlag")


def test_classes_are_predicted_with_their_probabilities(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    y = np.where(SIGNAL + RNG.normal(size=60) > 0, 3.0, 0.0)
    data = write_csv(tmp_path / "set.csv", y)
    model = trained(tmp_path, data, "logistic")
    assert predict(model, data, "--label", "y", "--out", tmp_path / "p.csv") == 0
    with (tmp_path / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    predicted = [float(row["prediction"]) for row in rows]
    chances = [float(row["probability"]) for row in rows]
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "60 samples, logistic, 3 features"
    assert said[1] == f"accuracy {accuracy_score(y, predicted):.6g}"
    assert said[2] == f"log loss {log_loss(y, chances):.6g}"
    assert load_model_file(model).provenance["n0"] == 60


@pytest.mark.parametrize("mode", ["simulate", "mesh"])
def test_columns_are_found_by_their_names(
    mode: Literal["simulate", "mesh"], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    y = np.where(SIGNAL + RNG.normal(size=60) > 0, 3.0, 0.0)
    data = write_csv(tmp_path / "set.csv", y)
    model = trained(tmp_path, data, "logistic", mode)
    assert load_model_file(model).names == ("a", "b", "c")
    capsys.readouterr()
    assert predict(model, data, "--label", "y", "--out", tmp_path / "as-trained.csv") == 0
    rows = np.column_stack([X[:, 2], y, X[:, 0], np.zeros(60), X[:, 1]]).tolist()
    moved = tmp_path / "moved.csv"
    moved.write_text("\n".join(["c,y,a,more,b", *(",".join(map(repr, row)) for row in rows)]))
    assert predict(model, moved, "--label", "y", "--out", tmp_path / "moved-out.csv") == 0
    expected, found = (
        (tmp_path / name).read_text() for name in ("as-trained.csv", "moved-out.csv")
    )
    assert found == expected
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == lines[3:]


def test_a_model_without_names_takes_columns_as_they_come_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "set.npz", X=X, y=SIGNAL)
    model = trained(tmp_path, tmp_path / "set.npz", "ridge")
    assert load_model_file(model).names is None
    capsys.readouterr()
    assert predict(model, write_csv(tmp_path / "set.csv", SIGNAL), "--label", "y") == 0
    said = capsys.readouterr()
    assert "R2 0.9" in said.out
    assert "the model has no names of features: columns are taken in their order" in said.err


def test_targets_are_predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    y = SIGNAL + 0.1 * RNG.normal(size=60)
    data = write_csv(tmp_path / "set.csv", y)
    model = trained(tmp_path, data, "ridge")
    assert predict(model, data, "--label", "y", "--out", tmp_path / "p.csv") == 0
    predicted = np.loadtxt(tmp_path / "p.csv", skiprows=1)
    said = capsys.readouterr().out.splitlines()
    assert said[1] == f"R2 {r2_score(y, predicted):.6g}"
    np.save(tmp_path / "bare.npy", X)
    assert predict(model, tmp_path / "bare.npy") == 0  # no labels: nothing to be right about
    assert capsys.readouterr().out.splitlines() == ["60 samples, ridge, 3 features"]


def test_what_does_not_fit_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    y = np.where(SIGNAL > 0, 1.0, 0.0)
    model = trained(tmp_path, write_csv(tmp_path / "set.csv", y), "logistic")
    other = write_csv(tmp_path / "other.csv", y + 1)
    monkeypatch.setattr(sys, "stderr", sys.stdout)
    np.save(tmp_path / "wide.npy", np.column_stack([X, y]))
    assert predict(model, tmp_path / "wide.npy") == 2
    assert "has 4 features: expected dim = 3" in capsys.readouterr().out
    assert predict(model, write_csv(tmp_path / "less.csv", y, "a,b,C,y")) == 2
    assert "less.csv has no column 'c': the model needs it" in capsys.readouterr().out
    assert predict(model, other, "--label", "y") == 2
    assert "labels beside the model's classes [0.0, 1.0]" in capsys.readouterr().out
    assert predict(other, other) == 2
    assert "expected a name that ends with .json or .npz" in capsys.readouterr().out
