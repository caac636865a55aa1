"""`dlag paper`: an experiment through the command line, small, kept, and written down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from dlag_lab.cli import app
from dlag_lab.compare import slug
from dlag_lab.document import markers
from dlag_lab.paper.heart import HEART
from dlag_node.errors import ConfigError
from tests.lab.test_compare import rows_of, times_of
from tests.lab.test_figures import png_size, texts

pytestmark = pytest.mark.usefixtures("process_as_before")


def paper(*argv: str) -> Result:
    flags = {"COLUMNS": "100"}
    return CliRunner().invoke(app, ["paper", *argv], env=flags, catch_exceptions=False)


def test_heart_small_then_again_from_what_is_kept(tmp_path: Path) -> None:
    page, out = tmp_path / "page.md", tmp_path / "out"
    begin, end = markers("dlag paper heart")
    page.write_text(f"before\n{begin}\n{end}\nafter\n")
    argv = ["heart", "--seeds", "1", "--target", "0.3", "--rounds", "10"]
    argv += ["--out", str(out), "--write", str(page)]
    first = paper(*argv)
    assert first.exit_code == 0, first.output
    assert "DLAG is robust to the choice of its parameters: " in first.output

    rows = rows_of(out)
    assert [row["method"] for row in rows] == list(HEART.methods)
    assert {row["status"] for row in rows} == {"reached"}
    for figure, words in (
        ("figure-1-iterations", "iterations"),
        ("figure-2-communication", "messages"),
        ("figure-3-gradients", "sample gradients"),
    ):
        assert words in texts(out / "figures" / f"{figure}.svg")
        assert png_size(out / "figures" / f"{figure}.png")[0] > 900
    claims = json.loads((out / "claims.json").read_text())["claims"]
    assert len(claims) == 8
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "Made by `dlag paper heart --seeds 1 --target 0.3 --rounds 10`." in text
    for claim in claims:
        assert f"| {claim['claim']} | {claim['measured']} | **{claim['status']}** |" in text
    assert (out / "claims.md").read_text().strip() in text
    assert "| MDLAG-1e-6,50 |" in text

    before = times_of(out)
    (out / slug("msda") / "seed-0" / "summary.json").unlink()  # as if interrupted there
    page.write_text(f"{begin}\n{end}\n")
    again = paper(*argv, "--no-figures")
    assert "12 runs of 13 finished earlier and kept" in again.output
    changed = {path for path, time in times_of(out).items() if before[path] != time}
    assert {path.relative_to(out).parts[0] for path in changed} == {"msda"}
    assert page.read_text() == text[len("before\n") : -len("after\n")]


def test_a_document_without_markers_is_refused_before_the_first_run(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing")
    with pytest.raises(ConfigError, match="dlag paper heart: begin"):
        paper("heart", "--out", str(tmp_path / "out"), "--write", str(page))
    assert not (tmp_path / "out").exists()
