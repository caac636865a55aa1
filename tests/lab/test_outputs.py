"""Where nothing can be written: one line with the path and the reason, before any work is done."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from coordinator.cli import run as run_coordinator
from coordinator.plan import RunSettings
from dlag_lab.cli import app
from dlag_lab.runs import Run, RunRequest
from dlag_node.cli import run as run_node
from dlag_node.process import EXIT_USAGE, run_command

NOWHERE = ("/proc/nope", "/dev/null/x", "/proc/deep/er/nope")  # for root, too
ABSENT = ("--data", "/no/such/data")  # whoever begins to work says so, and not what we expect

FOLDERS = {
    "run": ("run", *ABSENT, "--out"),
    "simulate": ("simulate", *ABSENT, "--out"),
    "compare": ("compare", "--methods", "ssda,dlag", *ABSENT, "--out"),
    "referee": ("referee", *ABSENT, "--records", ".", "--out"),
    "prepare": ("prepare", *ABSENT, "--records"),
    "replan": ("replan", "/no/such/run", "--without", "1", "--out"),
    "paper heart": ("paper", "heart", "--out"),
    "paper methods": ("paper", "methods", "--out"),
    "paper covtype": ("paper", "covtype", "--data-dir", "/no/such/data", "--out"),
    "paper covtype-check": ("paper", "covtype-check", "--data-dir", "/no/such/data", "--out"),
    "paper sensitivity": ("paper", "sensitivity", "--out"),
}
FILES = {
    "run --json": ("run", *ABSENT, "--json"),
    "resume --json": ("resume", "/no/such/run", "--json"),
    "simulate --json": ("simulate", *ABSENT, "--json"),
    "compare --json": ("compare", "--methods", "ssda", *ABSENT, "--json"),
    "referee --json": ("referee", *ABSENT, "--records", ".", "--json"),
    "theory --json": ("theory", *ABSENT, "--json"),
    "predict --out": ("predict", "/no/such/model.json", "/no/such/data", "--out"),
    "keys mesh": ("keys", "mesh", "--nodes", "3"),
    "keys token, its list": ("keys", "token"),
}
NODE = ("--coordinator", "tcp://127.0.0.1:1", "--join-timeout", "1")


def refusal(code: int, path: str, capsys: pytest.CaptureFixture[str], *lines: int) -> str:
    """The one line that is said."""
    said = capsys.readouterr()
    assert code == EXIT_USAGE, said.err
    [line] = said.err.splitlines()[-1:] if lines else said.err.splitlines()
    assert path in line
    assert "Traceback" not in said.err
    return line


@pytest.mark.parametrize("path", NOWHERE)
@pytest.mark.parametrize("argv", [*FOLDERS.values(), *FILES.values()], ids=[*FOLDERS, *FILES])
def test_a_path_that_cannot_be_written_is_refused_at_once(
    argv: tuple[str, ...], path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rest = [str(tmp_path / "token")] if argv[:2] == ("keys", "token") else []
    name = path + ".key" if argv[:2] == ("keys", "pair") else path
    code = run_command(app, [*argv, name, *rest], "dlag")
    line = refusal(code, name, capsys)
    assert line.startswith("dlag: cannot ")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("path", NOWHERE)
def test_keys_are_not_made_where_they_could_not_be_listed(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = str(tmp_path / "node.key")
    refusal(run_command(app, ["keys", "pair", pair, "--admit", path], "dlag"), path, capsys)
    refusal(run_command(app, ["keys", "pair", path + ".key"], "dlag"), path, capsys)
    tokens = str(tmp_path / "tokens")
    refusal(run_command(app, ["keys", "token", tokens, path], "dlag"), path, capsys)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("path", NOWHERE)
@pytest.mark.parametrize("flag", ["--out", "--state", "--model"])
def test_a_node_that_could_not_write_does_not_join(
    flag: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path += ".json" if flag == "--model" else ""
    line = refusal(run_node([*NODE, flag, path]), path, capsys, 1)
    assert line.startswith("dlag-node: cannot write ")


@pytest.mark.parametrize("path", NOWHERE)
def test_a_coordinator_that_could_not_strike_off_tokens_does_not_listen(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["--key", str(tmp_path / "a.key"), "--admitted", str(tmp_path / "list")]
    line = refusal(run_coordinator([*argv, "--tokens", path]), path, capsys, 1)
    assert line.startswith("dlag-coordinator: cannot write ")


def test_a_document_is_not_filled_where_a_folder_lies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["paper", "heart", "--out", str(tmp_path / "out"), "--write", str(tmp_path)]
    refusal(run_command(app, argv, "dlag"), str(tmp_path), capsys)


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    settings = RunSettings(method="ssda", topology="path:2", rounds=3)
    out = tmp_path / "run"
    Run(RunRequest(settings=settings, mode="simulate", target=None, out=out)).execute()
    return out


def test_what_is_in_the_way_of_a_report_is_named(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run_folder / "figures").write_text("in the way", encoding="ascii")
    capsys.readouterr()
    code = run_command(app, ["report", str(run_folder)], "dlag")
    refusal(code, str(run_folder / "figures"), capsys)


def test_a_result_goes_into_a_device_and_does_not_replace_it(
    run_folder: Path, tmp_path: Path
) -> None:
    link = tmp_path / "null"
    link.symlink_to("/dev/null")
    assert run_command(app, ["theory", "--topology", "path:2", "--json", str(link)], "dlag") == 0
    assert link.is_symlink()
    shutil.rmtree(run_folder)


def test_folders_on_the_way_are_made(run_folder: Path, tmp_path: Path) -> None:
    model = run_folder / "nodes" / "node-000.model.json"
    heart = Path(__file__).parents[2] / "coordinator" / "bundled" / "heart_scale"
    out = tmp_path / "a" / "b" / "predictions.csv"
    assert run_command(app, ["predict", str(model), str(heart), "--out", str(out)], "dlag") == 0
    assert len(out.read_text(encoding="ascii").splitlines()) == 271
    found = tmp_path / "c" / "theory.json"
    assert run_command(app, ["theory", "--topology", "path:2", "--json", str(found)], "dlag") == 0
    assert json.loads(found.read_text(encoding="utf-8"))["nodes"] == 2
