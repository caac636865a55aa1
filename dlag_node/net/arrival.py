"""How a node comes to its place: from the coordinator, or, after a crash, from its state folder."""

from __future__ import annotations

import logging
from contextlib import ExitStack, suppress
from dataclasses import dataclass

import zmq

from dlag_node.data.held import Holding
from dlag_node.errors import ConfigError, RemoteProtocolError
from dlag_node.net.bootstrap import Bootstrap, Forgotten
from dlag_node.net.credentials import Credentials
from dlag_node.net.router import Router
from dlag_node.net.settings import NodeSettings
from dlag_node.net.sockets import Socket, port_of, reached_at, resolved
from dlag_node.problems import Problem
from dlag_node.rounds.state_folder import Place, StateFolder
from dlag_node.rounds.worker import problem_of
from dlag_node.wire.control import FromNode
from dlag_node.wire.limits import MAX_VECTORS, frame_limit

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Arrived:
    """A node's place in a run."""

    place: Place
    problem: Problem  # f_i
    router: Router  # where it listens
    address: str  # at which neighbors reach it


class Arrival:
    """Finds out what the run is and where we stand in it, and opens our socket."""

    def __init__(
        self,
        settings: NodeSettings,
        context: zmq.Context[Socket],
        stack: ExitStack,
        folder: StateFolder | None,
        credentials: Credentials | None,
    ) -> None:
        self._settings = settings
        self._context = context
        self._stack = stack
        self._folder = folder
        self._keys = None if credentials is None else credentials.keys
        self._coordinator: Bootstrap | None = None
        self._router: Router | None = None  # once we know how long its frames may be
        if settings.coordinator is not None:
            self._coordinator = Bootstrap(
                context,
                settings.coordinator,
                timeout=settings.join_timeout,
                identity=None if folder is None else folder.identity,
                credentials=credentials,
            )
            stack.callback(self._coordinator.close)

    async def place(self) -> Arrived:
        """Join, or come back."""
        place = None if self._folder is None else self._folder.place()
        if place is None:
            return await self._join()
        return await self._come_back(place)

    def tell(self, message: FromNode) -> None:
        """Tell the coordinator, if there is one."""
        if self._coordinator is not None:
            self._coordinator.tell(message)

    def fail(self, reason: str) -> None:
        """Tell the coordinator that this node gives up."""
        if self._coordinator is not None:
            self._coordinator.fail(reason)

    async def _join(self) -> Arrived:
        coordinator = self._coordinator
        if coordinator is None:
            raise ConfigError(
                f"{self._settings.state} holds no place in a run: expected a coordinator's address"
            )
        own = None if self._settings.data is None else self._settings.data.open()
        await coordinator.call()
        while True:
            try:
                return await self._take_place(coordinator, own)
            except Forgotten as exc:
                log.warning("%s: it has begun anew, and so do we", exc)

    async def _take_place(self, coordinator: Bootstrap, own: Holding | None) -> Arrived:
        said = None if own is None else own.summary
        enrol, shard = await coordinator.join(self._settings.node, said)
        problem = problem_of(enrol, shard if own is None else own.table)
        log.info("node %d: %d samples, %d features", enrol.node, problem.samples, enrol.dim)
        router = self._router = self._router or self._listen(problem)
        if router.limit != _limit(problem):
            raise RemoteProtocolError(
                f"the coordinator came back with {problem.dim} features, and had another number "
                "before: start this node again"
            )
        address = self._settings.advertise or reached_at(router.address, coordinator.endpoint)
        log.info("neighbors reach us at %s", address)
        assignment = await coordinator.report(problem, address, held=own is not None)
        place = Place(enrol, assignment, shard if own is None else own.file, router.address)
        if self._folder is not None:
            self._folder.write_place(place)
        return Arrived(place, problem, router, address)

    async def _come_back(self, place: Place) -> Arrived:
        log.info("node %d again, by %s", place.enrol.node, self._settings.state)
        problem = problem_of(place.enrol, place.samples())
        router = self._listen(problem, place.bound)
        endpoint = None
        if self._coordinator is not None:
            try:
                await self._coordinator.call()  # it may be gone: nobody waits for its answer
                endpoint = self._coordinator.endpoint
            except ConfigError as exc:
                log.warning("going on without: %s", exc)
                self._coordinator = None
        if endpoint is None and place.assignment.peers:
            with suppress(ConfigError):
                endpoint = await resolved(place.assignment.peers[0].address)
        address = self._settings.advertise
        if address is None:
            address = router.address if endpoint is None else reached_at(router.address, endpoint)
        log.info("neighbors reach us at %s", address)
        return Arrived(place, problem, router, address)

    def _listen(self, problem: Problem, before: str | None = None) -> Router:
        """Our socket: where we were `before`, if any port will do and that one is still free.

        The address comes before the assignment, and with it before the method and its width.
        """
        bind, again = self._settings.bind, None
        if before is not None and bind.endswith(":*"):
            again = f"{bind[:-1]}{port_of(before)}"
        limit = _limit(problem)
        router = Router(
            self._context,
            bind,
            limit=limit,
            rather=again,
            keys=self._keys,
            heartbeat=self._settings.heartbeat,
        )
        self._stack.callback(router.close)
        return router


def _limit(problem: Problem) -> int:
    return frame_limit(MAX_VECTORS * problem.dim)
