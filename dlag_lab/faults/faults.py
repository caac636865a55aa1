"""The faults, and when they happen: drawn from a seed, before the run begins."""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import TracebackType

from dlag_lab.faults.wires import Wires
from dlag_lab.launcher import Launcher
from dlag_lab.live import Progress
from dlag_lab.mesh import name_of

_FIRST_ROUND = 5
HEARTBEAT = 1.0  # seconds: a link is given up after three of them, and not after half a minute
_LONG = 4.5  # seconds: longer than that


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: what, to which nodes, from which round on, and for how long."""

    k: int
    kind: str
    victims: tuple[int, ...]
    seconds: float = 0.0


KINDS = (
    "kill",
    "kill two neighbors",
    "kill all",
    "stop and continue",
    "cut",
    "delay",
    "duplicate",
    "reset in mid-frame",
    "disk full",
    "clock jump",
)


class Clock:
    """The wall clock of every process of a mesh, through libfaketime; monotonic time stays.

    `environment` goes to the nursery; a clock that nobody set is the machine's own.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.jump(0.0)
        self.environment = {
            "LD_PRELOAD": str(_libfaketime()),
            "FAKETIME_TIMESTAMP_FILE": str(path),
            "FAKETIME_CACHE_DURATION": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }

    def jump(self, seconds: float) -> None:
        """From now on the clock is so many seconds ahead."""
        self._path.write_text(f"{seconds:+.0f}\n", encoding="ascii")


def draw(
    seed: int, *, faults: int, rounds: int, neighbors: Sequence[Sequence[int]], kinds: Sequence[str]
) -> list[Fault]:
    """A schedule by a seed, in the order of rounds; every kind comes equally often.

    `rounds` is the last one in which a fault may be due.
    """
    random = Random(seed)
    schedule = []
    for n in range(faults):
        kind = kinds[n % len(kinds)]
        victim = random.randrange(len(neighbors))
        victims: tuple[int, ...] = (victim,)
        if kind == "kill two neighbors":
            victims = (victim, random.choice(neighbors[victim]))
        elif kind == "kill all":
            victims = tuple(range(len(neighbors)))
        seconds = _LONG if random.random() < 0.2 else random.uniform(0.05, 0.8)
        schedule.append(Fault(random.randrange(_FIRST_ROUND, rounds), kind, victims, seconds))
    return sorted(schedule, key=lambda fault: fault.k)


def possible_kinds() -> tuple[str, ...]:
    """All kinds; clocks can jump only where libfaketime is installed."""
    return KINDS if _libfaketime() else tuple(kind for kind in KINDS if kind != "clock jump")


class Injector:
    """The view of a run that does to it what the schedule says, once the run is that far.

    A fault whose victim is still down is put off; one that came too late, because its victim had
    finished, is not counted in `done`.
    """

    def __init__(self, schedule: Sequence[Fault], wires: Wires, clock: Clock | None) -> None:
        self.left = list(schedule)
        self.done: Counter[str] = Counter()
        self._wires = wires
        self._clock = clock
        self._launcher: Launcher | None = None
        self._killed: set[int] = set()  # process ids
        self._timers: list[threading.Timer] = []
        self._jumps = 0

    @property
    def killed(self) -> int:
        """How many processes were killed."""
        return len(self._killed)

    def started(self, launcher: Launcher) -> None:
        """The mesh is up, for the first time or again."""
        self._launcher = launcher

    def update(self, progress: Progress) -> None:
        """The run is at round k: what is due happens now."""
        due = [fault for fault in self.left if fault.k <= progress.k]
        for fault in due:
            if self._inject(fault):
                self.left.remove(fault)
                if fault.kind == "disk full":
                    break  # the run ends of it: what else is due happens when it is resumed

    def __enter__(self) -> Injector:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        """No fault outlives its run."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._launcher = None

    def _inject(self, fault: Fault) -> bool:
        """Whether it could be done: not while the victim is down."""
        pids = self._pids(fault.victims)
        if pids is None:
            return False
        wire = self._wires.wires[fault.victims[0]]
        match fault.kind:
            case "kill" | "kill two neighbors" | "kill all":
                self._killed |= {*pids}
                hits = [_signal(pid, signal.SIGKILL) for pid in pids]
                self.done[fault.kind] += any(hits)
                return True
            case "stop and continue":
                if not _signal(pids[0], signal.SIGSTOP):
                    return True
                self._later(fault.seconds, pids[0], signal.SIGCONT)
            case "cut":
                self._wires.tell(lambda: wire.cut(fault.seconds))
            case "delay":
                self._wires.tell(lambda: wire.delay(0.02, for_seconds=fault.seconds))
            case "duplicate":
                self._wires.tell(wire.duplicate)
            case "reset in mid-frame":
                self._wires.tell(wire.tear)
            case "disk full":
                with suppress(ProcessLookupError):
                    resource.prlimit(pids[0], resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            case "clock jump":
                assert self._clock is not None
                self._jumps += 1
                self._clock.jump((-1) ** self._jumps * 3_600.0 * self._jumps)
        self.done[fault.kind] += 1
        return True

    def _pids(self, victims: Sequence[int]) -> list[int] | None:
        """The victims' process ids; None while one of them is being started again."""
        if self._launcher is None:
            return None
        pids = [self._launcher.pids[name_of(node)] for node in victims]
        return None if self._killed & {*pids} else pids

    def _later(self, seconds: float, pid: int, number: signal.Signals) -> None:
        timer = threading.Timer(seconds, _signal, (pid, number))
        self._timers.append(timer)
        timer.start()


def _signal(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _libfaketime() -> Path | None:
    """Where Debian's package of that name puts it."""
    return next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
