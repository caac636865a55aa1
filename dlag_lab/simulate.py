"""The simulator: every node's engine in one process, with a loop where the sockets would be.

It walks the same steps as the network, from the shard's bytes to the frames, and must end with the
same bits. With `shuffle` the order in which nodes compute and frames arrive is drawn at random, as
an unfair network would have it; only the order on one edge is kept.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from coordinator.plan import Plan
from dlag_lab.referee import Judge
from dlag_lab.workers import Workers
from dlag_node.errors import LocalProtocolError
from dlag_node.rounds import Engine, Outgoing, RoundEnded
from dlag_node.rounds.course import Course
from dlag_node.rounds.leaving import model_of, model_path
from dlag_node.rounds.recorder import Recorder
from dlag_node.wire.frames import RoundFrame
from dlag_node.wire.observing import Horizon

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Arrival:
    """A frame on its way over one edge."""

    sender: int
    receiver: int
    frame: RoundFrame


_Event = _Arrival | int  # a frame arrives, or a node may advance


class Simulator:
    """All engines of a run, driven in one process."""

    def __init__(
        self, plan: Plan, *, shuffle: int | None = None, workers: Workers | None = None
    ) -> None:
        """`workers` are the plan's, where somebody has them already."""
        workers = workers or Workers(plan)
        self.engines = workers.engines
        self._courses = [Course(engine, Horizon(0, final=False)) for engine in self.engines]
        self._places = workers.places
        self._names = plan.dataset.table.names
        self._events: deque[_Event] = deque()
        self._random = None if shuffle is None else random.Random(shuffle)

    @property
    def ended(self) -> str:
        """Why there was no further round."""
        return self._courses[0].ended

    def stop(self, node: int, why: str) -> None:
        """Let a node that has just finished a round tell all others to stop."""
        self._courses[node].stop(why)

    def run(
        self,
        referee: Judge,
        *,
        records: Path | None = None,
        finished: Callable[[Engine], None] = lambda _: None,
    ) -> list[Array]:
        """Run to the referee's last word, or as far as the nodes agree; returns the last thetas.

        `finished` hears of each engine that has finished a round.
        """
        recorders = [
            None if records is None else Recorder(records, engine.node) for engine in self.engines
        ]
        try:
            while True:
                for course in self._courses:
                    course.horizon = referee.horizon
                self._events.extend(range(len(self.engines)))
                stuck = True
                while self._events:
                    engine = self._step()
                    if engine is None:
                        continue
                    stuck = False
                    recorder = recorders[engine.node]
                    if recorder is not None and engine.last_record is not None:
                        record = replace(engine.last_record, wait=0.0)  # here nobody waits
                        recorder.write(record, engine.method.theta)
                    referee.take(engine.node, engine.method.theta[None, :])
                    finished(engine)
                if self._courses[0].over:
                    if records is not None:
                        self._leave_models(records)
                    return [engine.method.theta for engine in self.engines]
                if stuck:
                    rounds = [engine.rounds for engine in self.engines]
                    raise LocalProtocolError(f"after rounds {rounds} nobody can go on")
        finally:
            for recorder in recorders:
                if recorder is not None:
                    recorder.close()

    def _leave_models(self, folder: Path) -> None:
        for place, engine in zip(self._places, self.engines, strict=True):
            enrol, assignment = place.enrol, place.assignment
            theta, rounds = engine.method.theta, engine.rounds
            model = model_of(enrol, assignment, theta, rounds=rounds, names=self._names)
            model.save(model_path(folder, enrol.node))

    def _step(self) -> Engine | None:
        """One event; returns the engine that finished a round by it, if one did."""
        event = self._pick()
        if isinstance(event, _Arrival):
            self.engines[event.receiver].deliver(event.sender, event.frame)
            event = event.receiver
        engine = self.engines[event]
        if not self._courses[event].may_advance:
            return None
        outgoing = engine.advance()
        self._events.append(engine.node)  # it may be able to go on at once
        if isinstance(outgoing, RoundEnded):
            return engine
        if isinstance(outgoing, Outgoing):
            for neighbor in engine.barrier.neighbors:
                if outgoing.is_for(neighbor):
                    self._events.append(_Arrival(engine.node, neighbor, outgoing.frame))
        return None

    def _pick(self) -> _Event:
        if self._random is None:
            return self._events.popleft()
        i = self._random.randrange(len(self._events))
        chosen = self._events[i]
        if isinstance(chosen, _Arrival):  # the order on one edge is kept: take its oldest
            edge = (chosen.sender, chosen.receiver)
            i, chosen = next(
                (at, event)
                for at, event in enumerate(self._events)
                if isinstance(event, _Arrival) and (event.sender, event.receiver) == edge
            )
        del self._events[i]
        return chosen


def engines_of(plan: Plan) -> list[Engine]:
    """Every node's engine."""
    return Workers(plan).engines
