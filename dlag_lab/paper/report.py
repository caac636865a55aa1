"""An experiment of the paper from its outcomes to files: claims, figures, a part of a document."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from dlag_lab.compare import Comparison, Outcome
from dlag_lab.compare_report import heading
from dlag_lab.compare_table import Row, markdown
from dlag_lab.folder import write_json
from dlag_lab.paper.claims import Verdict, claims_table
from dlag_lab.paper.experiment import Experiment
from dlag_lab.result import RunResult


def write_claims(out: Path, verdicts: Sequence[Verdict]) -> list[Path]:
    """claims.md for people, claims.json for machines."""
    paths = [out / "claims.md", out / "claims.json"]
    paths[0].write_text("\n".join(claims_table(verdicts)) + "\n", encoding="utf-8")
    rows = [
        {"claim": v.claim, "measured": v.measured, "status": v.status.value, "why": v.why}
        for v in verdicts
    ]
    write_json(paths[1], {"claims": rows})
    return paths


def document_part(
    experiment: Experiment,
    comparison: Comparison,
    rows: Sequence[Row],
    verdicts: Sequence[Verdict],
    command: str,
) -> str:
    """What stands in a document: the command, the claims, the table behind them, the notes."""
    base = next(iter(experiment.methods))
    table = markdown(rows, base, comparison.called, heading(comparison, base) + ".")
    notes = [f"- {note}" for note in experiment.notes]
    return "\n".join(
        [
            f"Made by `{command}`.",
            "",
            *([*claims_table(verdicts), ""] if verdicts else []),
            table,
            *notes,
        ]
    )


def draw_figures(
    experiment: Experiment, comparison: Comparison, outcomes: Sequence[Outcome]
) -> list[Path]:
    """The paper's figures; methods without any result are left out."""
    from dlag_lab import figures  # brings matplotlib: only when something is drawn

    groups: dict[str, list[RunResult]] = {}
    for outcome in outcomes:
        if outcome.result is not None:
            groups.setdefault(comparison.called[outcome.method], []).append(outcome.result)
    paths: list[Path] = []
    for wanted in experiment.figures if groups else ():
        figure = figures.paper_figure(
            list(groups.items()),
            wanted.panel,
            number=wanted.number,
            lines=[experiment.title],
            cost=wanted.cost,
        )
        paths += figures.save(figure, comparison.out / "figures", wanted.file)
    return paths


def show_claims(verdicts: Sequence[Verdict], console: Console) -> None:
    """The verdicts on the console."""
    console.print("\nThe paper's claims", style="bold")
    for at, each in enumerate(verdicts, 1):
        console.print(f"\n {at}. {each.claim}: [bold]{each.status.value}[/bold]", soft_wrap=True)
        for line in filter(None, (each.measured, each.why)):
            console.print(f"    {line}", soft_wrap=True, markup=False)
