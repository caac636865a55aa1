"""`dlag paper heart`, `methods` and `covtype`: from real runs to table, figures and claims."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer
from rich.console import Console

from coordinator.datasets import LIBSVM_SETS
from coordinator.options import LogLevel
from dlag_lab.compare import Comparison
from dlag_lab.compare_cli import Force, Mode
from dlag_lab.compare_report import carry_out, show, write_tables
from dlag_lab.compare_table import row_of
from dlag_lab.document import check_document, fill
from dlag_lab.options import EXIT_NOT_REACHED, Figures, Timeout
from dlag_lab.paper.covtype import DATA, covtype, settings_for, subsample
from dlag_lab.paper.experiment import Experiment
from dlag_lab.paper.heart import HEART
from dlag_lab.paper.methods import METHODS
from dlag_lab.paper.options import DataDir, Out, Rounds, Rows, Seed, Seeds, Target, Write
from dlag_lab.paper.report import document_part, draw_figures, show_claims, write_claims
from dlag_node.errors import ConfigError
from dlag_node.process import set_up_logging


def heart(
    seeds: Seeds = HEART.seeds,
    seed: Seed = 0,
    mode: Mode = "simulate",
    target: Target = HEART.target,
    rounds: Rounds = None,
    out: Out = Path("runs/paper-heart"),
    force: Force = False,
    figures: Figures = True,
    write: Write = None,
    neighbor_timeout: Timeout = 120.0,
    log_level: LogLevel = "warning",
) -> None:
    """Section Experiments: heart, 5x5 grid, COLA, SSDA, MSDA, DLAG and MDLAG (Figures 1 to 3)."""
    set_up_logging("dlag", log_level)
    settings = replace(HEART.settings, seed=seed)
    comparison = Comparison(
        methods=tuple(HEART.methods),
        settings=settings if rounds is None else replace(settings, rounds=rounds),
        seeds=seeds,
        mode=mode,
        target=target,
        out=out,
        force=force,
        neighbor_timeout=neighbor_timeout,
        names=HEART.methods,
    )
    reproduce(HEART, comparison, figures=figures, write=write, flags=_flags(HEART, comparison))


def methods(
    seeds: Seeds = METHODS.seeds,
    seed: Seed = 0,
    mode: Mode = "simulate",
    out: Out = Path("runs/paper-methods"),
    force: Force = False,
    write: Write = None,
    log_level: LogLevel = "warning",
) -> None:
    """Every method that there is on the same problem: what each costs to the target."""
    set_up_logging("dlag", log_level)
    comparison = Comparison(
        methods=tuple(METHODS.methods),
        settings=replace(METHODS.settings, seed=seed),
        seeds=seeds,
        mode=mode,
        target=METHODS.target,
        out=out,
        force=force,
    )
    reproduce(METHODS, comparison, figures=False, write=write, flags=_flags(METHODS, comparison))


def covtype_command(
    seeds: Seeds = 1,
    seed: Seed = 0,
    mode: Mode = "simulate",
    target: Target = 1e-7,
    rounds: Rounds = None,
    rows: Rows = None,
    data_dir: DataDir = None,
    out: Out = Path("runs/paper-covtype"),
    force: Force = False,
    figures: Figures = True,
    write: Write = None,
    neighbor_timeout: Timeout = 120.0,
    log_level: LogLevel = "warning",
) -> None:
    """Appendix: covtype, 10x10 grid, DLAG, MDLAG and ADFS (Figures 4 and 5)."""
    set_up_logging("dlag", log_level)
    data = covtype_data(data_dir, rows, out)
    experiment = covtype() if rows is None else covtype(rows)
    settings = replace(settings_for(experiment, data=data, data_dir=data_dir), seed=seed)
    comparison = Comparison(
        methods=tuple(experiment.methods),
        settings=settings if rounds is None else replace(settings, rounds=rounds),
        seeds=seeds,
        mode=mode,
        target=target,
        out=out,
        force=force,
        neighbor_timeout=neighbor_timeout,
        names=experiment.methods,
    )
    flags = _flags(experiment, comparison) + ("" if rows is None else f" --rows {rows}")
    reproduce(experiment, comparison, figures=figures, write=write, flags=flags)


def covtype_data(data_dir: str | None, rows: int | None, out: Path) -> str:
    """What RunSettings calls the data: the set's name, or the file with some of its rows."""
    places = [Path(DATA), *([] if data_dir is None else [Path(data_dir) / DATA])]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise ConfigError(
            f"no {DATA} in {' or '.join(str(place.parent.absolute()) for place in places)}: get "
            f"covtype.binary (scaled) from LIBSVM's sets ({LIBSVM_SETS}) and name its folder by "
            "--data-dir or DLAG_DATA_DIR"
        )
    if rows is None:
        return DATA
    some = out / f"covtype-{rows}.libsvm"
    subsample(found, rows, some)
    return str(some)


def reproduce(
    experiment: Experiment,
    comparison: Comparison,
    *,
    figures: bool,
    write: Path | None,
    flags: str,
) -> None:
    """Run what is missing, judge the claims, leave table, figures and document behind."""
    name = f"dlag paper {experiment.name}"
    if write is not None:
        check_document(write, name)
    outcomes = carry_out(comparison)
    rows = [row_of(outcome) for outcome in outcomes]
    verdicts = experiment.judge(rows)
    base = comparison.methods[0]
    paths = write_tables(comparison, rows, base)
    if verdicts:
        paths += write_claims(comparison.out, verdicts)
    if figures:
        paths += draw_figures(experiment, comparison, outcomes)
    if write is not None:
        fill(write, name, document_part(experiment, comparison, rows, verdicts, f"{name} {flags}"))
        paths.append(write)
    show(comparison, outcomes, rows, base, paths)
    if verdicts:
        show_claims(verdicts, Console(highlight=False))
    if not any(outcome.reached for outcome in outcomes):
        raise typer.Exit(EXIT_NOT_REACHED)


def _flags(experiment: Experiment, comparison: Comparison) -> str:
    """What was asked beyond the defaults, and how many seeds."""
    flags = [f"--seeds {comparison.seeds}"]
    if comparison.settings.seed != experiment.settings.seed:
        flags.append(f"--seed {comparison.settings.seed}")
    if comparison.target != experiment.target:
        flags.append(f"--target {comparison.target:g}")
    if comparison.settings.rounds != experiment.settings.rounds:
        flags.append(f"--rounds {comparison.settings.rounds}")
    return " ".join(flags)
