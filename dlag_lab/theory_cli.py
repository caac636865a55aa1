"""`dlag theory`: the paper's predictions for a problem and a graph, before anything is run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from coordinator.options import STOPS, takes_run_settings
from coordinator.plan import Plan, RunSettings
from dlag_lab.folder import write_json
from dlag_lab.options import DEFAULT_TARGET
from dlag_lab.tables import plain_table, print_whole
from dlag_lab.theory import Family, Promise, Theory, theory_of
from dlag_lab.units import count, share, small
from dlag_node.errors import ConfigError
from dlag_node.outputs import to_file

Measured = Annotated[
    int | None,
    typer.Option(
        "--rounds", help="Price Theorem 3 by so many measured rounds, not by the predicted ones."
    ),
]
Eps = Annotated[
    float, typer.Option(envvar="DLAG_TARGET", help="The suboptimality eps of the predicted rounds.")
]
Json = Annotated[
    Path | None,
    typer.Option("--json", callback=to_file, help="Write all of it as JSON to this file too."),
]


@partial(takes_run_settings, without=STOPS)
def theory(
    settings: RunSettings,
    rounds: Measured = None,
    target: Eps = DEFAULT_TARGET,
    json: Json = None,
) -> None:
    """What the paper's theorems say of this problem and graph: constants, rounds, messages."""
    if rounds is not None and rounds < 1:
        raise ConfigError(f"rounds = {rounds}: expected at least 1")
    threadpool_limits(1)
    found = theory_of(Plan(settings), eps=target, rounds=rounds)
    if json is not None:
        write_json(json, found.to_json())
    print_theory(found, Console(), measured=rounds is not None)


def print_theory(found: Theory, console: Console, *, measured: bool) -> None:
    """All of it as tables."""
    console.print("The problem and the graph", style="bold")
    print_whole(console, _facts(found))
    console.print(f"\nTheorems 1 and 2, with D = {found.D}", style="bold")
    print_whole(console, _families(found))
    console.print(
        " Rounds are sqrt(s kappa) log(1/eps), the O(.) taken with constant 1: an order of "
        f"magnitude.\n eps = {small(found.eps)}; s = 1 for ssda and msda, "
        "s = 10 for dlag and mdlag.\n",
        highlight=False,
    )
    console.print("Theorem 3: how often the workers must speak", style="bold")
    print_whole(console, _promises(found, measured=measured))
    for title, promise in _named(found):
        console.print(
            f" h_d({small(promise.gamma)}), {title}: {_steps(promise.h)}", highlight=False
        )
    console.print("\nImportance factors H_i = mu_min / mu_i", style="bold")
    print_whole(console, _workers(found))


def _facts(found: Theory) -> Table:
    table = plain_table("", "")
    for name, value in (
        ("workers n", count(found.nodes)),
        ("edges |E|", count(found.edges)),
        ("mu_min", small(found.mu_min)),
        ("L_max", small(found.L_max)),
        ("kappa_F = L_max / mu_min", _digits(found.kappa_F)),
        ("zeta(U)", _digits(found.single.zeta)),
        ("kappa = kappa_F / zeta(U)", _digits(found.single.kappa)),
        ("K, exchanges a round", str(found.K)),
        ("zeta(P_K(U))", _digits(found.multi.zeta)),
        ("kappa' = kappa_F / zeta(P_K(U))", _digits(found.multi.kappa)),
    ):
        table.add_row(name, value)
    return table


def _families(found: Theory) -> Table:
    table = plain_table("", "U: ssda, dlag", "P_K(U): msda, mdlag")

    def row(name: str, value: str, of: Sequence[float]) -> None:
        table.add_row(name, *(f"{value}{_digits(each)}" for each in of))

    both: tuple[Family, Family] = (found.single, found.multi)
    row("gamma", "", [each.gamma for each in both])
    row("c", "", [each.c for each in both])
    row("eta = 2 / (15 beta)", "", [each.eta for each in both])
    row("s", "", [each.s for each in both])
    row("alpha", "", [each.alpha for each in both])
    row("beta", "", [each.beta for each in both])
    row("rounds without laziness, s = 1", "~ ", [each.rounds_exact for each in both])
    row("rounds of the lazy one, s = 10", "~ ", [each.rounds_lazy for each in both])
    return table


def _named(found: Theory) -> list[tuple[str, Promise]]:
    named = [("dlag, Theorem 1", found.single.promise), ("mdlag, Theorem 2", found.multi.promise)]
    if found.own is not None:
        named.append((f"{found.method} as given", found.own))
    return named


def _promises(found: Theory, *, measured: bool) -> Table:
    rounds = "measured rounds" if measured else "predicted rounds"
    table = plain_table("", "gamma", "bracket", "always sending", rounds, "messages at most", "q")
    for title, promise in _named(found):
        table.add_row(
            title,
            small(promise.gamma),
            f"{promise.bracket:.4g}",
            str(promise.K),
            _whole(promise.rounds),
            _whole(promise.messages),
            "-" if promise.q is None else f"{promise.q:.4g}",
        )
    return table


def _workers(found: Theory) -> Table:
    table = plain_table(
        "worker", "samples", "mu_i", "H_i", "H_i^2", "neighbors", "of directed edges"
    )
    for i in sorted(range(found.nodes), key=lambda i: (-found.H[i], i)):
        table.add_row(
            str(i),
            count(found.shard_sizes[i]),
            small(found.mu[i]),
            f"{found.H[i]:.4f}",
            small(found.H[i] ** 2),
            str(found.degrees[i]),
            share(found.degrees[i] / (2 * found.edges)),
        )
    return table


def _steps(h: Sequence[float]) -> str:
    """h_1..h_D with equal neighbors put together: `0.95 for d = 1..20, 0 for d = 21..50`."""
    parts = []
    for value, group in groupby(enumerate(h, 1), key=lambda item: item[1]):
        ages = [age for age, _ in group]
        span = str(ages[0]) if len(ages) == 1 else f"{ages[0]}..{ages[-1]}"
        parts.append(f"{value:.4g} for d = {span}")
    return ", ".join(parts)


def _whole(value: float) -> str:
    return count(round(value))


def _digits(value: float) -> str:
    """Five digits; no exponent where people would not write one."""
    return small(value) if abs(value) < 1e-3 else f"{value:.5g}" if value < 1e5 else _whole(value)
