"""Whole nodes without sockets, clocks and files: the real NodeState and Links, over letters."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import networkx as nx

from dlag_node.errors import NeighborTimeout, RemoteProtocolError
from dlag_node.methods.flow import Method
from dlag_node.net.introduction import Introduction
from dlag_node.net.links import Links
from dlag_node.net.node_state import NodeState, Past
from dlag_node.net.orders import (
    Ask,
    Compute,
    Fail,
    GiveUp,
    Leave,
    Meet,
    Order,
    Resend,
    Save,
    Send,
    WakeAt,
)
from dlag_node.net.wish import Wish
from dlag_node.rounds import Engine, Outgoing, Record, RoundEnded
from dlag_node.rounds.checkpoint import freeze, thaw
from dlag_node.rounds.slots import SLOTS
from dlag_node.rounds.stopping import Stopping
from dlag_node.wire.codec import Codec
from dlag_node.wire.control import Peer
from dlag_node.wire.frames import RoundFrame
from tests.net.post import Post
from tests.rounds.crashes import DIM, Habits, Wanderer, owner_of

FOREVER = 1e9  # seconds
TIMEOUT = 1_000.0
STEPS = 20_000  # of a mesh: more than any test takes
WAKES = 1_200  # pauses are of 4 s in the end: of four nodes, more than any patience


class Stuck(AssertionError):
    """Nobody can go on, though nobody has finished: nodes wait for each other for ever."""


@dataclass
class Disk:
    """What outlives a process: two checkpoints, and the records."""

    slots: deque[bytes] = field(default_factory=lambda: deque(maxlen=SLOTS))
    records: dict[int, Record] = field(default_factory=dict)
    rotten: bool = False  # the slot that was written last cannot be read
    lives: int = 0


class MemoryNode:
    """One process: a state, its links, and what they were told to do."""

    def __init__(self, mesh: MemoryMesh, node: int, address: str | None = None) -> None:
        self.mesh, self.disk = mesh, mesh.disks[node]
        self.node, self.every = node, mesh.every[node]
        self.transport = mesh.post.listen(address)
        mesh.addresses[node] = self.transport.address
        self.wish = Wish()
        self.engine = mesh.engine(node)
        self._put = self.engine.barrier.put
        self.engine.barrier.put = self._take  # type: ignore[method-assign]
        past = self._recall()
        self.state = mesh.kind(
            self.engine,
            rounds=mesh.rounds,
            neighbor_timeout=mesh.timeout,
            checkpoint=self.every,
            watched=mesh.watched,
            wish=self.wish,
            past=past,
            now=mesh.now,
        )
        self.orders: list[Order] = []  # all that were given
        self.error: Exception | None = None
        self.left = False
        self.wake_at = mesh.now
        introduction = Introduction(
            node, "run", "config", lambda: self.engine.seq, self._back, self.transport.address
        )
        peers = [Peer(j, self._moved.get(j, mesh.addresses[j]), 0.0) for j in mesh.neighbors[node]]
        self.links = Links(self.transport, introduction, peers, self.engine.codec, self.state)

    def call(self) -> None:
        call = self.links.call(everybody=self.disk.lives > 0)
        self.disk.lives += 1
        try:
            call.send(None)  # every address is a number: there is nothing to wait for
        except StopIteration:
            return
        raise AssertionError("calling waits for something")

    def _take(self, neighbor: int, frame: RoundFrame) -> bool:
        """A round frame, counted if it was not needed, or refused."""
        try:
            taken = self._put(neighbor, frame)
        except RemoteProtocolError:
            self.mesh.refused += 1
            raise
        self.mesh.repeats += not taken
        return taken

    @property
    def over(self) -> bool:
        return self.left or self.error is not None

    def step(self) -> bool:
        """One order, or one message, as the shell has it; False: there is neither."""
        if self.over:
            return False
        order = self.state.next_order()
        if order is None:
            return self.links.drain()
        self.orders.append(order)
        self._obey(order)
        return True

    def _obey(self, order: Order) -> None:
        match order:
            case Compute():
                self.state.computed(self.engine.advance(), self.mesh.now)
            case Outgoing():
                self.links.broadcast(order)
            case RoundEnded(record):
                self.mesh.check(self.disk, record)
            case Send(neighbor, frame):
                self.mesh.control[type(frame).__name__] += 1
                self.links.send(neighbor, frame)
            case Resend(neighbor, raw):
                self.mesh.control["Resend"] += 1
                self.links.resend(neighbor, raw)
            case Ask(neighbor, seq):
                self.mesh.control["Ask"] += 1
                self.links.ask(neighbor, seq)
            case Meet(neighbor):
                self._moved[neighbor] = self.links.address_of(neighbor)
            case Save(finished, done):
                body = freeze(
                    self.engine,
                    owner_of(self.node),
                    finished=finished,
                    done=done,
                    moved=self._moved,
                )
                self.disk.slots.append(body)
                self.disk.rotten = False
            case WakeAt(at):
                self.wake_at = at
            case Leave():
                self.left = True
                self.mesh.kill(self.node, late=True)  # what it sent still leaves
            case Fail(error):
                self.error = error
            case GiveUp(_, missing):
                self.error = NeighborTimeout(f"for {missing}")

    @property
    def _back(self) -> int:
        return SLOTS * self.every

    def _recall(self) -> Past:
        self._moved: dict[int, str] = {}
        if not self.disk.slots:
            return Past()
        found = thaw(self.disk.slots[-1], owner_of(self.node), self.engine.codec)
        found.into(self.engine)
        self._moved = dict(found.moved)
        return Past(found.finished, found.done)


class MemoryMesh:
    """Nodes on a graph, their disks, the post between them, and the time."""

    def __init__(
        self,
        neighbors: Sequence[Sequence[int]],
        habits: Habits | Sequence[int],
        *,
        every: Sequence[int] | None = None,
        kind: type[NodeState] = NodeState,
        timeout: float = TIMEOUT,
        watched: bool = False,
        method: Callable[[int], Method] | None = None,
        tol: float | None = None,
    ) -> None:
        self.neighbors = [sorted(each) for each in neighbors]
        self.habits = habits if isinstance(habits, Habits) else Habits(tuple(habits))
        self.rounds = len(self.habits.counts)
        self.every = every or [0] * len(neighbors)
        self.kind, self.timeout, self.watched = kind, timeout, watched
        self.now = 0.0
        self.post = Post()
        self.control: Counter[str] = Counter()  # frames that are none of a round's, by kind
        self.repeats = self.refused = 0  # frames of a round that came for nothing
        self._tol = tol
        graph = nx.Graph([(i, j) for i, js in enumerate(neighbors) for j in js])
        self._diameter = nx.diameter(graph) if len(neighbors) > 1 else 0
        self._method = method or (lambda i: Wanderer(i, self.neighbors[i], self.habits))
        self.disks = [Disk() for _ in neighbors]
        self.addresses: dict[int, str] = {}
        self.nodes = []
        for i in range(len(neighbors)):
            self.addresses.update(dict.fromkeys(range(i, len(neighbors)), "tcp://127.0.0.1:1"))
            self.nodes.append(MemoryNode(self, i))  # calls only those that listen already
        for node in self.nodes:
            node.call()

    def engine(self, node: int) -> Engine:
        method = self._method(node)
        return Engine(
            method,
            node=node,
            neighbors=self.neighbors[node],
            codec=Codec(DIM),
            stopping=Stopping(self._diameter, self._tol, hop=method.schedule.hop),
            clock=lambda: self.now,
        )

    def check(self, disk: Disk, record: Record) -> None:
        """A round that is made again has the same record; but for words on stopping."""
        record = replace(record, compute=0.0, wait=0.0, sent_bytes=0)
        assert disk.records.setdefault(record.k, record) == record

    def crash(self, node: int, *, rot: bool = False, late: bool = False) -> None:
        """A new process in the place of the old one; `rot`: the newer checkpoint is unreadable."""
        self.kill(node, late=late)
        disk = self.disks[node]
        if rot and disk.slots and not disk.rotten:  # the older one is read in its place
            disk.rotten = True
            disk.slots.pop()
        self.start(node)

    def kill(self, node: int, *, late: bool = False) -> None:
        self.post.vanish(self.nodes[node].transport.address, late=late)

    def start(self, node: int, *, elsewhere: bool = False) -> None:
        address = None if elsewhere else self.addresses[node]
        self.nodes[node] = MemoryNode(self, node, address)
        self.nodes[node].call()

    def cut(self, i: int, j: int) -> None:
        """The connections between two nodes break."""
        if not (self.nodes[i].left or self.nodes[j].left):
            self.post.cut(self.addresses[i], self.addresses[j])

    def wait(self, seconds: float) -> None:
        """Time passes; who has nothing to do until then wakes."""
        self.now += seconds
        for node in self.nodes:
            if not node.over and node.wake_at <= self.now:
                node.wake_at = FOREVER
                node.state.wake(self.now)

    def move(self) -> bool:
        """Everybody acts and everything arrives, as long as that leads on; no time passes."""
        moved = False
        for _ in range(STEPS):
            acted = [node.step() for node in self.nodes]
            if self.post.flying:
                self.post.deliver(self.post.flying[0])
            elif not any(acted):
                return moved
            moved = True
        raise Stuck("nodes go on for ever without getting anywhere")

    def move_only(self, node: int) -> None:
        """One node acts, and what is for it arrives; the others sleep."""
        for _ in range(STEPS):
            letters = [e for e in self.post.flying if e.ends[1] == self.addresses[node]]
            if letters:
                self.post.deliver(letters[0])
            elif not self.nodes[node].step():
                return
        raise Stuck(f"node {node} goes on for ever")

    def until(self, holds: Callable[[], bool]) -> None:
        """Act, one step of one node or letter at a time, until something holds."""
        for _ in range(STEPS):
            for node in self.nodes:
                if holds():
                    return
                node.step()
            if self.post.flying:
                self.post.deliver(self.post.flying[0])
        raise Stuck("it never holds")

    def finish(self) -> float:
        """Let the run come to its end; returns for how long somebody had to wait for that."""
        begun = self.now
        self.move()
        while not all(node.over for node in self.nodes):
            before = self._positions()
            for _ in range(WAKES):
                self.wait(max(0.0, self._next_wake() - self.now))
                self.move()
                if self._positions() != before:
                    break
            else:
                raise Stuck(f"rounds {[n.engine.rounds for n in self.nodes]} of {self.rounds}")
        return self.now - begun

    def _positions(self) -> list[tuple[int, bool]]:
        return [(node.engine.seq, node.over) for node in self.nodes]

    def _next_wake(self) -> float:
        return min(node.wake_at for node in self.nodes if not node.over)

    @property
    def thetas(self) -> list[bytes]:
        return [node.engine.method.theta.tobytes() for node in self.nodes]
