"""A node that never comes back: the others are planned anew, and go on from where they were."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from coordinator.plan import Plan, RunSettings
from dlag_lab.folder import RunFolder
from dlag_lab.replan import replan
from dlag_lab.resuming import settings_of
from dlag_lab.runs import Run, RunRequest
from dlag_node.errors import ConfigError, ProcessDied
from tests.cluster.meshes import DEADLINE, NEVER, command
from tests.cluster.test_survival import Killer, survive

METHOD = "dlag:solver=newton,stop=exact:1e-10"
TARGET = 1e-6
SETTINGS = RunSettings(method=METHOD, topology="ring:6", rounds=3_000)
LOST = 4


def pooled_minimiser(whole: Plan, lost: set[int]) -> np.ndarray:
    """By other means: scipy's BFGS on the pooled samples of the others."""
    left = np.concatenate([part for i, part in enumerate(whole.parts) if i not in lost])
    A, b = whole.dataset.rows.matrix()[left], whole.dataset.labels[left]
    lam = whole.settings.lam

    def f(theta: np.ndarray) -> tuple[float, np.ndarray]:
        margins = b * (A @ theta)
        value = np.logaddexp(0.0, -margins).mean() + lam * theta @ theta
        slope = -b / (1.0 + np.exp(margins)) / len(b)
        return value, A.T @ slope + 2.0 * lam * theta

    found: np.ndarray = minimize(f, np.zeros(A.shape[1]), jac=True, options={"gtol": 1e-10}).x
    return found


def test_the_others_reach_the_optimum_of_what_is_left_sooner_than_from_nothing(
    tmp_path: Path,
) -> None:
    out = tmp_path / "run"
    request = RunRequest(
        settings=SETTINGS, mode="mesh", target=NEVER, out=out, checkpoint=5, restarts=0
    )
    with pytest.raises(ProcessDied, match=r"killed by signal 9, .*dlag replan"):
        survive(request, Killer((150, {LOST})))
    run = json.loads((out / "run.json").read_text(encoding="utf-8"))
    (out / "run.json").write_text(json.dumps(run | {"target": TARGET}), encoding="utf-8")

    with command("dlag", "replan", str(out), "--without", str(LOST)) as planning:
        said, errors = planning.communicate(timeout=2 * DEADLINE)
        assert planning.returncode == 0, errors
    whole = Plan(SETTINGS)
    lost = len(whole.parts[LOST])
    assert f"lost: nodes [{LOST}], and {lost} of 270 samples with them" in said
    assert "left: 5 nodes, ids close up: were [0, 1, 2, 3, 5]" in said
    assert "they begin where they were after round 1" in said
    new = tmp_path / f"run-without-{LOST}"
    assert f"dlag resume {new}" in said

    with command("dlag", "resume", str(new), "--no-figures") as going_on:
        report, errors = going_on.communicate(timeout=3 * DEADLINE)
        assert going_on.returncode == 0, errors
    assert f"{lost} of 270 samples are lost; warm start" in report
    result = RunFolder(new).load()
    assert result.nodes == 5
    thetas = np.array([RunFolder(new).thetas(node, 13)[-1] for node in range(5)])
    theta = pooled_minimiser(whole, {LOST})
    assert np.linalg.norm(thetas.mean(axis=0) - theta) < 1e-2 * np.linalg.norm(theta)

    cold = replace(SETTINGS, without=str(LOST))
    anew = Run(
        RunRequest(settings=cold, mode="simulate", target=TARGET, out=tmp_path / "cold"),
        view=Killer(),
    ).execute()
    assert result.summary["rounds_to_target"] < 0.8 * anew.summary["rounds_to_target"]

    # another one is lost: ids are those of the run that is left
    again = replan(new, "4", tmp_path / "again")
    assert again.formerly == (0, 1, 2, 3)
    assert json.loads((tmp_path / "again" / "run.json").read_text())["without"] == "4,5"


def test_what_cannot_be_planned_anew_is_told(tmp_path: Path) -> None:
    out = tmp_path / "run"
    request = RunRequest(
        settings=replace(SETTINGS, method="dsba", rounds=4, topology="path:4"),
        mode="mesh",
        target=None,
        out=out,
        checkpoint=1,
    )
    Run(request, view=Killer()).execute()
    found = replan(out, "3", tmp_path / "cold")
    assert (found.warm, found.rounds) == (False, 4)
    with pytest.raises(ConfigError, match="falls into 2 parts: 0; 2, 3"):
        replan(out, "1", tmp_path / "parts")
    with pytest.raises(ConfigError, match="without nobody"):
        replan(out, "", tmp_path / "nobody")
    for path in (out / "state" / "node-000").iterdir():
        path.unlink()
    with pytest.raises(ConfigError, match="node-000 holds no place in a run: is that node lost"):
        replan(out, "3", tmp_path / "more")
    assert not (tmp_path / "more").exists()


@pytest.mark.parametrize("treated", [{"scale": "standard"}, {"scale": "minmax", "intercept": 1.0}])
def test_the_others_begin_near_the_optimum_however_samples_are_treated(
    treated: dict[str, Any], tmp_path: Path
) -> None:
    settings = replace(SETTINGS, **treated, topology="ring:4", rounds=60)
    asked = RunRequest(settings=settings, mode="mesh", target=None, out=tmp_path, checkpoint=5)
    Run(replace(asked, out=tmp_path / "run"), view=Killer()).execute()
    found = replan(tmp_path / "run", "3", tmp_path / "less")
    assert found.warm
    smaller = replace(asked, settings=settings_of(tmp_path / "less")[0])
    warm = Run(replace(smaller, out=tmp_path / "less", resume=True), view=Killer()).execute()
    cold = Run(replace(smaller, out=tmp_path / "cold", mode="simulate"), view=Killer()).execute()
    # the dual methods' first theta_i = grad f_i^*(x_i) is the very theta that they begin at, where
    # x_i = grad f_i(theta) - mean: of another f_i it would be far from it
    assert warm.trajectory.suboptimality[0] < 0.2 * cold.trajectory.suboptimality[0]
