"""Several methods on one problem: which runs a comparison needs, and making those not yet made.

Every run has a run folder of its own, OUT/METHOD/seed-S, complete by itself. A finished one that
was asked for the same thing is taken as it is, so an interrupted comparison goes on where it was.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from coordinator.plan import Plan, RunSettings
from dlag_lab.compare_view import CompareView
from dlag_lab.folder import RunFolder, read_object, write_json
from dlag_lab.network.spec import NetworkSpec
from dlag_lab.result import RunResult
from dlag_lab.resuming import other_bits
from dlag_lab.runs import Run, RunRequest, identity
from dlag_lab.workers import Workers
from dlag_node.errors import ConfigError, ConvergenceError, DlagError
from dlag_node.methods import METHODS, parse_method
from dlag_node.outcome import Ending
from dlag_node.outputs import to_folder

log = logging.getLogger(__name__)

_LONGEST_SLUG = 100  # characters; a file name may have 255
_LONGEST_LABEL = 24  # characters, in legends
_ELSEWHERE = "data_dir"  # where the data lie; what they are is in their hash


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended: with a result, or with numbers gone bad (`failure` says how)."""

    method: str
    seed: int
    folder: Path
    result: RunResult | None
    failure: str | None = None
    kept: bool = False  # from an earlier call

    @property
    def reached(self) -> bool:
        """Whether it met its target, or had none to meet."""
        if self.result is None:
            return False
        target = self.result.target
        return target is None or self.result.trajectory.rounds_to(target) is not None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a person asks to compare; `settings.method` and `settings.seed` are the runs' own."""

    methods: tuple[str, ...]
    settings: RunSettings
    seeds: int
    mode: Literal["mesh", "simulate"]
    target: float | None
    out: Path
    force: bool = False  # also run again what is finished
    neighbor_timeout: float = 120.0
    names: Mapping[str, str] | None = None  # what to call each method, else `labels`
    network: NetworkSpec | None = None

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ConfigError(f"seeds = {self.seeds}: expected at least 1")
        to_folder(self.out)
        names: dict[str, str] = {}
        for method in self.methods:
            other = names.setdefault(slug(method), method)
            if other is not method:
                raise ConfigError(f"methods {other!r} and {method!r} would share a folder")

    @property
    def called(self) -> Mapping[str, str]:
        """What tables and figures call each method."""
        return labels(self.methods) if self.names is None else self.names

    @property
    def requests(self) -> list[RunRequest]:
        """Every run: all seeds of the first method, then all of the second, and so on."""
        first = self.settings.seed
        return [
            RunRequest(
                settings=replace(self.settings, method=method, seed=seed),
                mode=self.mode,
                target=self.target,
                out=self.out / slug(method) / f"seed-{seed}",
                force=True,  # RunFolder clears a run's files, and nothing else
                neighbor_timeout=self.neighbor_timeout,
                network=self.network,
            )
            for method in self.methods
            for seed in range(first, first + self.seeds)
        ]

    def execute(self, view: CompareView) -> Iterator[Outcome]:
        """Make the runs in order, one outcome each; what is finished already is only read."""
        data_sha256 = self._check()
        for request in self.requests:
            kept = None if self.force else finished(request, data_sha256=data_sha256)
            yield kept or _made(request, view)
            view.done()

    def _check(self) -> str:
        """Find every bad parameter before the first run; returns the hash of the data."""
        plan = Plan(self.settings)
        workers = Workers(plan)
        for method in self.methods:
            workers.by(method).check()
        return plan.dataset.sha256


def split_methods(text: str) -> tuple[str, ...]:
    """`dlag:gamma=1e-5,D=20,ssda` as `dlag:gamma=1e-5,D=20` and `ssda`.

    A semicolon always separates. A comma separates where a known method's name follows it, and then
    the end, a comma, a semicolon or a colon; any other comma belongs to the parameters before it.
    """
    names = "|".join(map(re.escape, METHODS))
    pieces = re.split(rf";|,(?=\s*(?:{names})\s*(?:[,;:]|$))", text)
    methods = tuple(piece.strip() for piece in pieces)
    for method in methods:
        name = method.partition(":")[0]
        for word in (each.strip() for each in name.split(",")):
            if word not in METHODS:
                raise ConfigError(
                    f"methods {text!r}: unknown method {word!r}, "
                    f"expected some of {', '.join(METHODS)}, separated by commas or semicolons"
                )
        parse_method(method)
    if twice := {method for method in methods if methods.count(method) > 1}:
        raise ConfigError(f"methods {text!r}: {min(twice)!r} is given twice")
    return methods


