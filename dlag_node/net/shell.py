"""The shell around a node's state: sockets, timers, threads and files, and no decision of its own.

Everything happens in `_pump`: carry out the orders, take one message, and so on until nothing
moves; it looks at the socket once more before it sleeps. No task, no future and no lock a message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter

from dlag_node.errors import DlagError, NeighborTimeout, RunAborted
from dlag_node.net.books import Books
from dlag_node.net.computing import Computing, Result
from dlag_node.net.links import Links
from dlag_node.net.node_state import NodeState
from dlag_node.net.opening import Opening
from dlag_node.net.orders import (
    Ask,
    Compute,
    Fail,
    GiveUp,
    Leave,
    Meet,
    Mention,
    Order,
    Reckon,
    Resend,
    Save,
    Search,
    Send,
    Show,
    ShowHalted,
    ShowReady,
    WakeAt,
)
from dlag_node.net.router import Router
from dlag_node.net.waits import Waits
from dlag_node.rounds import Outgoing, RoundEnded

_MESSAGES_AT_MOST = 64  # then the loop gets a turn: signals and timers are never starved
_STAY_SECONDS = 3.0  # for neighbors that may be about to call, when we must end
_LISTEN_EVERY = 0.02  # seconds


class Shell:
    """Runs one node's state over its links until it leaves, or until it must end."""

    def __init__(
        self,
        state: NodeState,
        router: Router,
        links: Links,
        *,
        books: Books | None = None,
        opening: Opening | None = None,
    ) -> None:
        self._state = state
        self._router = router
        self._links = links
        self._books = books = books or Books(state.engine)
        self._opening = opening
        self._engine = state.engine
        self._computing = Computing(state.engine)
        self._waits = Waits()
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False  # while a thread computes, and after the end
        self._deeds: dict[type[Order], Callable[..., None]] = {
            Compute: self._compute,
            Outgoing: links.broadcast,
            RoundEnded: books.note,
            Send: lambda order: links.send(order.neighbor, order.frame),
            Resend: lambda order: links.resend(order.neighbor, order.raw),
            Ask: lambda order: links.ask(order.neighbor, order.seq),
            Meet: lambda order: books.meet(order.neighbor, links.address_of(order.neighbor)),
            Save: lambda order: books.save(finished=order.finished, done=order.done),
            Reckon: lambda _: books.reckon(),
            Show: lambda order: books.show(order.record, flush=order.flush),
            ShowReady: lambda order: books.show_ready(order.rounds),
            ShowHalted: lambda order: books.show_halted(order.rounds),
            Mention: self._mention,
            Search: self._search,
            WakeAt: self._wake_at,
            Leave: lambda _: self._leave(),
            Fail: lambda order: self._fail(order.error),
            GiveUp: self._give_up,
        }

    async def run(self) -> None:
        """All rounds, and goodbye; the error that ends the run is told to the neighbors."""
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._router.socket, self._pump)
        self._router.woken = self._pump
        laboratory = self._books.observed
        if laboratory is not None:
            self._loop.add_reader(laboratory.socket, self._hear_laboratory)
        node = self._engine.node
        try:
            self._pump()  # primes the descriptors: they tell of edges only
            await self._over
        except RunAborted as exc:
            await self._end(str(exc))
            raise
        except asyncio.CancelledError:
            await self._end(f"node {node} was asked to end")
            raise
        except Exception as exc:
            await self._end(f"node {node}: {type(exc).__name__}: {exc}")
            raise
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._books.close()
            self._loop.remove_reader(self._router.socket)
            if laboratory is not None:
                self._loop.remove_reader(laboratory.socket)

    def _pump(self) -> None:
        if self._paused:
            return
        try:
            next_order, deeds, drain = self._state.next_order, self._deeds, self._links.drain
            for _ in range(_MESSAGES_AT_MOST):
                while (order := next_order()) is not None:
                    deeds[type(order)](order)
                    if self._paused:
                        return
                if not (drain() or self._heard()):
                    return
            self._loop.call_soon(self._pump)
        except Exception as exc:  # a callback has no caller: it is `run` that must end
            self._fail(exc)

    def _compute(self, _: Compute) -> None:
        if self._waits.said:
            self._waits.over()
        if not self._computing.heavy:
            self._state.computed(self._computing.here(), self._engine.progress_at)
            return
        # what arrives meanwhile waits in ZeroMQ's queues; its descriptor would wake us all the time
        self._loop.remove_reader(self._router.socket)
        self._paused = True
        self._computing.elsewhere(self._loop, self._back)

    def _back(self, result: Result) -> None:
        """The thread is done."""
        if self._over.done():
            return
        self._paused = False
        self._loop.add_reader(self._router.socket, self._pump)
        try:
            self._state.computed(result(), self._engine.progress_at)
        except Exception as exc:
            self._fail(exc)
            return
        self._pump()

    def _hear_laboratory(self) -> None:
        """The laboratory's descriptor has something: take it at once, or it would wake us again."""
        try:
            self._heard(always=True)
        except DlagError as exc:  # it has refused us
            self._fail(exc)
            return
        self._pump()

    def _heard(self, *, always: bool = False) -> bool:
        """Whether the laboratory has said something; what we sent may have eaten the edge."""
        if self._books.observed is None or not (always or self._state.halted):
            return False
        horizon = self._books.horizon()
        if horizon is not None:
            self._state.granted(horizon)
        return horizon is not None

    def _mention(self, order: Mention) -> None:
        where = ", ".join(f"{j} at {self._links.address_of(j)}" for j in order.missing)
        self._waits.say(order.waited, self._engine.seq, where)

    def _search(self, order: Search) -> None:
        if self._opening is not None:
            self._opening.look(order.waited, order.missing)

    def _wake_at(self, order: WakeAt) -> None:
        self._timer = self._loop.call_later(order.at - perf_counter(), self._wake)

    def _wake(self) -> None:
        if not self._over.done():
            self._state.wake(perf_counter())
            self._pump()

    def _give_up(self, order: GiveUp) -> None:
        engine, missing = self._engine, list(order.missing)
        text = (
            f"node {engine.node} waited {order.waited:.1f} s at exchange {engine.seq} "
            f"for neighbors {missing}: {'; '.join(map(self._links.whereabouts, missing))}"
        )
        self._fail(NeighborTimeout(text + self._books.comfort))

    def _leave(self) -> None:
        self._paused = True
        self._over.set_result(None)

    def _fail(self, exc: Exception) -> None:
        self._paused = True
        if not self._over.done():
            self._over.set_exception(exc)

    async def _end(self, reason: str) -> None:
        """Tell every neighbor why.

        Before the first round some may be about to call us: we stay for them a few seconds, since
        they would wait for us as long as for one that comes back.
        """
        self._loop.remove_reader(self._router.socket)
        if self._opening is not None:
            await self._opening.settle()
        self._state.abort(reason)
        begun = self._state.begun or self._computing.busy
        until = perf_counter() + (0.0 if begun else _STAY_SECONDS)
        while True:
            while order := self._state.next_order():
                self._deeds[type(order)](order)
            if perf_counter() >= until or self._state.knows({*self._links.unreachable}):
                return
            if not self._links.drain():
                await asyncio.sleep(_LISTEN_EVERY)
