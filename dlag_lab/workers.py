"""All workers of a plan in this process: what each would be told, its f_i, its engine if asked for.

Enrolled by the very bytes and words that a coordinator would send. Who only asks for constants
(`problems`, `config`) builds no engine, and who runs them builds each once.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

from coordinator.plan import Plan
from dlag_node.problems import Problem
from dlag_node.rounds import Engine
from dlag_node.rounds.state_folder import Place
from dlag_node.rounds.worker import engine_for, problem_of
from dlag_node.wire.control import Report


class Workers:
    """The workers of one run, by id; each listens at its address, where that matters."""

    def __init__(self, plan: Plan, addresses: Sequence[str] | None = None) -> None:
        self.plan = plan
        told = [plan.enrolment(node) for node in range(plan.nodes)]
        self.problems: list[Problem] = [problem_of(enrol, body) for enrol, body in told]
        bound = addresses or [""] * plan.nodes
        self._reports = [
            Report.of(address, problem)
            for address, problem in zip(bound, self.problems, strict=True)
        ]
        assignments = plan.assignments(self._reports)
        self.places = [
            Place(enrol, assignment, body, address)
            for (enrol, body), assignment, address in zip(told, assignments, bound, strict=True)
        ]
        self._engines: dict[int, Engine] = {}

    @property
    def config(self) -> str:
        """The hash of all that they agree on."""
        return self.places[0].assignment.config

    def engine(self, node: int) -> Engine:
        """One worker's engine; a bad parameter of the method is a ConfigError here."""
        if node not in self._engines:
            place = self.places[node]
            self._engines[node] = engine_for(place.enrol, place.assignment, self.problems[node])
        return self._engines[node]

    @property
    def engines(self) -> list[Engine]:
        """Everybody's."""
        return [self.engine(node) for node in range(self.plan.nodes)]

    def check(self) -> None:
        """ConfigError unless the method takes its parameters.

        One engine tells: they are refused by what all workers share, parameters and constants.
        """
        self.engine(0)

    def by(self, method: str) -> Workers:
        """The same workers in a run by another method."""
        other = copy(self)
        other.plan = self.plan.by(method)
        assignments = other.plan.assignments(self._reports)
        other.places = [
            replace(place, assignment=assignment)
            for place, assignment in zip(self.places, assignments, strict=True)
        ]
        other._engines = {}
        return other
