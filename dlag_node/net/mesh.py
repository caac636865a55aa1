"""One node in its mesh: links on one side, engine on the other, and the loop between them.

Everything happens in `_pump`: take what waits, let the engine advance when it can, send, and look
once more before sleeping. No task, no future and no lock per message.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from time import perf_counter

from dlag_node.errors import DlagError, NeighborTimeout, PeerRefused, RunAborted
from dlag_node.net.computing import Computing, Result
from dlag_node.net.last_words import LastWords
from dlag_node.net.links import Links
from dlag_node.net.observer import Observed
from dlag_node.net.opening import Opening
from dlag_node.net.waits import Waits
from dlag_node.net.wish import Wish
from dlag_node.net.witness import Witness
from dlag_node.rounds import Engine, Outgoing
from dlag_node.rounds.keeper import Keeper
from dlag_node.rounds.recorder import Recorder
from dlag_node.wire.control import Unopened
from dlag_node.wire.frames import Abort, Done, Frame, Hello, Need, Refuse

log = logging.getLogger(__name__)

_PUMPS_AT_MOST = 64  # then the loop gets a turn: signals and timers are never starved
_NEED_AFTER = 0.25  # seconds at the barrier before the neighbors are asked again; doubles
_NEED_AT_MOST = 4.0
_NEED_AT_LEAST = 0.01
_GOODBYE_SECONDS = 10.0
_LABORATORY_AFTER = 2.0  # seconds at the barrier before the laboratory hears of us again


class MeshNode:
    """Runs one node's engine over its links until the horizon is final and reached."""

    def __init__(
        self,
        engine: Engine,
        links: Links,
        *,
        rounds: int,
        neighbor_timeout: float,
        wish: Wish | None = None,
        recorder: Recorder | None = None,
        observed: Observed | None = None,
        keeper: Keeper | None = None,
        witness: Witness | None = None,
        finished: bool = False,
        tell: Callable[[Unopened], None] = lambda _: None,
    ) -> None:
        self.engine = engine
        self.links = links
        self._agreement = engine.stopping.agreement
        self.seconds = 0.0  # of the rounds alone
        self._limit = rounds
        # a watched node goes nowhere before the laboratory has spoken
        self._horizon, self._final = (rounds, True) if observed is None else (0, False)
        if finished:  # in an earlier life: what is left is to say goodbye
            self._horizon, self._final = engine.rounds, True
        self._timeout = neighbor_timeout
        self._wish = wish or Wish()
        self._recorder = recorder
        self._observed = observed
        self._keeper = keeper
        self._witness = witness
        self._computing = Computing(engine)
        self._last_words = LastWords(links, engine.barrier.neighbors)
        self._done: set[int] = set() if keeper is None else keeper.done
        self._ahead: dict[int, int] = {}  # neighbors that are further than we are, and where
        self._news_from = 0  # the exchange from which on no neighbor can have a frame of ours
        self._lasting: set[int] = set()  # neighbors that come back when they crash
        self._said_goodbye = False
        self._waits = Waits()
        self._opening = Opening(engine.node, links, neighbor_timeout, tell)
        self._patient_since = perf_counter()
        self._need_after = _NEED_AFTER
        self._begun_at: float | None = None
        self._asking: asyncio.Task[None] | None = None  # for the laboratory

    async def run(self) -> None:
        """All rounds, and goodbye; the error that ends the run is told to the neighbors."""
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self.links.socket, self._pump)
        if self._observed is not None:
            self._loop.add_reader(self._observed.socket, self._hear_laboratory)
        self._timer = self._loop.call_later(_NEED_AFTER, self._tick)
        try:
            self._pump()  # primes the descriptors: they tell of edges only
            await self._over
        except RunAborted as exc:
            await self._end(str(exc))
            raise
        except asyncio.CancelledError:
            await self._end(f"node {self.engine.node} was asked to end")
            raise
        except Exception as exc:
            await self._end(f"node {self.engine.node}: {type(exc).__name__}: {exc}")
            raise
        finally:
            self._timer.cancel()
            if self._asking is not None:
                self._asking.cancel()
            self._loop.remove_reader(self.links.socket)
            if self._observed is not None:
                self._loop.remove_reader(self._observed.socket)

    @property
    def ended(self) -> str:
        """Why there was no further round."""
        return self._agreement.why or "rounds"

    def control(self, neighbor: int, frame: Frame) -> None:
        """A frame from a neighbor that is none of a round's."""
        if self._last_words.said:
            self._last_words.hear(neighbor, frame)
        elif isinstance(frame, Need):
            self._answer(neighbor, frame.seq)
        elif isinstance(frame, Done):
            self._done.add(neighbor)
            if self._said_goodbye:
                self._save()  # should we crash now, we need not wait for this one again
        elif isinstance(frame, Abort):
            raise RunAborted(frame.reason)
        elif isinstance(frame, Refuse):
            raise PeerRefused(f"neighbor {neighbor} refused us: {frame.reason}")

    def opened(self, neighbor: int, words: Hello) -> None:
        """A link is up, for the first time or again: send what the neighbor may lack."""
        log.debug("link to neighbor %d is up, it is at exchange %d", neighbor, words.need)
        if self._last_words.said:
            self._last_words.repeat(neighbor)
            return
        if words.back:
            self.engine.keep_for(words.back)
            self._lasting.add(neighbor)
        if self._keeper is not None:
            self._keeper.meet(neighbor, self.links.address_of(neighbor))
        if words.need > self.engine.seq:
            self._ahead[neighbor] = words.need
        self._news_from = max(self._news_from, words.need + 2)
        if self._observed is not None and self._begun_at is None and not self.links.down:
            self._observed.ready(self.engine.rounds)
        self._answer(neighbor, words.need)

    def _answer(self, neighbor: int, need: int) -> None:
        """Send what goes on from exchange `need`, and Done again if we are."""
        for outgoing in self.engine.frames_from(need):
            self.links.resend(neighbor, outgoing.raw_for(neighbor))
        if self._said_goodbye:
            self.links.send(neighbor, Done(self.engine.seq))

    def _pump(self) -> None:
        if self._computing.busy or self._over.done():
            return
        try:
            engine = self.engine
            for _ in range(_PUMPS_AT_MOST):
                while self._may_begin() if engine.between_rounds else not engine.barrier.lacking:
                    if self._computing.heavy:
                        self._advance_in_thread()
                        return
                    self._advance()
                if not self.links.drain():
                    self._maybe_leave()
                    return
            self._loop.call_soon(self._pump)
        except Exception as exc:  # a callback has no caller: it is `run` that must end
            self._fail(exc)

    def _may_begin(self) -> bool:
        """Whether another round is granted; the first one waits until every link is up."""
        if self.engine.rounds >= self._horizon and not self._final:
            self._listen()
        begun = self._begun_at is not None or not self.links.down
        return begun and not self._reached

    @property
    def _reached(self) -> bool:
        """Whether this is as far as we may go, or as all have agreed to."""
        return self.engine.rounds >= self._horizon or self._agreement.over

    def _advance(self) -> None:
        if self._begun_at is None:
            self._begun_at = perf_counter()
        self._after(self._computing.here())

    def _advance_in_thread(self) -> None:
        # what arrives meanwhile waits in ZeroMQ's queues; its descriptor would wake us all the time
        self._loop.remove_reader(self.links.socket)
        self._computing.elsewhere(self._loop, self._back)

    def _back(self, result: Result) -> None:
        """The thread is done."""
        if self._over.done():
            return
        self._loop.add_reader(self.links.socket, self._pump)
        try:
            self._after(result())
        except Exception as exc:
            self._fail(exc)
            return
        self._pump()

    def _after(self, outgoing: Outgoing | None) -> None:
        self._need_after = _NEED_AFTER
        if self._waits.said:
            self._waits.over()
        if outgoing is not None:
            if outgoing.to is None:
                self.links.broadcast(outgoing.raw)
            else:
                self.links.deal(outgoing.raw_for)
            if self._ahead:
                self._catch_up()
            return
        record, theta = self.engine.last_record, self.engine.method.theta
        assert record is not None
        if self._witness is not None:
            self._witness.take(record)
        if self._recorder is not None:
            self._recorder.write(record, theta)
        announced = self._announce()
        if announced or (self._keeper is not None and self._keeper.due(self.engine)):
            self._save()  # before a frame of the next round leaves
        if announced:
            self._save()  # in both slots: what was told from outside no one can compute again
        if self._observed is not None:
            self._observed.take(record, theta, flush=self._reached)

    def _announce(self) -> bool:
        """Between two rounds: tell all to stop, if there is a wish that they do.

        Not in a frame that a neighbor may have from us without that word, from before a crash: one
        that is at exchange e has sent none beyond e, so that we were at e + 1 at most.
        """
        assert self._begun_at is not None
        why, agreement = self._wish.why(perf_counter() - self._begun_at), self._agreement
        if why is None or agreement.known or self.engine.seq < self._news_from:
            return False
        agreement.announce(why)
        return True

    def _catch_up(self) -> None:
        """We have fallen back, and they have sent this exchange's frame long ago: ask at once."""
        seq = self.engine.seq
        missing = set(self.engine.barrier.missing())
        for neighbor, at in list(self._ahead.items()):
            if at <= seq:
                del self._ahead[neighbor]
            elif neighbor in missing:
                self.links.send(neighbor, Need(seq))

    def _save(self) -> None:
        """Records first: those of saved rounds are not written again after a crash."""
        if self._keeper is None:
            return
        if self._recorder is not None:
            self._recorder.flush(durable=self._keeper.durable)
        self._keeper.save(self.engine, finished=self._said_goodbye)

    def _hear_laboratory(self) -> None:
        """The laboratory's descriptor has something: take it at once, or it would wake us again."""
        try:
            self._listen()
        except DlagError as exc:
            self._fail(exc)
            return
        self._pump()

    def _listen(self) -> None:
        """Hear how far we may go; only a watched node has a horizon that is not final."""
        assert self._observed is not None
        word = self._observed.horizon()
        if word is not None:
            self._horizon, self._final = min(word.rounds, self._limit), word.final

    def _maybe_leave(self) -> None:
        """After the last round: say Done, and leave when every neighbor has said it too."""
        if not (self._reached and self.engine.between_rounds):
            return
        if not (self._final or self._agreement.over):
            return
        if not self._said_goodbye:
            self._said_goodbye = True
            self._patient_since = perf_counter()
            if self._begun_at is not None:
                self.seconds = perf_counter() - self._begun_at
            self._save()
            for neighbor in self.engine.barrier.neighbors:
                self.links.send(neighbor, Done(self.engine.seq))
            self._loop.call_soon(self._pump)  # sending may have eaten an edge: look once more
        elif len(self._done) == len(self.engine.barrier.neighbors):
            self._over.set_result(None)

    def _tick(self) -> None:
        """Whoever waits long asks again; whoever waits too long gives up."""
        if self._over.done():
            return
        waited = perf_counter() - max(self._patient_since, self.engine.progress_at)
        pause = min(self._need_after, max(self._timeout - waited, _NEED_AT_LEAST))
        self._timer = self._loop.call_later(pause, self._tick)
        if self._computing.busy or waited < pause:
            return
        self._need_after = min(2 * self._need_after, _NEED_AT_MOST)
        try:
            self._wait_for(waited)
        except DlagError as exc:
            self._fail(exc)
            return
        self._pump()

    def _wait_for(self, waited: float) -> None:
        if self._said_goodbye:
            missing = [j for j in self.engine.barrier.neighbors if j not in self._done]
            # one that comes back after a crash may need our frames to get to the end
            patience = self._timeout if self._lasting & {*missing} else _GOODBYE_SECONDS
            if waited > min(patience, self._timeout):
                log.info("leaving, though neighbors %s have not said goodbye", missing)
                self._over.set_result(None)
                return
        elif not self.engine.between_rounds:
            missing = self.engine.barrier.missing()
        else:
            missing = self.links.down
            if self._begun_at is None and missing:
                self._opening.look(waited, missing)
        if not missing:
            self._patient_since = perf_counter()
            self._wait_for_laboratory()
            return
        where = ", ".join(f"{j} at {self.links.address_of(j)}" for j in missing)
        if waited > self._timeout:
            raise NeighborTimeout(
                f"node {self.engine.node} waited {waited:.1f} s at exchange {self.engine.seq} "
                f"for neighbors {missing}: {'; '.join(map(self.links.whereabouts, missing))}"
                + ("" if self._keeper is None else f"; {self._keeper.comfort}")
            )
        self._waits.say(waited, self.engine.seq, where)
        for neighbor in missing:
            if neighbor in self.links.down:
                self.links.greet(neighbor)
            else:
                self.links.send(neighbor, Need(self.engine.seq))
        if waited > _LABORATORY_AFTER and not self._final:
            # perhaps the neighbor waits for its word, and it is a new one that lacks ours
            self._wait_for_laboratory()

    def _wait_for_laboratory(self) -> None:
        """It may be slow, or a new one that has not heard of us: what we did is in our files."""
        if self._observed is None or (self._asking is not None and not self._asking.done()):
            return
        if self._recorder is not None:
            self._recorder.flush()
        self._asking = self._loop.create_task(self._observed.wait(self.engine.rounds))

    def _fail(self, exc: Exception) -> None:
        if not self._over.done():
            self._over.set_exception(exc)

    async def _end(self, reason: str) -> None:
        self._loop.remove_reader(self.links.socket)
        await self._opening.settle()
        await self._last_words.say(reason, begun=self._begun_at is not None)
