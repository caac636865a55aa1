"""covtype's claims both ways, its subsample, and when two runs agree."""

from __future__ import annotations

import bz2
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dlag_lab.compare_table import Row
from dlag_lab.folder import RunFolder
from dlag_lab.paper.claims import Status
from dlag_lab.paper.covtype import (
    ADFS,
    DLAG,
    MDLAG,
    agreement,
    covtype,
    gradients_as_stated,
    pairs,
    subsample,
)
from dlag_lab.paper.experiments_cli import covtype_data
from dlag_lab.result import RunResult
from dlag_node.errors import ConfigError
from tests.lab.synthetic import asked, write_run


def row(method: tuple[str, str], *, messages: int, gradients: int) -> Row:
    return Row(
        method[1],
        0,
        "reached",
        rounds_to_target=10,
        deltas_to_target=messages,
        gradients_to_target=gradients,
    )


def statuses(adfs: tuple[int, int]) -> list[Status]:
    rows = [row(method, messages=100, gradients=1_000) for method in (DLAG, MDLAG)]
    rows.append(row(ADFS, messages=adfs[0], gradients=adfs[1]))
    return [verdict.status for verdict in covtype(50).judge(rows)]


def test_each_claim_can_come_out_both_ways() -> None:
    holds, fails = Status.HOLDS, Status.FAILS
    assert statuses((101, 999)) == [holds] * 5
    # 10 rounds of 300 epochs on 50 samples are 150,000 gradients
    assert statuses((100, 149_999)) == [fails, holds, holds, fails, fails]
    assert statuses((99, 150_001)) == [fails] * 5


def test_methods_with_the_same_parameters_are_told_apart() -> None:
    rows = [
        row(DLAG, messages=100, gradients=1),
        row(MDLAG, messages=300, gradients=1),
        row(ADFS, messages=120, gradients=1),
    ]
    verdict = covtype(50).judge(rows)[0]
    assert verdict.status is Status.PART
    assert verdict.why.startswith("for DLAG-1e-5,50, but not for MDLAG-1e-5,50 ")
    assert verdict.measured == "ADFS's as a multiple: DLAG-1e-5,50: x 1.2; MDLAG-1e-5,50: x 0.4"


def test_gradients_are_counted_as_300_epochs(dlag: RunResult) -> None:
    run = {**dlag.run, "n0": 50}
    stated = gradients_as_stated(replace(dlag, run=run))
    assert stated[:2].tolist() == [15_000, 30_000]
    assert len(stated) == dlag.rounds
    adfs = gradients_as_stated(replace(dlag, run={**run, "method": "adfs:edges=180"}))
    assert adfs[-1] == dlag.records.gradients.sum()


def test_a_subsample_is_some_of_the_lines_in_order(tmp_path: Path) -> None:
    source, target = tmp_path / "all.bz2", tmp_path / "made" / "some"
    lines = [b"%d 1:%d\n" % (j % 2, j) for j in range(100)]
    source.write_bytes(bz2.compress(b"".join(lines)))
    subsample(source, 10, target)
    kept = target.read_bytes().splitlines(keepends=True)
    assert len(kept) == 10
    assert [line for line in lines if line in kept] == kept
    with pytest.raises(ConfigError, match="rows = 101: expected 1 to 100"):
        subsample(source, 101, tmp_path / "none")


def test_a_missing_set_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no covtype.* from LIBSVM's .*--data-dir or DLAG_DATA"):
        covtype_data(str(tmp_path), None, tmp_path)


def test_two_runs_agree_or_do_not(tmp_path: Path) -> None:
    own = write_run(tmp_path / "own", asked(dim=13), rounds=20)
    same = write_run(tmp_path / "same", asked(dim=13), rounds=30)
    other = write_run(tmp_path / "other", asked(dim=13), rounds=20, sends=lambda _, k: k != 7)
    found = agreement(own.load(), same.load())
    assert (found.rounds, found.same_decisions, found.theta) == (20, True, 0.0)
    assert found.skips == own.load().records.skipped.sum()
    assert "the same decisions" in str(found)
    assert not agreement(own.load(), other.load()).same_decisions
    shift(same, 0.25)
    assert agreement(own.load(), same.load()).theta == 0.25


def shift(folder: RunFolder, by: float) -> None:
    path = folder.theta_path(3)
    path.write_bytes((np.frombuffer(path.read_bytes()) + by).tobytes())


def test_the_papers_solver_and_ours_differ_in_nothing_else() -> None:
    for own, ours in pairs():
        assert own != ours
        assert own.replace("solver=agd,stop=epochs:300", "solver=chord,stop=exact:1e-14") == ours
