"""The project's own node in a mesh that computes nothing: what the benchmarks of rounds measure."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from time import perf_counter

import zmq
from turns import Seat, Span

from dlag_node.methods.flow import EVERYBODY_SPEAKS, Exchange, Flow, RoundReport
from dlag_node.net.books import Books
from dlag_node.net.introduction import Introduction
from dlag_node.net.links import Links
from dlag_node.net.node_state import NodeState
from dlag_node.net.router import Router
from dlag_node.net.shell import Shell
from dlag_node.net.sockets import HEARTBEAT
from dlag_node.net.witness import Witness
from dlag_node.rounds import Engine
from dlag_node.rounds.keeper import Keeper
from dlag_node.trust.keys import KeyPair
from dlag_node.wire.codec import Codec
from dlag_node.wire.control import Peer

LOOPBACK = "tcp://127.0.0.1:*"

Shown = Callable[[Engine, Links, zmq.Context[zmq.Socket[bytes]], ExitStack], Witness]


class Still:
    """A method that computes nothing: one exchange of the same vector a round."""

    STATE: tuple[str, ...] = ("_k", "theta")

    def __init__(self, seat: Seat) -> None:
        self.theta = seat.vector
        self.width = len(self.theta)
        self.parameters: dict[str, float | int | str] = {}
        self.advice = ""
        self.schedule = EVERYBODY_SPEAKS
        self.span = Span(0.0, 0.0)
        self._seat = seat
        self._k = 0

    def round(self) -> Flow[RoundReport]:
        """Send, and wait for everyone."""
        self._seat.mark(self._k)
        yield Exchange(self.theta)
        self._k += 1
        if self._k == self._seat.rounds:
            self.span = self._seat.finish()
        return RoundReport(gradients=0, step=0.0, age=0)


async def take_part(
    seat: Seat,
    method: Still,
    keeper: Keeper | None = None,
    keys: KeyPair | None = None,
    *,
    heartbeat: float = HEARTBEAT,
    shown: Shown | None = None,
) -> None:
    """One node of the mesh, with a method that computes nothing; with checkpoints, with keys.

    `shown` lets others see how the node stands, until the stack that it gets is closed.
    """
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    codec = Codec(seat.vector.size)
    router = Router(context, LOOPBACK, limit=codec.frame_limit, keys=keys, heartbeat=heartbeat)
    seat.meet(router.address, None if keys is None else keys.public)
    engine = Engine(method, node=seat.node, neighbors=seat.neighbors, codec=codec)
    state = NodeState(
        engine,
        rounds=seat.rounds,
        neighbor_timeout=30.0,
        checkpoint=0 if keeper is None else keeper.every,
        now=perf_counter(),
    )
    introduction = Introduction(
        node=seat.node,
        run="benchmark",
        config="rounds",
        position=lambda: engine.seq,
        back=0 if keeper is None else keeper.back,
        address=router.address,
    )
    peers = [Peer(j, seat.addresses[j], 0.0, seat.keys[j]) for j in seat.neighbors]
    links = Links(router, introduction, peers, codec, state)
    stack = ExitStack()
    witness = None if shown is None else shown(engine, links, context, stack)
    shell = Shell(state, router, links, books=Books(engine, keeper=keeper, witness=witness))
    await links.call()
    await shell.run()
    seat.leave(method.span)
    stack.close()
    router.close()
    context.term()
