"""One run with its faults, compared with the same run where nothing happens."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from coordinator.plan import Plan, RunSettings
from dlag_lab.faults.faults import HEARTBEAT, Clock, Injector, draw
from dlag_lab.faults.wires import Wires
from dlag_lab.result import RunResult
from dlag_lab.resuming import other_bits
from dlag_lab.runs import Run, RunRequest
from dlag_node.errors import ConfigError, DlagError

log = logging.getLogger(__name__)

AFTER = 60  # rounds without a new fault, at the end
SAME = (
    "theta_sha256",
    "rounds",
    "deltas_sent",
    "tokens_sent",
    "quiet",
    "bytes_frames",
    "sample_gradients",
)
_NEVER = 1e-30  # a target out of reach: the laboratory then watches every round
_RESUMES = 30
_NEIGHBOR_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a disturbed run."""

    faults: Counter[str]  # by kind, those that were done
    killed: int  # processes
    resumes: int  # after full disks
    seconds: float
    wrong: tuple[str, ...]  # what differs from the undisturbed run


def disturbed(
    settings: RunSettings, folder: Path, *, faults: int, kinds: Sequence[str], checkpoint: int = 1
) -> Outcome:
    """Run with faults by the run's seed, to the end, and compare with the simulator."""
    request = RunRequest(
        settings=settings,
        mode="mesh",
        target=_NEVER,
        out=folder / "run",
        checkpoint=checkpoint,
        restarts=10 * faults,
        neighbor_timeout=_NEIGHBOR_TIMEOUT,
        heartbeat=HEARTBEAT,
    )
    graph = Plan(settings).graph
    schedule = draw(
        settings.seed,
        faults=faults,
        rounds=settings.rounds - AFTER,
        neighbors=[graph.neighbors(i) for i in range(graph.nodes)],
        kinds=kinds,
    )
    clock = Clock(folder / "clock") if "clock jump" in kinds else None
    started = perf_counter()
    with Wires(graph.nodes, clock.environment if clock else None) as wires:
        injector = Injector(schedule, wires, clock)
        result, resumes = _to_the_end(request, injector, wires)
        seconds = perf_counter() - started
        undisturbed = replace(request, mode="simulate", out=folder / "simulated")
        expected = Run(undisturbed, view=Injector([], wires, None)).execute()
    wrong = tuple(each for each in SAME if result.summary[each] != expected.summary[each])
    if wrong:
        wrong += tuple(other_bits(result.run, expected.run))
    return Outcome(injector.done, injector.killed, resumes, seconds, wrong)


def _to_the_end(request: RunRequest, injector: Injector, wires: Wires) -> tuple[RunResult, int]:
    """Run, and resume as often as a full disk ends it."""
    for resumes in range(_RESUMES):
        try:
            run = Run(request, started=injector.started, view=injector, hosts=wires)
            return run.execute(), resumes
        except ConfigError:
            raise
        except DlagError as exc:
            log.info("resumed after: %s", exc)
            request = replace(request, resume=True)
    raise DlagError(f"{request.out} did not end after {_RESUMES} resumes")
