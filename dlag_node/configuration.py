"""Settings from a file, the environment and flags: which are in force, and from where.

A file is TOML; its keys are the names of the flags. A flag wins over its environment variable, that
over the file, and the file over the default.
"""

from __future__ import annotations

import inspect
import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

import typer

from dlag_node.errors import ConfigError

_WIDTH = 98  # of a comment in a printed file
_SECRET = ("key", "token", "secret", "password")  # in a setting's name; the path of a file is none
_HIDDEN = "(hidden)"
_SOURCES = {
    "COMMANDLINE": "flag",
    "ENVIRONMENT": "environment",
    "DEFAULT_MAP": "file",
    "DEFAULT": "default",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as it is in force."""

    name: str
    value: Any
    source: str
    help: str
    variable: str | None

    @property
    def secret(self) -> bool:
        """Whether its value is for nobody's eyes."""
        words = self.name.split("-")
        return any(word in _SECRET for word in words) and isinstance(self.value, str)

    def __str__(self) -> str:
        shown = _HIDDEN if self.secret else "unset" if self.value is None else _toml(self.value)
        return f"{self.name} = {shown} ({self.source})"

    def as_toml(self) -> str:
        """Its lines in a file: explained; commented out where it has no value, or a secret one."""
        variable = f" Environment: {self.variable}." if self.variable else ""
        comment = [f"# {line}" for line in wrap(self.help + variable, _WIDTH - 2)]
        if self.value is None or self.secret:
            return "\n".join([*comment, f"# {self.name} ="])
        return "\n".join([*comment, f"{self.name} = {_toml(self.value)}"])


@dataclass(frozen=True, slots=True)
class Configuration:
    """Every setting of a command, as it is in force."""

    command: str
    settings: tuple[Setting, ...]

    def __str__(self) -> str:
        return "configuration: " + ", ".join(map(str, self.settings))

    def as_toml(self) -> str:
        """A whole file that says the same."""
        head = (
            f"# Settings of {self.command}, for {self.command} --config FILE. "
            "Flags and the environment win over this file."
        )
        return "\n\n".join([head, *(each.as_toml() for each in self.settings)])


def takes_configuration(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--config`, `--print-config` and `--version`.

    The command gets what is in force as one `configuration` argument.
    """
    own = [
        each
        for each in inspect.signature(command, eval_str=True).parameters.values()
        if each.name != "configuration"
    ]

    @wraps(command)
    def wrapper(ctx: typer.Context, print_config: bool, **given: Any) -> Any:
        del given["config"], given["version"]
        configuration = _in_force(ctx, given)
        if print_config:
            typer.echo(configuration.as_toml())
            return None
        return command(configuration=configuration, **given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [
        inspect.Parameter("ctx", keyword, annotation=typer.Context),
        *(each.replace(kind=keyword) for each in own),
        inspect.Parameter("config", keyword, default=None, annotation=_Config),
        inspect.Parameter("print_config", keyword, default=False, annotation=_PrintConfig),
        inspect.Parameter("version", keyword, default=False, annotation=_Version),
    ]
    wrapper.__signature__ = inspect.Signature(added)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {each.name: each.annotation for each in added}
    return wrapper


def _load(ctx: typer.Context, path: Path | None) -> Path | None:
    """Read the file before any other setting is looked at: its values become the defaults."""
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            told = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError) as exc:
        raise ConfigError(f"cannot read the configuration {path}: {exc}") from exc
    known = {_name_of(each): each for each in _settable(ctx)}
    defaults: dict[str, Any] = {}
    for name, value in told.items():
        if name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.0)
            raise ConfigError(f"{path}: unknown setting {name!r}: did you mean {near[0]!r}?")
        where, several = f"{path}: {name}", bool(known[name].multiple)
        values = value if isinstance(value, list) and several else [value]
        if not all(isinstance(each, str | int | float | bool) for each in values):
            expected = "a list of values" if several else "one value"
            raise ConfigError(f"{where} = {value!r}: expected {expected}")
        if several:
            defaults[known[name].name] = [str(each) for each in values]
        else:
            defaults[known[name].name] = _checked(ctx, known[name], value, where)
    ctx.default_map = {**(ctx.default_map or {}), **defaults}
    return path


def _checked(ctx: typer.Context, parameter: Any, value: Any, where: str) -> Any:
    """The value, if the flag would take it: a number may stand for a text, and never a boolean."""
    if isinstance(value, bool) != bool(parameter.is_flag):
        expected = "true or false" if parameter.is_flag else "no boolean"
        raise ConfigError(f"{where} = {json.dumps(value)}: expected {expected}")
    if isinstance(value, bool):
        return value
    try:
        parameter.process_value(ctx, str(value))
    except Exception as exc:  # a usage error of typer's, of a class that depends on its version
        reason = getattr(exc, "message", str(exc))
        raise ConfigError(f"{where} = {value!r}: {reason}") from exc
    return str(value)


def _in_force(ctx: typer.Context, given: dict[str, Any]) -> Configuration:
    settings = []
    for each in _settable(ctx):
        source = ctx.get_parameter_source(each.name)
        settings.append(
            Setting(
                name=_name_of(each),
                value=given[each.name],
                source=_SOURCES["DEFAULT" if source is None else source.name],
                help=each.help or "",
                variable=each.envvar,
            )
        )
    return Configuration(ctx.command_path, tuple(settings))


def _settable(ctx: typer.Context) -> list[Any]:
    """The options that a file may hold: none that is hidden, none that is about the file itself."""
    ours = {"config", "print_config", "version"}
    options: list[Any] = ctx.command.params
    return [
        each for each in options if each.expose_value and not each.hidden and each.name not in ours
    ]


def _name_of(parameter: Any) -> str:
    """The flag without its dashes."""
    return str(max(parameter.opts, key=len)).lstrip("-")


def _toml(value: Any) -> str:
    """A value as TOML writes it: a text as JSON does, but for DEL, which JSON lets through."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return json.dumps(str(value)).replace("\x7f", "\\u007f")


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dlag-mesh {version('dlag-mesh')}")
        raise typer.Exit


_Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="DLAG_CONFIG",
        is_eager=True,
        callback=_load,
        help="TOML file of settings, named as the flags; flags and environment win over it.",
    ),
]
_PrintConfig = Annotated[
    bool,
    typer.Option("--print-config", help="Print the settings in force as such a file, explained."),
]
_Version = Annotated[
    bool,
    typer.Option("--version", is_eager=True, callback=_say_version, help="Print the version."),
]
