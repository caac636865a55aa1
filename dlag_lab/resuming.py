"""Whether an interrupted run on a mesh can go on, and with which settings."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from coordinator.plan import RunSettings
from dlag_lab.folder import RunFolder, read_object
from dlag_node.errors import ConfigError

log = logging.getLogger(__name__)

_DECIDE_BITS = ("code_sha256", "versions", "blas")  # what may be newer than when the run began


def settings_of(path: Path) -> tuple[RunSettings, float | None, int]:
    """Settings, target and checkpoint interval of the run that lies there."""
    folder = RunFolder(path)
    run = read_object(folder.run_path)
    try:
        settings = RunSettings(**{each.name: run[each.name] for each in fields(RunSettings)})
        target, every = run["target"], run["checkpoint"]
    except (KeyError, TypeError) as exc:
        raise ConfigError(f"{folder.run_path} is not of a run that can go on: {exc}") from exc
    return settings, target, every


def check_resumable(folder: RunFolder, asked: Mapping[str, Any]) -> None:
    """ConfigError unless every node's place is there, and the data are still the same."""
    run = read_object(folder.run_path)
    if run.get("mode") != "mesh" or not run.get("checkpoint"):
        raise ConfigError(f"{folder.path} has no checkpoints: it was run without --checkpoint")
    if folder.summary_path.exists():
        raise ConfigError(f"{folder.path} holds a finished run: dlag report shows it")
    if run["data_sha256"] != asked["data_sha256"]:
        raise ConfigError(f"{folder.path}: the data of this run have changed since")
    lost = [i for i in range(run["nodes"]) if not (folder.state_path(i) / "place").exists()]
    if lost:
        raise ConfigError(
            f"{folder.path}: nodes {lost} had not begun: nothing is lost by starting it anew"
        )
    for reason in other_bits(run, asked):
        log.warning("%s: the bits may be others than had it not been interrupted", reason)


def other_bits(run: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Why two runs of the same settings may have other bits, by their run.json."""
    return [
        f"{name} was {_said(run.get(name))} and is {_said(other.get(name))}"
        for name in _DECIDE_BITS
        if run.get(name) != other.get(name)
    ]


def _said(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key} {each}" for key, each in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)[:12]
