"""Several methods on one problem: what is run, what is kept, what is said."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from coordinator.plan import RunSettings
from dlag_lab import figures
from dlag_lab.cli import app
from dlag_lab.compare import Outcome, base_of, labels, meanings, slug, split_methods
from dlag_lab.compare_table import markdown, row_of
from dlag_lab.figures.bands import cost_at
from dlag_lab.folder import RunFolder
from dlag_lab.runs import Run, RunRequest
from dlag_lab.summary import summarise
from dlag_node.errors import ConfigError
from tests.lab.synthetic import asked, write_run
from tests.lab.test_figures import png_size, texts

ROOT = Path(__file__).parents[2]
DEADLINE = 60.0  # seconds
NEWTON = "solver=newton,stop=exact:1e-9"
SSDA, DLAG = f"ssda:{NEWTON}", f"dlag:D=10,{NEWTON}"
DIVERGES = f"dlag:eta_beta=60,{NEWTON}"
SMALL = ["--topology", "ring:4", "--target", "1e-3"]


pytestmark = pytest.mark.usefixtures("process_as_before")


def compare(out: Path, methods: str, *flags: str) -> Result:
    argv = ["compare", "--methods", methods, *SMALL, "--out", str(out), *flags]
    if "--figures" not in flags:
        argv.append("--no-figures")
    return CliRunner().invoke(app, argv, env={"COLUMNS": "100"}, catch_exceptions=False)


def rows_of(out: Path) -> list[dict[str, str]]:
    with (out / "compare.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def times_of(out: Path) -> dict[Path, int]:
    """When each file of each run was last written."""
    return {path: path.stat().st_mtime_ns for path in out.glob("*/seed-*/**/*") if path.is_file()}


class TestSplitting:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("ssda", ["ssda"]),
            ("ssda,dlag", ["ssda", "dlag"]),
            ("dlag:gamma=1e-5,D=20,ssda", ["dlag:gamma=1e-5,D=20", "ssda"]),
            ("ssda,dlag:gamma=1e-5,D=20", ["ssda", "dlag:gamma=1e-5,D=20"]),
            ("dlag:D=20,dlag:D=30,msda", ["dlag:D=20", "dlag:D=30", "msda"]),
            ("dlag:stop=exact:1e-9,D=5,mdlag:K=2", ["dlag:stop=exact:1e-9,D=5", "mdlag:K=2"]),
            ("dlag:D=20;ssda", ["dlag:D=20", "ssda"]),
            (" ssda , dlag:D=20 ; msda", ["ssda", "dlag:D=20", "msda"]),
        ],
    )
    def test_a_comma_before_a_methods_name_separates(self, text: str, expected: list[str]) -> None:
        assert split_methods(text) == tuple(expected)

    @pytest.mark.parametrize(
        ("text", "named"),
        [
            ("", "''"),
            ("ssda,", "''"),
            ("ssda,,dlag", "''"),
            ("ssda;;dlag", "''"),
            ("ssda,nonsense", "'nonsense'"),
            ("nonsense:D=2,ssda", "'nonsense'"),
            ("dlag:D=2,nonsense", "'nonsense'"),
            ("ssdax,dlag", "'ssdax'"),
            ("dlag:", "'dlag:'"),
            ("dlag:D=2,D=3", "D is given twice"),
            ("ssda,dlag,ssda", "'ssda' is given twice"),
        ],
    )
    def test_what_is_no_method_is_named(self, text: str, named: str) -> None:
        with pytest.raises(ConfigError, match=named):
            split_methods(text)

    def test_a_slug_is_a_plain_folder_name(self) -> None:
        assert slug("dlag:gamma=1e-5,D=20") == "dlag-gamma=1e-5-D=20"
        long = [slug(f"dlag:stop=exact:{'1' * 200}{digit}") for digit in "12"]
        assert len(set(long)) == 2
        assert max(map(len, long)) < 120

    def test_labels_say_what_sets_methods_apart(self) -> None:
        methods = ("ssda:solver=agd", "dlag:solver=agd,D=5", "dlag:solver=agd", "dlag:solver=svrg")
        assert list(labels(methods).values()) == [
            "ssda", "dlag:solver=agd,D=5", "dlag:solver=agd", "dlag:solver=svrg",
        ]  # fmt: skip
        assert list(labels(methods[:3]).values()) == ["ssda", "dlag:D=5", "dlag"]
        assert meanings(labels(methods[:2])) == [
            "ssda: ssda:solver=agd",
            "dlag: dlag:solver=agd,D=5",
        ]
        assert list(labels((DLAG, f"dlag:gamma=1e-5,c=1e-5,D=20,{NEWTON}")).values()) == [
            "dlag:D=10", "dlag #2",
        ]  # fmt: skip

    def test_the_base_has_a_name_or_is_the_first(self) -> None:
        methods = ("ssda:solver=agd", "dlag")
        assert base_of(methods, None) == base_of(methods, "ssda") == methods[0]
        assert base_of(methods, "dlag") == "dlag"
        with pytest.raises(ConfigError, match="expected one of ssda, dlag"):
            base_of(methods, "msda")


def test_the_rows_hold_the_very_numbers_of_single_runs(tmp_path: Path) -> None:
    out = tmp_path / "compare"
    result = compare(out, f"{SSDA},{DLAG}", "--seeds", "2", "--seed", "3")
    assert result.exit_code == 0
    rows = rows_of(out)
    assert [(row["method"], row["seed"]) for row in rows] == [
        (SSDA, "3"), (SSDA, "4"), (DLAG, "3"), (DLAG, "4"),
    ]  # fmt: skip
    for row in rows:
        settings = RunSettings(method=row["method"], topology="ring:4", seed=int(row["seed"]))
        alone = tmp_path / "alone" / slug(row["method"]) / row["seed"]
        request = RunRequest(settings=settings, mode="simulate", target=1e-3, out=alone)
        single = Run(request).execute().summary
        assert row["status"] == "reached"
        for name in (
            "rounds", "exchanges", "deltas_sent", "deltas_skipped", "bytes_payload", "bytes_frames",
            "bytes_sent", "sample_gradients", "suboptimality", "consensus_error", "theta_sha256",
            "rounds_to_target", "deltas_to_target", "gradients_to_target", "bytes_to_target",
        ):  # fmt: skip
            assert row[name] == str(single[name]), name
        assert int(row["floats_sent"]) == 13 * single["deltas_sent"]
        assert int(row["payload_to_target"]) == 104 * single["deltas_to_target"]
        both = int(row["deltas_to_target"]) + int(row["tokens_to_target"])
        assert both == 8 * single["rounds_to_target"]
        assert float(row["seconds"]) > 0
        assert row["seconds_to_target"] == ""  # one process had the work of all
        # gamma = 1e-4 promises nothing here: the bound is that of always sending
        assert row["bound_to_target"] == ("" if row["method"] == SSDA else str(float(both)))
    table = (out / "table.md").read_text(encoding="utf-8")
    assert "median of seeds 3..4; ratios to ssda" in table
    assert "| by Theorem 3 |" in table
    assert "median of seeds 3..4" in result.output
    assert "\x1b" not in result.output


def counted(folder: Path, method: str, *, packets: int, wire_bytes: int) -> Outcome:
    """A made-up run to the target, of which the kernel counted so much."""
    made = write_run(folder, asked(method=method), quiet=lambda *_: method == "dlag")
    result = made.load()
    wire = {"packets": packets, "bytes": wire_bytes, "counted_by": "interfaces"}
    made.write_summary(
        summarise(result.run, result.records, result.trajectory, seconds=1.0, wire=wire)
    )
    return Outcome(method, 1, folder, made.load())


def test_packets_and_wire_bytes_stand_before_the_ledgers(tmp_path: Path) -> None:
    outcomes = [
        counted(tmp_path / "ssda", "ssda", packets=40_000, wire_bytes=9_000_000),
        counted(tmp_path / "dlag", "dlag", packets=20, wire_bytes=4_500_000),
    ]
    rows = [row_of(outcome) for outcome in outcomes]
    assert (rows[1].packets, rows[1].bytes_wire) == (20, 4_500_000)
    assert (rows[0].tokens_sent, rows[0].quiet) == (7_150, 0)
    assert (rows[1].tokens_sent, rows[1].quiet) == (0, 7_150)
    assert rows[1].tokens_to_target == 0
    assert rows[1].quiet_to_target == 253 * 48 - 6_138
    called = labels(("ssda", "dlag"))
    table = markdown(rows, "ssda", called, "Cost")
    head = table.splitlines()[2].split(" | ")
    where = head.index("packets")
    assert head[where : where + 4] == ["packets", "wire bytes", "payload bytes", "frame bytes"]
    line = next(each for each in table.splitlines() if each.startswith("| dlag"))
    assert "20<br>x 0.0005 | 4 500 000<br>x 0.5 |" in line
    assert "what the kernel counted in the whole run" in table

    figure = figures.costs(rows, called, base="ssda", lines=["Cost"])
    assert figure is not None
    _, svg = figures.save(figure, tmp_path, "costs")
    said = texts(svg)
    for words in ("Packets on the wire", "Bytes on the wire", "x 0.0005", "4.5 MB", "x 0.5"):
        assert words in said, words
    assert "dlag sends the fewest packets: 0.0005 of those of ssda" in said


def test_what_nobody_counted_has_no_column_and_says_so(tmp_path: Path) -> None:
    for method in ("ssda", "dlag"):
        folder = write_run(tmp_path / method, asked(method=method, mode="simulate"))
        result = folder.load()
        folder.write_summary(summarise(result.run, result.records, result.trajectory))
    rows = [
        row_of(Outcome(method, 1, tmp_path / method, RunFolder(tmp_path / method).load()))
        for method in ("ssda", "dlag")
    ]
    called = labels(("ssda", "dlag"))
    table = markdown(rows, "ssda", called, "Cost")
    assert "packets" not in table
    assert "frame bytes are the ledger's; nobody counted on the wire" in table
    figure = figures.costs(rows, called, base="ssda", lines=["Cost"])
    assert figure is not None
    said = texts(figures.save(figure, tmp_path, "costs")[1])
    assert "Messages (deltas over directed edges)" in said
    assert "on the wire" not in said.lower()


def test_a_second_call_runs_nothing_and_says_the_same(tmp_path: Path) -> None:
    methods = f"{SSDA},{DLAG},{DIVERGES}"
    first = compare(tmp_path, methods)
    before, csv_before = times_of(tmp_path), (tmp_path / "compare.csv").read_bytes()
    second = compare(tmp_path, methods)
    assert first.exit_code == second.exit_code == 0
    assert times_of(tmp_path) == before
    assert (tmp_path / "compare.csv").read_bytes() == csv_before
    assert "3 runs of 3 finished earlier and kept" in second.output
    assert compare(tmp_path, methods, "--force").exit_code == 0
    after = times_of(tmp_path)
    assert after.keys() == before.keys()
    assert all(after[path] > before[path] for path in before)


def test_what_is_unfinished_or_of_other_settings_is_run_again(tmp_path: Path) -> None:
    methods = f"{SSDA},{DLAG}"
    compare(tmp_path, methods)
    before = times_of(tmp_path)
    dlag = RunFolder(tmp_path / slug(DLAG) / "seed-0")
    dlag.summary_path.unlink()
    compare(tmp_path, methods)
    changed = {path for path, time in times_of(tmp_path).items() if time != before[path]}
    assert {path.relative_to(tmp_path).parts[0] for path in changed} == {slug(DLAG)}
    assert dlag.summary_path.exists()

    run = json.loads(dlag.run_path.read_text())
    dlag.run_path.write_text(json.dumps({**run, "code_sha256": "other"}))  # another version's
    compare(tmp_path, methods)
    assert json.loads(dlag.run_path.read_text()) == run

    compare(tmp_path, methods, "--lambda", "0.02")
    assert json.loads(dlag.run_path.read_text())["lam"] == 0.02


def test_a_folder_that_is_no_run_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / slug(DLAG) / "seed-0" / "thesis.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(ConfigError, match=r"holds no run\.json"):
        compare(tmp_path, DLAG, "--force")
    assert mine.read_text() == "mine"


def test_a_method_that_fails_is_a_row_and_not_the_end(tmp_path: Path) -> None:
    result = compare(tmp_path, f"{DIVERGES},{SSDA};{DLAG}", "--base", SSDA)
    assert result.exit_code == 0
    failed, ssda, dlag = rows_of(tmp_path)
    assert (failed["status"], failed["rounds_to_target"]) == ("failed", "")
    assert failed["failure"].startswith("ConvergenceError: the run diverges")
    assert ssda["status"] == dlag["status"] == "reached"
    assert f"{DIVERGES}, seed 0 failed: ConvergenceError" in result.output


def test_a_target_out_of_reach_is_a_row_with_how_far_it_came(tmp_path: Path) -> None:
    result = compare(tmp_path, f"{SSDA},{DLAG}", "--rounds", "12")
    (row, _) = rows_of(tmp_path)
    assert (row["status"], row["rounds"], row["deltas_to_target"]) == ("not reached", "12", "")
    assert f"{SSDA}, seed 0 did not reach the target" in result.output
    assert result.exit_code == 3  # since nobody did


def test_every_method_is_checked_before_the_first_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="gamma"):
        compare(tmp_path / "out", f"{SSDA},dlag:gamma=7")
    assert not (tmp_path / "out").exists()


def test_the_figures_of_several_seeds_and_of_one(tmp_path: Path) -> None:
    for seeds in (1, 2):
        out = tmp_path / str(seeds)
        flags = ("--figures", "--seeds", str(seeds), "--base", SSDA)
        result = compare(out, f"{SSDA},{DLAG},{DIVERGES}", *flags)
        assert result.exit_code == 0
        for name, words in (
            ("convergence", "with the fewest messages"),
            ("costs", "by Theorem 3 for the rounds measured"),
        ):
            assert words in texts(out / "figures" / f"{name}.svg")
            width, height = png_size(out / "figures" / f"{name}.png")
            assert 900 < width < 2000
            assert 400 < height < 2000


def test_the_cost_of_a_level_is_that_of_the_first_time_there() -> None:
    gap = np.array([1.0, 0.1, 0.5, 0.01, -1e-18])
    cost = np.array([10, 20, 30, 40, 50])
    levels = np.array([2.0, 1.0, 10**-0.5, 0.1, 10**-1.5, 0.01, 0.001])
    found = cost_at(levels, cost, gap)
    np.testing.assert_allclose(found, [10, 10, 15, 20, 30, 40, np.nan])


@pytest.mark.parametrize("command", ["compare", "theory"])
def test_help_has_the_flags_of_a_run(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "120"}).output
    flags = {word for line in shown.splitlines() for word in line.split()[:1] if word[:2] == "--"}
    shared = {"--preset", "--topology", "--weights", "--problem", "--lambda", "--data", "--shards"}
    own = {"compare": {"--methods", "--seeds", "--mode", "--base"}, "theory": {"--method"}}
    assert flags >= shared | own[command] | {"--seed", "--rounds", "--target", "--json"}
    assert ("--method" in flags) == (command == "theory")


def heed_interruptions() -> None:
    """A shell has its background jobs ignore them, and all that these start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def process(*argv: str) -> Iterator[subprocess.Popen[str]]:
    """`dlag` from this tree, ended at the latest with the test."""
    main = "from dlag_lab.cli import main; main()"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = subprocess.Popen(
        [sys.executable, "-c", main, *argv],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=ROOT,
        preexec_fn=heed_interruptions,
    )  # fmt: skip
    try:
        yield started
    finally:
        if started.poll() is None:
            started.kill()
        started.communicate()


def test_an_interruption_leaves_what_is_finished(tmp_path: Path) -> None:
    endless = f"dlag:eta_beta=1e-9,{NEWTON}"  # hardly moves
    finished = RunFolder(tmp_path / slug(SSDA) / "seed-0")
    under_way = RunFolder(tmp_path / slug(endless) / "seed-0")
    argv = ["compare", "--methods", f"{SSDA},{endless}", *SMALL, "--rounds", "1000000"]
    argv += ["--out", str(tmp_path), "--no-figures", "--log-level", "info"]
    with process(*argv) as running:
        assert running.stderr is not None
        assert any(str(under_way.path) in line for line in running.stderr)
        running.send_signal(signal.SIGINT)
        out, errors = running.communicate(timeout=DEADLINE)
    assert running.returncode == 130, errors
    assert out == ""
    assert f"1 of 2 runs finished and kept in {tmp_path}" in errors
    assert "goes on from there" in errors
    assert not under_way.summary_path.exists()

    written = finished.summary_path.stat().st_mtime_ns
    result = compare(tmp_path, f"{SSDA},{DLAG}", "--rounds", "1000000")
    assert "1 run of 2 finished earlier and kept" in result.output
    assert finished.summary_path.stat().st_mtime_ns == written
