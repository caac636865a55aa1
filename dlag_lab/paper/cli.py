"""`dlag paper`: its commands."""

from __future__ import annotations

import typer

from dlag_lab.paper.checks_cli import covtype_check, sensitivity
from dlag_lab.paper.experiments_cli import covtype_command, heart, methods

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Reproduce an experiment of the paper: its figures, a table, and its claims one by one.",
)
app.command("heart")(heart)
app.command("sensitivity")(sensitivity)
app.command("methods")(methods)
app.command("covtype")(covtype_command)
app.command("covtype-check")(covtype_check)
