"""What one node decides: events and the time in, orders out; no loop, no socket, no file, no clock.

Events are method calls: those of its links (`frame`, `control`, `opened`, `lost`), `computed` with
what the engine came to, `granted` with a new horizon, `wake` when the time has come, and `abort`
when the process around it must end. Then the shell takes orders (`net.orders`) one by one, until
there is none (`next_order`), and carries each out before it takes the next. At most one `Compute`
is under way; its result may come after other events.

    join the rounds  ->  say Done, stay for who may need our frames  ->  leave
    any time         ->  an error, ours or told by a neighbor: tell all, and end
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Set
from dataclasses import dataclass

from dlag_node.errors import PeerRefused, RunAborted
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
from dlag_node.net.wish import Wish
from dlag_node.rounds import Advance, Engine, Record, RoundEnded, Silence
from dlag_node.rounds.course import Course
from dlag_node.wire.frames import Abort, Done, Frame, Hello, Need, Refuse
from dlag_node.wire.limits import MAX_TEXT
from dlag_node.wire.observing import Horizon

log = logging.getLogger(__name__)

LOOK_AFTER = 0.25  # seconds of waiting before we look for whom; doubles
LOOK_AT_MOST = 4.0
_LOOK_AT_LEAST = 0.01
NEED_AFTER = 5.0  # seconds at the barrier before a neighbor whose link is up is asked; doubles
NEED_AT_MOST = 60.0
GOODBYE_SECONDS = 10.0
LABORATORY_AFTER = 2.0  # seconds at the barrier before the laboratory hears of us again

_COMPUTE = Compute()


@dataclass(frozen=True, slots=True)
class Past:
    """What a node knows from before a crash, beside its engine."""

    finished: bool = False  # it had made all of its rounds
    done: Set[int] = frozenset()  # neighbors that had said goodbye


class NodeState:
    """One node in its mesh, without the mesh."""

    def __init__(
        self,
        engine: Engine,
        *,
        rounds: int,
        neighbor_timeout: float,
        checkpoint: int = 0,
        watched: bool = False,
        wish: Wish | None = None,
        past: Past | None = None,
        now: float = 0.0,
    ) -> None:
        """At most so many `rounds`; saved every `checkpoint` of them, if that is not 0.

        One that is `watched` goes nowhere before the laboratory has spoken.
        """
        past = past or Past()
        self.engine = engine
        self.seconds = 0.0  # of the rounds alone
        horizon = Horizon(0, final=False) if watched else Horizon(rounds, final=True)
        if past.finished:  # what is left is to say goodbye
            horizon = Horizon(engine.rounds, final=True)
        self.course = Course(engine, horizon)
        self._limit = rounds
        self._watched = watched
        self._timeout = neighbor_timeout
        self._checkpoint = checkpoint
        self._wish = wish or Wish()
        self._orders: deque[Order] = deque()
        self._barrier = engine.barrier
        self.frame = engine.barrier.put  # a round frame of a neighbor: no decision is due
        self._neighbors = engine.barrier.neighbors
        self._down = set(self._neighbors)  # links that are not up
        self._ahead: dict[int, int] = {}  # neighbors that are further than we are, and where
        self._lasting: set[int] = set()  # neighbors that come back when they crash
        self._done = set(past.done)  # neighbors that have said goodbye
        self._gone: set[int] = set()  # neighbors that ended before us, and told us so
        self._computing = False
        self._said_goodbye = False
        self._over = False  # nothing is computed any more
        self._last_words: Abort | None = None  # once these are said nothing else matters
        self.begun = False  # the first round
        self._begun_at = now
        self._moved_at = now  # when the engine last came to something
        self._patient_since = now
        self._look_after = LOOK_AFTER
        self._need_after = NEED_AFTER
        self._asked: set[int] = set()  # neighbors, in this exchange and by this connection
        self._orders.append(WakeAt(now + LOOK_AFTER))

    @property
    def halted(self) -> bool:
        """Whether only a further word of the laboratory can let us go on."""
        return self.course.reached and not self.course.horizon.final

    def next_order(self) -> Order | None:
        """What is to be done now; None: nothing, until something happens."""
        orders = self._orders
        if not orders:
            if self._computing or self._over:
                return None
            if not self.engine.between_rounds:
                return None if self._barrier.lacking else self._compute()
            self._look_further()
        return orders.popleft() if orders else None

    def control(self, neighbor: int, frame: Frame) -> None:
        """A frame from a neighbor that is none of a round's."""
        if self._last_words is not None:
            if isinstance(frame, Abort):
                self._gone.add(neighbor)
        elif isinstance(frame, Need):
            self._answer(neighbor, frame.seq)
        elif isinstance(frame, Done):
            self._done.add(neighbor)
            if self._said_goodbye:
                self._save()  # should we crash now, we need not wait for this one again
        elif isinstance(frame, Abort):
            self._orders.append(Fail(RunAborted(frame.reason)))
        elif isinstance(frame, Refuse):
            reason = f"neighbor {neighbor} refused us: {frame.reason}"
            self._orders.append(Fail(PeerRefused(reason)))

    def opened(self, neighbor: int, words: Hello) -> None:
        """A link is up, for the first time or again: send what the neighbor may lack."""
        log.debug("link to neighbor %d is up, it is at exchange %d", neighbor, words.need)
        self._down.discard(neighbor)
        self._asked.discard(neighbor)
        if self._last_words is not None:
            self._orders.append(Send(neighbor, self._last_words))
            return
        if words.back:
            self.engine.keep_for(words.back)
            self._lasting.add(neighbor)
        self._orders.append(Meet(neighbor))
        if words.need > self.engine.seq:
            self._ahead[neighbor] = words.need
        self.course.meet(words.need)
        if not self.begun and not self._down:
            self._orders.append(ShowReady(self.engine.rounds))
        self._answer(neighbor, words.need)

    def lost(self, neighbor: int) -> None:
        """A link that was up is not."""
        self._down.add(neighbor)

    def granted(self, horizon: Horizon) -> None:
        """The laboratory says how far we may go."""
        self.course.horizon = Horizon(min(horizon.rounds, self._limit), horizon.final)

    def computed(self, result: Advance, now: float) -> None:
        """The engine has come to its next exchange, or to the end of its round."""
        self._computing = False
        self._moved_at = now
        self._look_after = LOOK_AFTER
        if self._asked:
            self._need_after = NEED_AFTER
            self._asked.clear()
        if not self.begun:
            self.begun = True
            self._begun_at = now - self.engine.advance_seconds
        if not isinstance(result, Silence):
            self._orders.append(result)  # to be sent, or written down
        if type(result) is RoundEnded:
            self._end_round(result.record, now - self._begun_at)
        elif self._ahead:
            self._catch_up()

    def wake(self, now: float) -> None:
        """Whoever waits looks for whom, at last asks; whoever waits too long gives up."""
        waited = now - max(self._patient_since, self._moved_at)
        pause = min(self._look_after, max(self._timeout - waited, _LOOK_AT_LEAST))
        if waited < self._need_after:
            pause = min(pause, max(self._need_after - waited, _LOOK_AT_LEAST))
        self._orders.append(WakeAt(now + pause))
        if not self._computing and waited >= pause:
            self._look_after = min(2 * self._look_after, LOOK_AT_MOST)
            self._wait(waited, now)

    def abort(self, reason: str) -> None:
        """This node must end, for this reason: tell every neighbor, and who says hello later."""
        self._over = True
        self._last_words = Abort(reason[:MAX_TEXT])
        self._orders.clear()
        for neighbor in self._neighbors:
            self._orders.append(Send(neighbor, self._last_words))

    def knows(self, neighbors: Set[int]) -> bool:
        """After `abort`: whether all of these have ended before us."""
        return self._gone >= neighbors

    def _compute(self) -> Compute:
        self._computing = True
        return _COMPUTE

    def _look_further(self) -> None:
        """Between two rounds: begin the next, the first one once every link is up, or leave."""
        if not self.course.reached:
            if self.begun or not self._down:
                self._orders.append(self._compute())
        elif self.course.over:
            self._take_leave()

    def _end_round(self, record: Record, seconds: float) -> None:
        """Records, then checkpoints, before a frame of the next round leaves; then who watches."""
        why = self._wish.why(seconds)
        announced = why is not None and self.course.stop(why)
        if announced or (self._checkpoint and self.engine.rounds % self._checkpoint == 0):
            self._save()
        if announced:
            self._save()  # in both slots: what was told from outside no one can compute again
        if self._watched:
            self._orders.append(Show(record, flush=self.course.reached))
        self.seconds = seconds

    def _answer(self, neighbor: int, need: int) -> None:
        """Send what goes on from exchange `need`, and Done again if we are."""
        for outgoing in self.engine.frames_from(neighbor, need):
            self._orders.append(Resend(neighbor, outgoing.raw))
        if self._said_goodbye:
            self._orders.append(Send(neighbor, Done(self.engine.seq)))

    def _catch_up(self) -> None:
        """We have fallen back, and they have sent this exchange's frame long ago: ask at once."""
        seq = self.engine.seq
        missing = set(self.engine.barrier.missing())
        for neighbor, at in list(self._ahead.items()):
            if at < seq:
                del self._ahead[neighbor]
            elif neighbor in missing:
                self._orders.append(Send(neighbor, Need(seq)))

    def _save(self) -> None:
        if self._checkpoint:
            self._orders.append(Save(self._said_goodbye, frozenset(self._done)))

    def _take_leave(self) -> None:
        """After the last round: say Done, and leave when every neighbor has said it too."""
        if not self._said_goodbye:
            self._said_goodbye = True
            self._save()
            self._save()  # in both slots: whoever hears Done may leave, and takes its frames along
            self._orders.append(Reckon())
            for neighbor in self._neighbors:
                self._orders.append(Send(neighbor, Done(self.engine.seq)))
        if self._done.issuperset(self._neighbors):
            self._leave()

    def _leave(self) -> None:
        self._over = True
        self._orders.append(Leave())

    def _wait(self, waited: float, now: float) -> None:
        """Nothing has come for so long: say hello again, ask, and in the end give up."""
        missing = self._missing()
        if not missing:
            self._patient_since = now
            self._orders.append(ShowHalted(self.engine.rounds))
            return
        if self._said_goodbye and waited > self._goodbye_patience(missing):
            log.info("leaving, though neighbors %s have not said goodbye", list(missing))
            self._leave()
            return
        if not self.begun and not self._said_goodbye:
            self._orders.append(Search(waited, missing))
        if waited > self._timeout:
            self._orders.append(GiveUp(waited, missing))
            return
        self._orders.append(Mention(waited, missing))
        self._ask(waited, missing)
        if waited > LABORATORY_AFTER and not self.course.horizon.final:
            # perhaps the neighbor waits for its word, and it is a new one that lacks ours
            self._orders.append(ShowHalted(self.engine.rounds))

    def _ask(self, waited: float, missing: tuple[int, ...]) -> None:
        """Say hello where a link is down; elsewhere ask once an exchange and connection, and late.

        To wait is normal, and a connection that breaks is opened by words that tell what is needed:
        only what was dropped, and not lost, is left to be asked for.
        """
        asked = set(missing) - self._down - self._asked if waited >= self._need_after else set()
        for neighbor in missing:
            if neighbor in self._down or neighbor in asked:
                self._orders.append(Ask(neighbor, self.engine.seq))
        if asked:
            self._asked |= asked
            self._need_after = min(2 * self._need_after, NEED_AT_MOST)

    def _missing(self) -> tuple[int, ...]:
        """For whom we wait: a goodbye, a frame, or a link; nobody, if it is for the laboratory."""
        if self._said_goodbye:
            return tuple(j for j in self._neighbors if j not in self._done)
        if not self.engine.between_rounds:
            return tuple(self.engine.barrier.missing())
        return tuple(sorted(self._down))

    def _goodbye_patience(self, missing: tuple[int, ...]) -> float:
        """One that comes back after a crash may need our frames to get to the end."""
        patience = self._timeout if self._lasting.intersection(missing) else GOODBYE_SECONDS
        return min(patience, self._timeout)
