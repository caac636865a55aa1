"""Seeing a mesh through that others have started: containers, or nodes by hand on other hosts."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from dlag_lab.folder import RunFolder
from dlag_lab.laboratory import Laboratory, MeshOutcome
from dlag_node.errors import ConfigError
from dlag_node.net.kernel import count_path
from dlag_node.outcome import cause_of
from dlag_node.rounds.leaving import model_path

log = logging.getLogger(__name__)

_GIVE_UP_AFTER = 60.0  # seconds of silence once a node has given up: others start it again, or not


async def see_through(laboratory: Laboratory, bind: str) -> MeshOutcome:
    """All rounds of a run, from its nodes' first words to their last ones."""
    begun = perf_counter()
    address = laboratory.listen(bind)
    outcome = laboratory.outcome
    try:
        log.info("listening on %s for %d nodes", address, laboratory.nodes)
        await _until(laboratory, lambda: laboratory.all_ready)
        outcome.ready_seconds = perf_counter() - begun
        log.info("%d nodes are ready after %.2f s", laboratory.nodes, outcome.ready_seconds)
        await laboratory.tell_horizon()
        await _until(laboratory, lambda: laboratory.all_done)
    finally:
        laboratory.close()
    outcome.seconds = max(each.seconds for each in outcome.farewells.values())
    log.info("the rounds took %.2f s", outcome.seconds)
    return outcome


def collect(records: RunFolder, folder: RunFolder, *, nodes: int) -> None:
    """Copy what every node wrote into the run folder."""
    for node in range(nodes):
        for source, copy in (
            (records.record_path(node), folder.record_path(node)),
            (records.theta_path(node), folder.theta_path(node)),
            *_others(records, folder, node),
        ):
            try:
                shutil.copyfile(source, copy)
            except OSError as exc:
                raise ConfigError(f"the records of node {node}: {exc}") from exc


def _others(records: RunFolder, folder: RunFolder, node: int) -> list[tuple[Path, Path]]:
    """What may be missing, and where its copy goes.

    The node's model, if the operator wanted it elsewhere; what its kernel counted, if it did not.
    """
    pairs = [
        (of(records.path / "nodes", node), of(folder.path / "nodes", node))
        for of in (model_path, count_path)
    ]
    return [(source, copy) for source, copy in pairs if source.exists()]


async def _until(laboratory: Laboratory, enough: Callable[[], bool]) -> None:
    while not enough():
        patience = 1e3 * _GIVE_UP_AFTER if laboratory.fallen else None
        if not await laboratory.socket.poll(patience):
            first = cause_of(laboratory.fallen.values())
            raise first.kind(f"{first.who} gave up, and nobody says anything: {first.reason}")
        await laboratory.take(await laboratory.hear())
