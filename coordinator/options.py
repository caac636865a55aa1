"""The flags that describe a run, said once for every command that takes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Annotated, Any

import typer

from coordinator.plan import RunSettings


def _flag(kind: Any, help_text: str, name: str | None = None, env: str = "") -> Any:
    names = [] if name is None else [name]
    return Annotated[kind, typer.Option(*names, envvar=f"DLAG_{env}", help=help_text)]


# One flag for each field of RunSettings; the defaults are the fields' own.
FLAGS: dict[str, Any] = {
    "method": _flag(
        str,
        "tree, ssda, msda, dlag, mdlag, mdlag-all, extra, exact-diffusion, diging, "
        "admm, lazy-extra, lazy-exact-diffusion, lazy-admm, fgm, cola, dsba or adfs, with "
        "parameters as in dlag:gamma=1e-4,c=1e-4,D=10.",
        env="METHOD",
    ),
    "preset": _flag(
        str,
        "Defaults of the method: paper (its experiments), theory (its theorem) or auto.",
        env="PRESET",
    ),
    "topology": _flag(
        str,
        "grid:RxC, ring:N, path:N, star:N, complete:N, erdos:N,p, regular:N,k, a file of edges "
        "or, for dlag-coordinator, measured:N: chosen from what the nodes measure.",
        env="TOPOLOGY",
    ),
    "weights": _flag(str, "Gossip weights: metropolis, max-degree or laplacian.", env="WEIGHTS"),
    "problem": _flag(str, "logistic or ridge.", env="PROBLEM"),
    "lam": _flag(float, "Weight of the l2 regulariser.", "--lambda", env="LAMBDA"),
    "data": _flag(
        str,
        "heart (bundled), a file (LIBSVM text, plain or compressed, .csv, .npz, .npy, .parquet), "
        "or, for dlag-coordinator, nodes: each holds its own.",
        env="DATA",
    ),
    "data_dir": _flag(str | None, "Where data files are looked for by name.", env="DATA_DIR"),
    "label": _flag(
        str | None, "Where the labels are: a column, an .npz file's array, an .npy.", env="LABEL"
    ),
    "scale": _flag(
        str, "none, minmax (each feature to [-1, 1]) or standard (mean 0, variance 1).", env="SCALE"
    ),
    "intercept": _flag(
        float,
        "Value of a constant feature, regularised as the others are; 0: none.",
        env="INTERCEPT",
    ),
    "shards": _flag(
        str,
        "even, uneven:a,b (sizes by U[a,b]) or labels:alpha (Dirichlet label skew).",
        env="SHARDS",
    ),
    "without": _flag(
        str, "Plan without these nodes and their samples, as in 7,9; ids close up.", env="WITHOUT"
    ),
    "rounds": _flag(int, "Rounds to run; with a target, the most.", env="ROUNDS"),
    "tol": _flag(
        float | None,
        "Stop once every theta_i has come to rest: for ten rounds within tol max(1, ||theta_i||).",
        env="TOL",
    ),
    "max_seconds": _flag(
        float | None, "Stop after so many seconds of rounds.", "--max-seconds", env="MAX_SECONDS"
    ),
    "seed": _flag(int, "Decides shards, random graphs and random draws.", env="SEED"),
}

STOPS = frozenset({"tol", "max_seconds"})  # flags that only a single run has

LogLevel = Annotated[
    str, typer.Option(envvar="DLAG_LOG_LEVEL", help="debug, info, warning or error.")
]


def takes_run_settings(
    command: Callable[..., Any], *, without: frozenset[str] = frozenset()
) -> Callable[..., Any]:
    """Give a command every flag that describes a run; it gets them as one `settings` argument.

    A parameter of the command's own with the name of a field takes that flag's place: the command
    then receives it as it was given, and `settings` has the field's default. Fields `without` a
    flag have their default too.
    """
    own = [
        each
        for each in inspect.signature(command, eval_str=True).parameters.values()
        if each.name != "settings"
    ]
    taken = without | {each.name for each in own}
    shared = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=FLAGS[field.name],
        )
        for field in fields(RunSettings)
        if field.name not in taken
    ]
    own = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]

    @wraps(command)
    def wrapper(**given: Any) -> Any:
        chosen = {each.name: given.pop(each.name) for each in shared}
        return command(RunSettings(**chosen), **given)

    signature = inspect.Signature([*shared, *own])
    wrapper.__signature__ = signature  # type: ignore[attr-defined]
    wrapper.__annotations__ = {each.name: each.annotation for each in [*shared, *own]}
    return wrapper
