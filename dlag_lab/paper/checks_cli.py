"""`dlag paper sensitivity` and `dlag paper covtype-check`: what stands behind the claims."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from coordinator.options import LogLevel
from dlag_lab.compare import Comparison
from dlag_lab.compare_cli import Force
from dlag_lab.compare_report import carry_out, write_tables
from dlag_lab.compare_table import row_of
from dlag_lab.document import check_document, fill
from dlag_lab.paper.covtype import agreement, covtype, pairs, settings_for
from dlag_lab.paper.experiments_cli import covtype_data
from dlag_lab.paper.heart import HEART
from dlag_lab.paper.options import DataDir, ExactRounds, Out, Raw, Rows, Seed, Seeds, Target, Write
from dlag_lab.paper.sensitivity import comparisons, line_of, table, variants
from dlag_node.process import set_up_logging


def sensitivity(
    seeds: Seeds = 3,
    seed: Seed = 0,
    target: Target = HEART.target,
    raw: Raw = None,
    out: Out = Path("runs/paper-sensitivity"),
    force: Force = False,
    write: Write = None,
    log_level: LogLevel = "warning",
) -> None:
    """Which settings that the paper leaves open decide heart's claims: one change at a time."""
    set_up_logging("dlag", log_level)
    name = "dlag paper sensitivity"
    if write is not None:
        check_document(write, name)
    tried = variants(raw)
    groups = comparisons(
        tried,
        replace(HEART.settings, seed=seed),
        seeds=seeds,
        mode="simulate",
        target=target,
        out=out,
        force=force,
    )
    console = Console(highlight=False)
    lines: list[list[str]] = []
    for group, comparison in groups:
        rows = [row_of(outcome) for outcome in carry_out(comparison)]
        write_tables(comparison, rows, comparison.methods[0])
        for variant in group:
            lines.append(line_of(variant, rows))
            console.print(": ".join(lines[-1]), soft_wrap=True, markup=False)
    table_path = out / "table.md"
    table_path.write_text(table(lines) + "\n", encoding="utf-8")
    if write is not None:
        of_seeds = f"seed {seed} alone" if seeds == 1 else f"medians of {seeds} seeds"
        command = f"{name} --seeds {seeds}" + ("" if raw is None else " --raw HEART")
        fill(write, name, f"Made by `{command}`; {of_seeds}.\n\n{table(lines)}")
    console.print(f" {table_path}", soft_wrap=True, markup=False)


def covtype_check(
    rounds: ExactRounds = 5,
    rows: Rows = None,
    data_dir: DataDir = None,
    out: Out = Path("runs/paper-covtype-check"),
    force: Force = False,
    log_level: LogLevel = "warning",
) -> None:
    """Whether 300 epochs of AGD and the solver of `dlag paper covtype` make the same run."""
    set_up_logging("dlag", log_level)
    data = covtype_data(data_dir, rows, out)
    settings = settings_for(covtype(), data=data, data_dir=data_dir)
    comparison = Comparison(
        methods=tuple(method for pair in pairs() for method in pair),
        settings=replace(settings, rounds=rounds),
        seeds=1,
        mode="simulate",
        target=None,
        out=out,
        force=force,
    )
    results = {outcome.method: outcome.result for outcome in carry_out(comparison)}
    console = Console(highlight=False)
    for own, stand_in in pairs():
        first, second = results[own], results[stand_in]
        if first is None or second is None:
            console.print(f"{own}: failed", markup=False)
            continue
        console.print(str(agreement(first, second)), soft_wrap=True, markup=False)
