"""Before a mesh of containers starts: good settings, and nothing left of an earlier run."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from coordinator.plan import Plan
from dlag_lab.runs import RunRequest
from dlag_lab.workers import Workers
from dlag_node.errors import ConfigError
from dlag_node.rounds.state_folder import StateFolder

log = logging.getLogger(__name__)


def check(request: RunRequest) -> Plan:
    """The plan of the run; every bad setting is a ConfigError here, before a node has started."""
    plan = Plan(request.settings)
    Workers(plan).check()
    return plan


def clear_states(folder: Path) -> int:
    """Remove the state folders in `folder` that no node uses; returns how many there were.

    A node goes on from its state folder, so that a new run needs new ones.
    """
    removed = 0
    for state in sorted(folder.glob("*/")):
        try:
            with StateFolder(state):
                shutil.rmtree(state)
                removed += 1
        except ConfigError as exc:
            log.warning("kept: %s", exc)
        except OSError as exc:
            raise ConfigError(f"cannot remove {state}: {exc}") from exc
    return removed
