"""The two things that `dlag watch` shows, from their sources to the page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from dlag_lab.folder import RunFolder, read_object
from dlag_lab.watch.following import Following
from dlag_lab.watch.gathering import Gathering
from dlag_lab.watch.listener import Listener
from dlag_lab.watch.replay import Replay
from dlag_lab.watch.server import Live, Recorded, serve
from dlag_node.wire.watching import Status

Say = Callable[[str, str], None]  # where nodes are heard, and the page's URL


async def show_replay(folder: Path, page: str, say: Say) -> None:
    """A run folder, until we are ended."""
    runner, url = await serve(page, Recorded(Replay(RunFolder(folder))))
    try:
        say("", url)
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


async def show_live(
    folder: Path | None, page: str, say: Say, listen: Callable[[], Listener]
) -> None:
    """What a listener hears, until we are ended; the folder tells of mesh and target."""
    run = following = None
    if folder is not None:
        run = read_object(RunFolder(folder).run_path)
        following = Following(RunFolder(folder).trajectory_path)
    gathering = Gathering(run)
    live = Live(gathering, following)
    listener = listen()

    def take(status: Status) -> None:
        gathering.take(status, time.monotonic())

    try:
        runner, url = await serve(page, live)
        try:
            say(listener.address, url)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(listener.listen(take))
                tasks.create_task(live.keep_up())
        finally:
            listener.hear(take)  # the nodes' last words
            await live.end()
            await runner.cleanup()
    finally:
        listener.close()
