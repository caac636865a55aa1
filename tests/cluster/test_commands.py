"""The commands as people type them: results, flags, variables, help."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.cluster.meshes import command, in_this_process

PROMISED = {
    "method", "nodes", "edges", "rounds", "exchanges", "deltas_sent", "deltas_skipped",
    "bytes_payload", "bytes_sent", "sample_gradients", "suboptimality", "consensus_error",
    "rounds_to_target", "deltas_to_target", "gradients_to_target", "seconds", "theta_sha256",
}  # fmt: skip
SMALL = ["--topology", "ring:4", "--method", "dlag:solver=newton,stop=exact:1e-9,D=10"]


def run(*argv: str, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    with command(argv[0], *argv[1:], env={**os.environ, **(env or {})}) as process:
        out, err = process.communicate(timeout=90)
        return process.returncode, out, err


def test_the_result_as_json_is_exact_and_complete(tmp_path: Path) -> None:
    out, result = tmp_path / "run", tmp_path / "result.json"
    flags = ["--target", "1e-3", "--no-figures", "--out", str(out), "--json", str(result)]
    code, _, errors = run("dlag", "run", *SMALL, *flags)
    assert code == 0, errors
    summary = json.loads(result.read_text(encoding="utf-8"))
    assert summary.keys() >= PROMISED
    assert (summary["nodes"], summary["edges"]) == (4, 4)
    assert summary["rounds"] == summary["exchanges"] >= summary["rounds_to_target"] > 1
    # every exchange each directed edge carried a delta or a skip
    assert summary["deltas_sent"] + summary["deltas_skipped"] == 8 * summary["exchanges"]
    assert summary["bytes_payload"] == 104 * summary["deltas_sent"]
    assert summary["bytes_sent"] == summary["bytes_frames"] + summary["bytes_control"]
    assert summary["suboptimality"] <= 1e-3
    digest = hashlib.sha256()
    for node in range(4):
        digest.update((out / "nodes" / f"node-{node:03d}.theta").read_bytes()[-104:])
    assert summary["theta_sha256"] == digest.hexdigest()


def test_a_comparison_on_the_mesh_counts_as_the_simulator_does_and_has_seconds(
    tmp_path: Path,
) -> None:
    methods = "admm;lazy-admm"
    flags = ["--topology", "ring:4", "--methods", methods, "--target", "1e-3", "--no-figures"]
    rows = {}
    for mode in ("mesh", "simulate"):
        out = tmp_path / mode
        code, _, errors = run("dlag", "compare", *flags, "--mode", mode, "--out", str(out))
        assert code == 0, errors
        with (out / "compare.csv").open(encoding="utf-8", newline="") as file:
            rows[mode] = list(csv.DictReader(file))
        assert ("| seconds |" in (out / "table.md").read_text(encoding="utf-8")) == (mode == "mesh")
    for real, simulated in zip(rows["mesh"], rows["simulate"], strict=True):
        for name in ("method", "rounds_to_target", "deltas_to_target", "theta_sha256"):
            assert real[name] == simulated[name], name
        assert 0 < float(real["seconds_to_target"]) <= float(real["seconds"])
        assert simulated["seconds_to_target"] == ""


def test_the_report_comes_again_from_the_folder_alone(tmp_path: Path) -> None:
    first, moved = tmp_path / "first", tmp_path / "elsewhere" / "moved"
    code, shown, errors = run("dlag", "simulate", *SMALL, "--rounds", "30", "--out", str(first))
    assert code == 0, errors
    report = (first / "report.txt").read_text(encoding="utf-8")
    assert "messages skipped" in report
    assert "messages skipped" in shown
    shutil.copytree(first, moved)
    shutil.rmtree(moved / "figures")
    (moved / "report.txt").unlink()
    shutil.rmtree(first)
    code, again, errors = run("dlag", "report", str(moved))
    assert code == 0, errors
    assert (moved / "report.txt").read_text(encoding="utf-8") == report.replace(
        str(first), str(moved)
    )
    names = {path.name for path in (moved / "figures").iterdir()}
    for name in ("convergence", "mesh", "raster"):
        assert {f"{name}.png", f"{name}.svg"} <= names
    assert re.sub(r"\s+", " ", again) == re.sub(r"\s+", " ", shown).replace(str(first), str(moved))


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    code, _, errors = run("dlag", "report", str(tmp_path))
    assert code == 2
    assert str(tmp_path) in errors


def test_variables_stand_in_for_flags_and_flags_win(tmp_path: Path) -> None:
    env = {"DLAG_ROUNDS": "7", "DLAG_TOPOLOGY": "ring:5", "DLAG_OUT": str(tmp_path / "run")}
    code, _, errors = run("dlag", "simulate", "--topology", "ring:4", "--no-figures", env=env)
    assert code == 0, errors
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    assert (summary["rounds"], summary["nodes"]) == (7, 4)


def test_a_nodes_variables_do_not_reach_the_mesh_of_dlag_run(tmp_path: Path) -> None:
    env = {"DLAG_BIND": "tcp://127.0.0.1:1", "DLAG_ADVERTISE": "tcp://127.0.0.1:1", "DLAG_ID": "3"}
    flags = ["--rounds", "5", "--no-figures", "--out", str(tmp_path / "run")]
    code, _, errors = run("dlag", "run", *SMALL, *flags, env=env)
    assert code == 0, errors


def test_an_existing_run_is_kept_unless_forced(tmp_path: Path) -> None:
    flags = ["--rounds", "3", "--no-figures", "--out", str(tmp_path / "run")]
    assert run("dlag", "simulate", *SMALL, *flags)[0] == 0
    code, _, errors = run("dlag", "simulate", *SMALL, *flags)
    assert code == 2
    assert "--force" in errors
    assert run("dlag", "simulate", *SMALL, *flags, "--force")[0] == 0


@pytest.mark.parametrize(
    "argv",
    [
        ("dlag", "run"),
        ("dlag", "simulate"),
        ("dlag", "compare"),
        ("dlag", "theory"),
        ("dlag-coordinator",),
        ("dlag-node",),
    ],
)
def test_help_explains_every_flag(
    argv: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert in_this_process(*argv, "--help") == 0
    out = capfd.readouterr().out
    flags = re.findall(
        r"^  (--[a-z-]+)(?: <[^>]*>)?(?:, --[a-z-]+)? *(.*)\n?( {20,}\S.*)?", out, re.M
    )
    assert len(flags) >= 9
    for flag, first, following in flags:
        assert re.search("[a-z]{3}", first + following), f"{flag} is not explained"
    assert "--lifeline" not in out
    assert "--announce" not in out


def test_a_quiet_run_says_nothing_while_it_runs(tmp_path: Path) -> None:
    flags = ["--rounds", "5", "--no-figures", "--out", str(tmp_path / "run")]
    code, out, errors = run("dlag", "run", *SMALL, *flags)
    assert code == 0
    assert errors == ""
    assert "\x1b" not in out