def slug(method: str) -> str:
    """The method as a folder's name: `dlag:gamma=1e-5,D=20` is `dlag-gamma=1e-5-D=20`."""
    name = re.sub(r"[^A-Za-z0-9.=+_-]+", "-", method)
    if len(name) <= _LONGEST_SLUG:
        return name
    return f"{name[:_LONGEST_SLUG]}-{hashlib.sha256(method.encode()).hexdigest()[:8]}"


def labels(methods: Sequence[str]) -> dict[str, str]:
    """What to call each method: its name where that is enough, else with what sets it apart.

    Where that would be long, methods of one name are counted: `dlag #1`, `dlag #2`.
    """
    specs = {method: parse_method(method) for method in methods}
    called = {}
    for method, spec in specs.items():
        alike = [each for each in specs.values() if each.name == spec.name]
        apart = ",".join(
            f"{key}={value}"
            for key, value in spec.given.items()
            if any(each.given.get(key) != value for each in alike)
        )
        label = f"{spec.name}:{apart}" if apart else spec.name
        if len(label) > _LONGEST_LABEL and len(alike) > 1:
            label = f"{spec.name} #{alike.index(spec) + 1}"
        called[method] = label
    return called


def meanings(called: Mapping[str, str]) -> list[str]:
    """What labels leave out: `dlag #2: dlag:gamma=1e-5,D=20`, a line each."""
    return [f"{label}: {method}" for method, label in called.items() if label != method]


def base_of(methods: Sequence[str], wanted: str | None) -> str:
    """The method that ratios refer to: the first, or the one of that name or whole text."""
    if wanted is None:
        return methods[0]
    called = labels(methods)
    for method in methods:
        if wanted in (method, called[method]):
            return method
    raise ConfigError(f"base {wanted!r}: expected one of {', '.join(called.values())}")


def finished(request: RunRequest, *, data_sha256: str) -> Outcome | None:
    """The outcome that lies in the request's folder, if it is of the very same run, else None."""
    folder = RunFolder(request.out)
    method, seed = request.settings.method, request.settings.seed
    try:
        asked, found = identity(request, data_sha256=data_sha256), read_object(folder.run_path)
        if not _same(asked, found):
            for reason in other_bits(found, asked):
                log.info("%s, seed %d is made anew: %s", method, seed, reason)
            return None
        if folder.failure_path.exists():
            failure = str(read_object(folder.failure_path)["failure"])
            return Outcome(method, seed, request.out, None, failure, kept=True)
        read_object(folder.summary_path)  # written last: without it the run is not finished
        return Outcome(method, seed, request.out, folder.load(), kept=True)
    except (ConfigError, KeyError):
        return None


def _same(asked: dict[str, Any], found: dict[str, Any]) -> bool:
    return all(asked[key] == found.get(key) for key in asked if key != _ELSEWHERE)


def _made(request: RunRequest, view: CompareView) -> Outcome:
    method, seed = request.settings.method, request.settings.seed
    run = Run(request, view=view.of_run(method, seed))
    log.info("%s, seed %d: under way in %s", method, seed, request.out)
    try:
        return Outcome(method, seed, request.out, run.execute())
    except ConvergenceError as exc:
        failure = Ending.of(exc, method).text
        write_json(run.folder.failure_path, {"failure": failure})  # so it would end again
        return Outcome(method, seed, request.out, None, failure)
    except ConfigError:
        raise
    except DlagError as exc:
        if request.mode == "simulate":
            raise
        # another end of a mesh may be the machine's fault, and is worth another try
        return Outcome(method, seed, request.out, None, Ending.of(exc, method).text)
