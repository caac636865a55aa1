"""The live view: on a terminal only, not too often, and the cursor always comes back."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from subprocess import run as run_process

import pytest
from rich.console import Console

from dlag_lab.live import LiveView, Progress, ages, closeness

NOW = Progress(
    k=419,
    rounds_limit=2000,
    suboptimality=3e-4,
    target=1e-7,
    deltas=4_800,
    tokens=5_000,
    quiet=200,
    ages=[0, 1, 40, 0, 3, 9],
    rounds_per_second=118.0,
    nodes=6,
)
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def terminal() -> tuple[io.StringIO, Console]:
    out = io.StringIO()
    return out, Console(file=out, force_terminal=True, width=100, _environ={"TERM": "xterm"})


def test_a_terminal_sees_the_run() -> None:
    out, console = terminal()
    with LiveView(title="dlag on grid:2x3", topology="grid:2x3", console=console) as view:
        view.update(NOW)
    for words in ("dlag on grid:2x3", "420 of 2 000", "118 rounds/s", "0.0003", "target 1e-7"):
        assert words in out.getvalue()
    assert "52 % skipped (5 000 tokens)" in out.getvalue()
    assert out.getvalue().index(HIDE) < out.getvalue().rindex(SHOW)


def test_anything_else_sees_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with LiveView() as view:
        view.update(NOW)
    out = io.StringIO()
    with LiveView(console=Console(file=out, force_terminal=False)) as view:
        view.update(NOW)
    assert (out.getvalue(), *capsys.readouterr()) == ("", "", "")


def test_the_cursor_comes_back_after_an_error() -> None:
    out, console = terminal()

    def run() -> None:
        with LiveView(console=console) as view:
            view.update(NOW)
            raise RuntimeError("node 3 went away")

    with pytest.raises(RuntimeError, match="node 3"):
        run()
    assert out.getvalue().count(HIDE) == out.getvalue().count(SHOW) == 1


def test_a_progress_that_cannot_be_drawn_gives_the_terminal_back() -> None:
    out, console = terminal()
    view = LiveView(console=console)
    view.start()
    with pytest.raises(TypeError):
        view.update(replace(NOW, ages=["old"]))  # type: ignore[list-item]
    assert SHOW in out.getvalue()
    view.stop()


def test_updates_in_quick_succession_are_drawn_once_and_the_last_one_stays() -> None:
    out, console = terminal()
    clock = Clock()
    view = LiveView(console=console, clock=clock)
    view.start()
    view.update(NOW)
    written = len(out.getvalue())
    for k in range(500, 600):
        view.update(replace(NOW, k=k))
    assert len(out.getvalue()) == written
    clock.now += 0.2
    view.update(replace(NOW, k=700))
    assert "701 of" in out.getvalue()
    view.update(replace(NOW, k=800))
    view.stop()
    view.stop()
    assert "801 of" in out.getvalue()


def test_a_progress_before_the_start_is_not_an_error() -> None:
    LiveView(console=terminal()[1]).update(NOW)


@pytest.mark.parametrize(
    ("value", "first", "target", "expected"),
    [
        (1.0, 1.0, 1e-8, 0.0),
        (1e-4, 1.0, 1e-8, 0.5),
        (1e-9, 1.0, 1e-8, 1.0),
        (10.0, 1.0, 1e-8, 0.0),
        (0.0, 1.0, 1e-8, 1.0),
        (float("nan"), 1.0, 1e-8, 0.0),
        (float("inf"), 1.0, 1e-8, 0.0),
        (0.1, None, 1e-8, None),
        (0.1, 1.0, None, None),
        (0.1, 1e-9, 1e-8, None),
    ],
)
def test_the_bar_is_on_a_log_scale(
    value: float, first: float | None, target: float | None, expected: float | None
) -> None:
    assert closeness(value, first=first, target=target) == pytest.approx(expected)


def test_ages_are_laid_out_as_the_grid() -> None:
    lines = ages(NOW.ages, "grid:2x3").plain.splitlines()
    assert [line.rstrip() for line in lines[:2]] == ["██ ▓▓ ··", "██ ▓▓ ▒▒"]
    assert ages([0] * 30, "ring:30").plain.splitlines()[0].count("██") == 25
    assert ages(NOW.ages, "grid:2x3", fancy=False).plain.isascii()


def test_report_and_live_view_are_imported_without_matplotlib() -> None:
    code = "import sys, dlag_lab.report, dlag_lab.live; sys.exit('matplotlib' in sys.modules)"
    assert run_process([sys.executable, "-c", code], check=False).returncode == 0
