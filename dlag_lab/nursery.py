"""A fork server for local meshes: it loads numpy, numba and zmq once, then forks every process.

`python -m dlag_lab.nursery` reads one JSON object a line on standard input and answers on standard
output:

    {"name": "node-003", "argv": ["dlag-node", ...], "log": "path"}    start a process,
     with "netns": "path" in that network namespace; how it fails it leaves in "ending": "path"
    {"name": "node-003", "signal": 15}                                 send it a signal
    -> {"name": "node-003", "pid": 4711}, later {"name": "node-003", "exit": 0}

End of input ends all of them. Each child holds the read end of a pipe whose write end only the
nursery has: when the nursery is gone, however it died, its children notice and end too.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

import typer.main

import coordinator.cli
import dlag_lab.network.emulator
import dlag_lab.watch.cli
import dlag_node.cli
from dlag_lab.network.namespaces import enter
from dlag_node.methods import METHODS, builder_of
from dlag_node.outcome import VARIABLE
from dlag_node.process import EXIT_FAILED, new_loop, run_command
from dlag_node.solvers import warm_up

_PROGRAMS: dict[str, Callable[[list[str]], int]] = {
    "dlag-node": dlag_node.cli.run,
    "dlag-coordinator": coordinator.cli.run,
    "dlag-network": dlag_lab.network.emulator.run,
    "dlag-watch": dlag_lab.watch.cli.run,
}
_PATIENCE_SECONDS = 5.0  # between SIGTERM and SIGKILL
_OURS = (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM)  # signals that the nursery handles


class Nursery:
    """Forks children, reaps them, and leaves none behind."""

    def __init__(self) -> None:
        self._children: dict[int, str] = {}
        self._alive_read, self._alive_write = os.pipe()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the launcher decides
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))

    def serve(self) -> None:
        """Until the end of input; then end every child."""
        pending = b""
        with selectors.DefaultSelector() as selector:
            selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
            selector.register(self._wake_read, selectors.EVENT_READ)
            try:
                while True:
                    for key, _ in selector.select():
                        chunk = os.read(key.fd, 1 << 16)
                        if key.fd == self._wake_read:
                            self._reap()
                            continue
                        if not chunk:
                            return
                        *lines, pending = (pending + chunk).split(b"\n")
                        for line in lines:
                            self._obey(json.loads(line))
            finally:
                self._end_all(selector)

    def _obey(self, order: dict[str, Any]) -> None:
        if "signal" in order:
            for pid, name in self._children.items():
                if name == order["name"]:
                    os.kill(pid, order["signal"])
            return
        sys.stdout.flush()
        # a signal for the child waits until the nursery's handlers, by which it would end all
        # others, are not its own any more
        signal.pthread_sigmask(signal.SIG_BLOCK, _OURS)
        pid = os.fork()
        if pid == 0:
            _be_child(order, self._alive_read, (self._alive_write, self._wake_read))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _OURS)
        self._children[pid] = order["name"]
        _tell({"name": order["name"], "pid": pid})

    def _reap(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            code = os.waitstatus_to_exitcode(status)
            _tell({"name": self._children.pop(pid), "exit": code})

    def _end_all(self, selector: selectors.BaseSelector) -> None:
        for pid in self._children:
            os.kill(pid, signal.SIGTERM)
        selector.unregister(sys.stdin.fileno())
        while self._children:
            if not selector.select(_PATIENCE_SECONDS):
                for pid in self._children:
                    os.kill(pid, signal.SIGKILL)
            else:
                os.read(self._wake_read, 1 << 16)
            self._reap()


def _be_child(order: dict[str, Any], lifeline: int, close: tuple[int, ...]) -> None:
    """The rest of a forked child's life; never returns."""

    def live(*_: object, **__: object) -> None:
        signal.set_wakeup_fd(-1)
        for each in _OURS:
            signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _OURS)
        for descriptor in close:
            os.close(descriptor)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        if "netns" in order:
            enter(order["netns"])
        program, *argv = order["argv"]
        sys.exit(_PROGRAMS[program]([*argv, "--lifeline", str(lifeline)]))

    code = EXIT_FAILED
    try:
        if "ending" in order:
            os.environ[VARIABLE] = order["ending"]
        code = run_command(live, [], order["name"])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _tell(event: dict[str, Any]) -> None:
    try:
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        pass  # the launcher is gone: end of input follows


def _rehearse() -> None:
    """Do once what every child would do again: typer's first command line, the first event loop.

    Most of it is typer, which imports pydantic with the first command line that it reads.
    """
    for name, app, argv in (
        ("dlag-node", dlag_node.cli.app, ["--coordinator", "tcp://127.0.0.1:1"]),
        ("dlag-coordinator", coordinator.cli.app, []),
    ):
        typer.main.get_command(app).make_context(name, argv)
    new_loop().close()


def main() -> None:
    """Load everything that a node needs, then fork on demand."""
    if warm_up().compiled:
        # a compiler was loaded into this process: begin again, small, with what it left on disk
        os.execv(sys.executable, [sys.executable, "-m", "dlag_lab.nursery"])
    for name in METHODS:
        builder_of(name)  # their modules are imported on demand, and here once for all
    _rehearse()
    gc.collect()
    gc.freeze()  # what is loaded now stays shared with the children
    Nursery().serve()


if __name__ == "__main__":
    main()
