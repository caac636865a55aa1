"""The table of one change at a time: which runs it needs, and what its lines say."""

from __future__ import annotations

from pathlib import Path

from coordinator.plan import RunSettings
from dlag_lab.compare_table import Row
from dlag_lab.paper.sensitivity import HEAD, Variant, comparisons, line_of, table, variants


def row(method: str, cost: int) -> Row:
    return Row(
        method,
        0,
        "reached",
        rounds_to_target=cost,
        deltas_to_target=cost,
        gradients_to_target=cost,
    )


def test_variants_on_one_problem_share_a_comparison(tmp_path: Path) -> None:
    tried = (
        Variant("as it is"),
        Variant("cold", baseline="start=cold"),
        Variant("even", {"shards": "even"}),
    )
    made = list(
        comparisons(
            tried,
            RunSettings(),
            seeds=2,
            mode="simulate",
            target=1e-3,
            out=tmp_path,
            force=False,
        )
    )
    assert [[variant.name for variant in group] for group, _ in made] == [
        ["as it is", "cold"], ["even"],
    ]  # fmt: skip
    (_, stated), (_, even) = made
    assert "msda:start=cold" in stated.methods
    assert len(stated.methods) == 7  # ssda, msda twice, dlag and mdlag twice each
    assert (stated.settings.shards, even.settings.shards) == ("uneven:1,10", "even")
    assert stated.out != even.out


def test_a_line_holds_the_ratios_to_its_own_baseline() -> None:
    variant = Variant("cold", baseline="start=cold")
    first, second = variant.choices("mdlag").values()
    lazy, _ = variant.choices("dlag").values()
    rows = [
        row("msda:start=cold", 200), row("msda", 1), row(first, 40), row(second, 300),
        row(variant.base("ssda"), 100), row(lazy, 150),
    ]  # fmt: skip
    assert line_of(variant, rows) == [
        "cold", "x 1.5 / -", "-50 % / -", "x 0.2 / x 1.5", "80 % / -50 %",
    ]  # fmt: skip
    assert table([line_of(variant, rows)]).splitlines()[0] == "| " + " | ".join(HEAD) + " |"


def test_raw_features_are_tried_where_their_file_is(tmp_path: Path) -> None:
    assert not any("raw" in each.name for each in variants(None))
    (raw,) = (each for each in variants(tmp_path / "heart") if "raw" in each.name)
    assert raw.problem["data"] == str(tmp_path / "heart")
