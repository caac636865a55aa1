"""What a node writes down and tells: records, checkpoints, packets, metrics, laboratory."""

from __future__ import annotations

import asyncio
from collections.abc import Set

from dlag_node.net.kernel import KernelCounter
from dlag_node.net.observer import Observed
from dlag_node.net.witness import Witness
from dlag_node.rounds import Engine, Record, RoundEnded
from dlag_node.rounds.keeper import Keeper
from dlag_node.rounds.recorder import Recorder
from dlag_node.wire.observing import Horizon


class Books:
    """Each of the five may be wanted or not; what is not wanted costs nothing."""

    def __init__(
        self,
        engine: Engine,
        *,
        recorder: Recorder | None = None,
        keeper: Keeper | None = None,
        witness: Witness | None = None,
        observed: Observed | None = None,
        kernel: KernelCounter | None = None,
    ) -> None:
        self.observed = observed
        self._engine = engine
        self._recorder = recorder
        self._keeper = keeper
        self._witness = witness
        self._kernel = kernel
        self._asking: asyncio.Task[None] | None = None  # for the laboratory

    @property
    def comfort(self) -> str:
        """What to say to somebody whose run ends here."""
        return "" if self._keeper is None else f"; {self._keeper.comfort}"

    def meet(self, neighbor: int, address: str) -> None:
        """A neighbor is there now."""
        if self._keeper is not None:
            self._keeper.meet(neighbor, address)

    def note(self, ended: RoundEnded) -> None:
        """A round is finished."""
        if self._witness is not None:
            self._witness.take(ended.record)
        if self._recorder is not None:
            self._recorder.write(ended.record, self._engine.method.theta)

    def save(self, *, finished: bool, done: Set[int]) -> None:
        """Records first: those of saved rounds are not written again after a crash."""
        assert self._keeper is not None  # or the state would not have asked for it
        if self._recorder is not None:
            self._recorder.flush(durable=self._keeper.durable)
        self._keeper.save(self._engine, finished=finished, done=done)

    def reckon(self) -> None:
        """All rounds are made, and all connections still up: what has the kernel counted?"""
        if self._kernel is not None:
            self._kernel.look()

    def show(self, record: Record, *, flush: bool) -> None:
        """Tell the laboratory of a round."""
        if self.observed is not None:
            self.observed.take(record, self._engine.method.theta, flush=flush)

    def show_ready(self, rounds: int) -> None:
        """Tell the laboratory that all links are up."""
        if self.observed is not None:
            self.observed.ready(rounds)

    def show_halted(self, rounds: int) -> None:
        """Tell the laboratory that we wait; what we did is in our files, should it be a new one."""
        if self.observed is None or (self._asking is not None and not self._asking.done()):
            return
        if self._recorder is not None:
            self._recorder.flush()
        self._asking = asyncio.get_running_loop().create_task(self.observed.wait(rounds))

    def horizon(self) -> Horizon | None:
        """What the laboratory has said since we last asked."""
        return None if self.observed is None else self.observed.horizon()

    def close(self) -> None:
        """Ask nobody any more."""
        if self._asking is not None:
            self._asking.cancel()
