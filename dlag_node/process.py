"""The top of a process: event loop, signals, lifeline, logging, exit codes and its ending."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from threadpoolctl import threadpool_limits

from dlag_node.errors import ConfigError, DlagError
from dlag_node.outcome import VARIABLE, Ending

log = logging.getLogger(__name__)

EXIT_OK = 0
EXIT_FAILED = DlagError.exit_code
EXIT_USAGE = ConfigError.exit_code
EXIT_INTERRUPTED = 128 + signal.SIGINT
EXIT_TERMINATED = 128 + signal.SIGTERM


def set_up_logging(name: str, level: str) -> None:
    """Logs for people, on standard error: time, who, level, message."""
    known = logging.getLevelNamesMapping()
    if level.upper() not in known:
        names = "debug, info, warning, error"
        raise ConfigError(f"log level {level!r}: expected one of {names}")
    logging.basicConfig(
        level=known[level.upper()],
        stream=sys.stderr,
        format=f"%(asctime)s {name} %(levelname)s %(message)s",
        force=True,
    )


def run_command(app: Callable[..., object], argv: list[str], name: str) -> int:
    """Run a command-line application and return its exit code; our own errors take one line.

    Whoever started us finds our ending in the file of DLAG_ENDING, be it ours or one that nobody
    foresaw; the latter goes on, for the sake of its traceback.
    """
    try:
        app(argv, prog_name=name)
    except DlagError as exc:
        return _fail(exc, name, lambda why: sys.stderr.write(f"{name}: {why}\n"))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else EXIT_FAILED
    except Exception as exc:
        if isinstance(exc, OSError) and exc.filename is not None:
            return _fail(_named(exc), name, lambda why: sys.stderr.write(f"{name}: {why}\n"))
        _leave(Ending.of(exc, name))
        raise
    return EXIT_OK


def run_process(
    main: Callable[[], Awaitable[None]], *, name: str, lifeline: int | None = None
) -> int:
    """Run `main` to its end and return the process's exit code; `name` is in its ending.

    SIGINT and SIGTERM cancel it, and so does the end of file on `lifeline`, a pipe whose other end
    the parent holds: a child never outlives its parent, however that dies.
    """
    threadpool_limits(1)  # one BLAS thread: the same bits everywhere, and no fight for the cores
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(_guarded(main, name, lifeline))


async def _guarded(main: Callable[[], Awaitable[None]], name: str, lifeline: int | None) -> int:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(main())
    ended_by: list[int] = []

    def end(code: int, why: str) -> None:
        if not ended_by:
            ended_by.append(code)
            log.info("ending: %s", why)
            task.cancel()

    loop.add_signal_handler(signal.SIGINT, end, EXIT_INTERRUPTED, "interrupted")
    loop.add_signal_handler(signal.SIGTERM, end, EXIT_TERMINATED, "asked to terminate")
    if lifeline is not None:
        loop.add_reader(lifeline, _watch_lifeline, lifeline, end)
    try:
        await task
    except asyncio.CancelledError:
        return ended_by[0] if ended_by else EXIT_FAILED
    except DlagError as exc:
        return _fail(exc, name, lambda why: log.error("%s", why))
    except OSError as exc:
        return _fail(_named(exc), name, lambda why: log.error("%s", why))
    finally:
        if lifeline is not None:
            loop.remove_reader(lifeline)
    return EXIT_OK


def _fail(error: DlagError, name: str, say: Callable[[str], object]) -> int:
    """Say why we end, leave it for who started us, and return the exit code."""
    ending = Ending.of(error, name)
    say(str(error) if isinstance(error, ConfigError) else ending.text)
    _leave(ending)
    return error.exit_code


def _named(exc: OSError) -> ConfigError:
    """A file that cannot be used, and why: the operator's to fix, whoever came upon it.

    Any other error of the system's is not: it is raised again.
    """
    if exc.filename is None:
        raise exc
    return ConfigError(f"cannot use {exc.filename}: {exc.strerror}")


def _leave(ending: Ending) -> None:
    asked = os.environ.get(VARIABLE)
    if not asked:
        return
    try:
        ending.leave(Path(asked))
    except OSError as exc:
        log.warning("cannot leave our ending in %s: %s", asked, exc)


def _watch_lifeline(lifeline: int, end: Callable[[int, str], None]) -> None:
    if not os.read(lifeline, 1):
        asyncio.get_running_loop().remove_reader(lifeline)
        end(EXIT_TERMINATED, "the process that started us is gone")


def new_loop() -> asyncio.AbstractEventLoop:
    """uvloop where it exists: the same mesh with a fifth less CPU time a message."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
