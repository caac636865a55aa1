"""The report says the numbers that the records hold."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from dlag_lab import units
from dlag_lab.folder import RunFolder
from dlag_lab.report import print_report, render, write_report
from dlag_lab.result import RunResult
from dlag_lab.summary import summarise
from tests.lab.synthetic import HEADER, PAYLOAD, asked, write_run


def line_of(text: str, start: str) -> str:
    (line,) = (each for each in text.splitlines() if each.strip().startswith(start))
    return line


def test_the_report_holds_the_exact_counts(dlag: RunResult) -> None:
    text = render(dlag)
    # degrees 10 + 14 + 14 + 10, telling every 1, 2, 3 and 4 rounds
    sent, skipped = 10 * 300 + 14 * 150 + 14 * 100 + 10 * 75, 7_150
    assert "dlag on grid:4x4: 16 workers, 24 edges" in text
    assert line_of(text, "rounds").split()[-2:] == ["300", "253"]
    assert units.count(sent) in line_of(text, "messages sent")
    assert line_of(text, "messages sent").endswith(" 6 138")
    assert units.count(skipped) in line_of(text, "messages skipped")
    assert line_of(text, "share skipped").split()[2:] == ["50", "%", "49", "%"]
    assert "4 321" in line_of(text, "control bytes")
    assert units.count(sent * PAYLOAD) in text
    assert units.count(300 * 16 * 60) in line_of(text, "sample gradients")
    assert "nodes were ready after 1.25 s, for 0.5 s of CPU time" in text
    assert "resident memory of a node: 71.5 MB on average, 80 MB at most" in text
    assert "ab" * 32 in text
    assert str(dlag.path) in text


def test_always_sending_is_priced_by_the_frame(dlag: RunResult) -> None:
    text = render(dlag)
    saved = text[text.index("What silence saved") :]
    assert units.count(14_400) in line_of(saved, "deltas")
    assert units.count(14_400 * PAYLOAD) in line_of(saved, "payload bytes")
    assert units.count(14_400 * (PAYLOAD + HEADER)) in line_of(saved, "frame bytes, by the ledger")
    assert "A token saves a payload, not a packet" in text
    assert "Quiet was promised" not in text


def test_the_report_leads_with_what_the_kernel_counted(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", quiet=lambda *_: True)
    result = folder.load()
    wire = {"packets": 23_480, "bytes": 4_968_000, "counted_by": "interfaces"}
    folder.write_summary(summarise(result.run, result.records, result.trajectory, wire=wire))
    text = render(folder.load())
    head = "what the kernel counted: 23 480 packets, 4 968 000 bytes (interfaces)"
    assert text.splitlines()[1] == head
    assert line_of(text, "packets on the wire").split()[-2:] == ["23", "480"]
    saved = text[text.index("What silence saved") :]
    assert line_of(saved, "quiet").split()[1:3] == ["7", "150"]
    assert line_of(saved, "tokens").split()[1] == "0"
    assert line_of(saved, "bytes on the wire").split()[-3:] == ["4", "968", "000"]
    assert "A token saves" not in text
    assert "Quiet was promised or scheduled: nothing crosses the edge." in text


def test_an_older_run_has_its_wire_under_another_name(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", rounds=9)
    result = folder.load()
    network = {"packets": 12, "bytes": 3_456, "by": "kernel"}
    folder.write_summary(summarise(result.run, result.records, result.trajectory, network=network))
    assert "what the kernel counted: 12 packets, 3 456 bytes" in render(folder.load())


def test_what_nobody_counted_is_said_to_be_so(mdlag: RunResult) -> None:
    text = render(mdlag)
    assert "what the kernel counted" not in text
    totals, saved = text.split("What silence saved")
    for part in (totals, saved):
        assert line_of(part, "bytes on the wire").split()[-2:] == ["not", "counted"]


def test_overdue_and_slack_are_told_with_what_they_mean(tmp_path: Path) -> None:
    text = render(
        write_run(
            tmp_path / "run",
            quiet=lambda *_: True,
            condition=lambda *_: (1.0, 8.0),
            overdue=lambda i, k: i == 1 and k == 3,
        ).load()
    )
    # silent: 4 workers each in 150, 200 and 225 of 300 rounds
    assert line_of(text, "silent exchanges overdue").split()[3:] == ["1", "(0.043", "%)"]
    assert line_of(text, "slack ratio   ").split()[2:] == ["0.125"]
    assert "while it is at most 1 the run is one that the paper's theorem is about" in text


def test_promises_that_were_all_kept_are_told_too(tmp_path: Path) -> None:
    run = asked(method="lazy-admm", parameters={"tau": 0.8, "promise": 2})
    text = render(write_run(tmp_path / "run", run, rounds=9).load())
    assert line_of(text, "silent exchanges overdue").split()[3:] == ["0", "(0", "%)"]
    assert "slack ratio" not in text


def test_the_most_talkative_come_first_and_the_least_last(dlag: RunResult) -> None:
    text = render(dlag)
    table = text[text.index("Who spoke most") : text.index("Where the time went")].splitlines()
    workers = [int(line.split()[0]) for line in table if line.strip()[:1].isdigit()]
    assert workers == [0, 4, 8, 12, 1, 14, 3, 7, 11, 15]


def test_a_run_that_skips_nothing_and_misses_its_target_is_told_shortly(tmp_path: Path) -> None:
    run = asked(method="ssda", target=1e-30)
    text = render(write_run(tmp_path / "run", run, rounds=20, sends=lambda *_: True).load())
    assert "to 1e-30 (not reached)" in text
    assert "What silence saved" not in text
    assert "overdue" not in text
    assert "The processes" not in text


def test_a_run_without_a_target_has_one_column(tmp_path: Path) -> None:
    text = render(write_run(tmp_path / "run", asked(target=None), rounds=20).load())
    assert line_of(text, "rounds").split() == ["rounds", "20"]


def test_lines_hold_no_escape_codes_and_no_blanks_at_their_end(dlag: RunResult) -> None:
    text = render(dlag, [Path("/a") / ("long" * 40)])
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())
    assert "/a/" + "long" * 40 in text


def test_a_console_gets_the_same_words_in_color(dlag: RunResult) -> None:
    out = io.StringIO()
    print_report(dlag, Console(file=out, force_terminal=True, width=100))
    assert "\x1b[1m" in out.getvalue()
    assert "What silence saved" in out.getvalue()


def test_report_and_figures_land_in_the_folder(mdlag: RunResult, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    paths = write_report(folder, replace(mdlag, path=folder.path))
    assert paths[0] == folder.report_path
    assert {path.name for path in paths[1:]} == {
        f"{name}.{kind}"
        for name in ("convergence", "mesh", "raster", "time")
        for kind in ("png", "svg")
    }
    assert all(path.stat().st_size > 1000 for path in paths)
    text = folder.report_path.read_text(encoding="utf-8")
    assert all(str(path) in text for path in paths[1:])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (units.count(1234567), "1 234 567"),
        (units.count(None), "-"),
        (units.short(999), "999"),
        (units.short(38_112), "38.1 k"),
        (units.short(999_999), "1 M"),
        (units.size(0), "0 B"),
        (units.size(4_060_000), "4.06 MB"),
        (units.share(0.0), "0 %"),
        (units.share(0.0001), "< 1 %"),
        (units.share(0.9999), "> 99 %"),
        (units.share(1.0), "100 %"),
        (units.fine(0.0003), "0.03 %"),
        (units.fine(0.0), "0 %"),
        (units.fine(0.9999), "100 %"),
        (units.ratio(0.000191234), "0.000191"),
        (units.ratio(1.4444), "1.44"),
        (units.ratio(1.0), "1"),
        (units.small(1e-7), "1e-7"),
        (units.small(0.4), "0.4"),
        (units.small(float("nan")), "-"),
        (units.small(float("inf")), "inf"),
        (units.seconds(0.0421), "0.0421 s"),
        (units.seconds(200.2), "3 min 20 s"),
    ],
)
def test_numbers_read_well(text: str, expected: str) -> None:
    assert text == expected
