"""What a run takes to the target, counted in the simulator: the part that the tables share.

The simulator counts what real processes count, to the last message.
"""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.plan import Plan, RunSettings
from dlag_lab.referee import Referee
from dlag_lab.simulate import Simulator
from dlag_node.errors import ConvergenceError
from dlag_node.rounds import Engine

TARGET = 1e-7
ROUNDS = 30_000

# The dual methods with Newton's method inside: the same messages, in a fraction of the time.
NEWTON = "solver=newton,stop=exact:1e-10"


@dataclass(frozen=True, slots=True)
class Job:
    """One run: a method in a place, given up after `cap` messages."""

    method: str
    settings: tuple[tuple[str, object], ...]
    preset: str = "paper"
    cap: float = float("inf")


@dataclass(frozen=True, slots=True)
class Count:
    """What a run took to the target; `why` it did not get there, if it did not."""

    rounds: int = 0
    messages: int = 0
    payload: int = 0
    gradients: int = 0
    why: str = ""


class _EnoughError(Exception):
    """The run has sent more than it may."""


def count(job: Job) -> Count:
    """Run the job in the simulator, to the target or to its cap."""
    rows: list[list[tuple[int, int, int]]] = []

    def note(engine: Engine) -> None:
        record = engine.last_record
        assert record is not None
        while len(rows) <= record.k:
            rows.append([])
        rows[record.k].append((record.deltas, record.payload_bytes, record.gradients))
        nonlocal sent
        sent += record.deltas
        if sent > job.cap:
            raise _EnoughError

    sent = 0
    settings = RunSettings(
        method=job.method, preset=job.preset, rounds=ROUNDS, **dict(job.settings)
    )  # type: ignore[arg-type]
    try:
        plan = Plan(settings)
        referee = Referee(plan, target=TARGET, rounds=ROUNDS, report=lambda _: None)
        Simulator(plan).run(referee, finished=note)
    except _EnoughError:
        return Count(why=f"> {sent:,}")
    except ConvergenceError as exc:
        return Count(why=str(exc).partition(":")[0].removeprefix("the run ")[:40])
    if referee.reached is None:
        return Count(why=f"not in {ROUNDS:,} rounds")
    done = [each for row in rows[: referee.reached] for each in row]
    messages, payload, gradients = (sum(column) for column in zip(*done, strict=True))
    return Count(referee.reached, messages, payload, gradients)
