"""Starting and ending the processes of a local mesh, through the nursery."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from dlag_node.outcome import Ending, ending_of

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_PATIENCE_SECONDS = 10.0  # for the nursery to end its children


class Launcher:
    """The launcher's end of a nursery: starts processes, learns of their ends, leaves none behind.

    The nursery lives in a session of its own: a Ctrl-C in the terminal reaches the launcher alone,
    which then ends the others in order. `netns` has the network namespace of each process that is
    not to run in ours, by its name; `environment` comes on top of ours.
    """

    def __init__(
        self,
        netns: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.netns = dict(netns or {})
        self._environment = _environment() | dict(environment or {})
        self.pids: dict[str, int] = {}
        self.exits: dict[str, int] = {}
        self._endings: dict[str, Path] = {}  # where each process leaves how it failed
        self.ended = asyncio.Event()  # set whenever a process has ended; the watcher clears it
        self.gone = False  # the nursery is: nothing can be started any more
        self._announcing = ""
        self._announced: asyncio.Future[str] | None = None

    async def __aenter__(self) -> Launcher:
        read, write = os.pipe()
        self._announce_read, self._announce_write = read, write
        self._nursery = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "dlag_lab.nursery",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
            pass_fds=(write,),
            env=self._environment,
        )
        os.close(write)
        self._listener = asyncio.create_task(self._listen())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every process and wait until it has ended."""
        os.close(self._announce_read)
        assert self._nursery.stdin is not None
        self._nursery.stdin.close()
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._nursery.wait()
        except TimeoutError:
            self._nursery.kill()  # its children hold its lifeline: they end with it
            await self._nursery.wait()
        await self._listener

    @property
    def nursery_pid(self) -> int:
        """The nursery's process id."""
        return self._nursery.pid

    async def start_coordinator(self, argv: Sequence[str], log: Path) -> str:
        """Start the coordinator and wait for its address; an empty answer means that it failed."""
        return await self.start_and_hear("coordinator", ["dlag-coordinator", *argv], log)

    async def start_and_hear(self, name: str, argv: Sequence[str], log: Path) -> str:
        """Start a process and wait for what it announces; nothing means that it failed."""
        self._announcing = name
        await self.start(name, [*argv, "--announce", str(self._announce_write)], log)
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[str] = loop.create_future()

        def hear() -> None:
            loop.remove_reader(self._announce_read)
            heard.set_result(os.read(self._announce_read, 4_096).decode().strip())

        loop.add_reader(self._announce_read, hear)
        self._announced = heard
        return await heard

    async def start(self, name: str, argv: Sequence[str], log: Path) -> None:
        """Start one process, for the first time or again.

        Its output goes to `log`, its ending, should it fail, into a file beside that.
        """
        self.exits.pop(name, None)
        ending = self._endings[name] = log.with_suffix(".ending")
        ending.unlink(missing_ok=True)
        order: dict[str, object] = {"name": name, "argv": list(argv), "log": str(log)}
        order["ending"] = str(ending)
        if name in self.netns:
            order["netns"] = self.netns[name]
        await self._order(order)

    def ending(self, name: str) -> Ending:
        """How a process failed, or, where the nursery is gone too, that it was killed."""
        code = self.exits.get(name, -signal.SIGKILL)
        return ending_of(self._endings[name], code=code, who=name)

    async def signal(self, name: str, number: int = signal.SIGTERM) -> None:
        """Send a signal to one process."""
        await self._order({"name": name, "signal": int(number)})

    async def _order(self, order: dict[str, object]) -> None:
        assert self._nursery.stdin is not None
        self._nursery.stdin.write(json.dumps(order).encode() + b"\n")
        await self._nursery.stdin.drain()

    async def _listen(self) -> None:
        """Every word of the nursery, until it ends."""
        assert self._nursery.stdout is not None
        async for line in self._nursery.stdout:
            event = json.loads(line)
            name = event["name"]
            if "pid" in event:
                self.pids[name] = event["pid"]
                continue
            self.exits[name] = event["exit"]
            if name == self._announcing and self._announced and not self._announced.done():
                asyncio.get_running_loop().remove_reader(self._announce_read)
                self._announced.set_result("")
            self.ended.set()
        self.gone = True
        for name in self.pids.keys() - self.exits.keys():
            self.exits[name] = -signal.SIGKILL  # the nursery is gone, and they with it
        self.ended.set()


def _environment() -> dict[str, str]:
    """Ours without DLAG_*: those are the operator's words to us, and the flags say them again."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DLAG_")}
    return kept | _ONE_THREAD
