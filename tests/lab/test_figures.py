"""Pictures are really made, say what was found, and never hide a delta."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from dlag_lab import figures
from dlag_lab.figures.raster import MAX_COLUMNS, bin_width, binned_shares, shades
from dlag_lab.layout import grid_shape, positions
from dlag_lab.result import RunResult

SKIPPED = "50 % of messages skipped"  # 7 150 of 14 400


def texts(svg: Path) -> str:
    root = ElementTree.parse(svg).getroot()
    return " ".join(
        "".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")
    )


def png_size(png: Path) -> tuple[int, int]:
    head = png.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:24])
    return width, height


@pytest.mark.parametrize(
    ("draw", "title"),
    [
        (lambda r: figures.convergence([("dlag", r)]), "dlag reaches 1e-6 in 253 rounds"),
        (figures.mesh, f"dlag: {SKIPPED}"),
        (figures.raster, f"dlag: {SKIPPED}"),
        (figures.times, "of the time goes to"),
    ],
    ids=["convergence", "mesh", "raster", "times"],
)
def test_a_picture_is_written_twice_with_its_finding_on_top(
    dlag: RunResult, tmp_path: Path, draw: Callable[[RunResult], Figure], title: str
) -> None:
    png, svg = figures.save(draw(dlag), tmp_path / "figures", "picture")
    assert title in texts(svg)
    width, height = png_size(png)
    assert 900 < width < 2000
    assert 500 < height < 2000
    assert png.stat().st_size > 20_000


def test_several_runs_share_one_picture(dlag: RunResult, mdlag: RunResult, tmp_path: Path) -> None:
    other = replace(mdlag, run={**mdlag.run, "target": 1e-6})
    figure = figures.convergence([("lazy", dlag), ("multi", other)])
    _, svg = figures.save(figure, tmp_path, "compare")
    said = texts(svg)
    assert "Only lazy reaches 1e-6" in said
    assert "lazy: 253" in said
    assert "multi: not reached" in said
    assert "lazy, always: 12.1 k" in said  # 253 rounds of 48 messages


def test_the_raster_of_several_exchanges_says_which_it_shows(
    mdlag: RunResult, tmp_path: Path
) -> None:
    _, svg = figures.save(figures.raster(mdlag), tmp_path, "raster")
    assert "Only the first exchange of a round is shown" in texts(svg)


def test_the_same_run_gives_the_same_drawing(mdlag: RunResult, tmp_path: Path) -> None:
    first, second = (
        figures.save(figures.mesh(mdlag), tmp_path / name, "mesh")[1].read_bytes() for name in "ab"
    )
    assert first == second


def test_a_run_without_times_has_no_picture_of_them(dlag: RunResult) -> None:
    nothing = np.zeros_like(dlag.records.compute)
    timeless = replace(dlag, records=replace(dlag.records, compute=nothing, wait=nothing))
    assert figures.times(timeless) is None


@pytest.mark.parametrize("suboptimality", [0.0, -1e-17, np.nan, np.inf])
def test_numbers_with_no_place_on_a_log_axis_do_no_harm(
    mdlag: RunResult, tmp_path: Path, suboptimality: float
) -> None:
    gap = mdlag.trajectory.suboptimality.copy()
    gap[-3:] = suboptimality
    odd = replace(mdlag, trajectory=replace(mdlag.trajectory, suboptimality=gap))
    figures.save(figures.convergence([("odd", odd)]), tmp_path, "odd")


@given(st.integers(1, 5000))
def test_columns_are_few_enough_to_be_seen(rounds: int) -> None:
    assert -(-rounds // bin_width(rounds)) <= MAX_COLUMNS


@given(
    rounds=st.integers(1, 300),
    columns=st.integers(1, 60),
    density=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_delta_is_never_drawn_as_silence(
    rounds: int, columns: int, density: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    had = rng.random((rounds, 3)) < 0.9
    sent = had & (rng.random((rounds, 3)) < density)
    width = bin_width(rounds, columns)
    shares, any_exchange = binned_shares(sent, had, width)
    darkness = shades(shares)
    assert len(shares) == -(-rounds // width) <= columns
    for b in range(len(shares)):
        rows = slice(b * width, (b + 1) * width)
        np.testing.assert_array_equal(darkness[b] >= 0.3, sent[rows].any(axis=0))
        np.testing.assert_array_equal(darkness[b] == 0, ~sent[rows].any(axis=0))
        np.testing.assert_array_equal(any_exchange[b], had[rows].any(axis=0))
        spoke = sent[rows].sum(axis=0)
        np.testing.assert_allclose(shares[b] * had[rows].sum(axis=0), spoke)


class TestLayout:
    def test_a_grid_lies_row_by_row_from_the_top(self) -> None:
        at = positions("grid:2x3", 6, [(0, 1)])
        assert at.tolist() == [[0, 0], [1, 0], [2, 0], [0, -1], [1, -1], [2, -1]]

    @pytest.mark.parametrize("topology", ["grid:5x5", "grid:5", "grid:0x6x1", "ring:6"])
    def test_what_is_no_grid_of_that_many_nodes_has_no_shape(self, topology: str) -> None:
        assert grid_shape(topology, 6) is None

    def test_a_star_stands_around_its_hub(self) -> None:
        at = positions("star:5", 5, [(2, i) for i in (0, 1, 3, 4)])
        np.testing.assert_allclose(at[2], 0)
        np.testing.assert_allclose(np.hypot(*at[[0, 1, 3, 4]].T), 1)

    @pytest.mark.parametrize("topology", ["ring:7", "complete:7", "er:7,0.5,1"])
    def test_no_two_workers_stand_in_one_place(self, topology: str) -> None:
        edges = [(i, (i + 1) % 7) for i in range(7)] + [(0, 3)]
        at = positions(topology, 7, edges)
        apart = np.hypot(*(at[:, None] - at[None]).transpose(2, 0, 1)) + np.eye(7)
        assert apart.min() > 0.3
        np.testing.assert_array_equal(at, positions(topology, 7, edges))
