"""Ending a run of real processes by a signal, in good order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

T = TypeVar("T")


class Interrupted(Exception):
    """A signal ended the run, in good order; `code` is the process's exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def apart(main: Coroutine[Any, Any, T]) -> T:
    """Run on an event loop in a thread of its own: a notebook's thread has one already.

    A KeyboardInterrupt here ends what runs there first, in good order.
    """
    loop = asyncio.new_event_loop()
    task = loop.create_task(main)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(loop.run_until_complete, task)
        try:
            return done.result()
        except BaseException:
            if not done.done():
                loop.call_soon_threadsafe(task.cancel)
            raise
        finally:
            wait([done])
            loop.close()


def interruptible(main: Coroutine[Any, Any, T]) -> T:
    """Run on an event loop of our own; SIGINT and SIGTERM end every process first, then us."""
    heard: list[int] = []

    async def guarded() -> T:
        task = asyncio.ensure_future(main)
        loop = asyncio.get_running_loop()

        def end(number: int) -> None:
            heard.append(number)
            task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, end, number)
        return await task

    try:
        with asyncio.Runner() as runner:
            return runner.run(guarded())
    except asyncio.CancelledError:
        raise Interrupted(128 + heard[0]) from None
