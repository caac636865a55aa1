"""Small mutations of the core of promised silence, each of which some fast test must notice.

A mutation is a piece of a file of `rounds`, found exactly once, and what is put in its place; its
code takes the place of the real one while the scenarios of `test_silence` run, and if none of them
fails, the machine that crashes nodes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
from hypothesis.stateful import run_state_machine_as_test

from dlag_node.rounds import agreement, barrier, engine, talk, window
from tests.net.test_crashes import Crashing
from tests.net.test_mutants import SEARCH
from tests.net.test_silence import SILENCES

MUTANTS: dict[str, tuple[ModuleType, str, str]] = {
    "a receiver that waits for nobody": (
        barrier,
        "self.lacking = len(self.neighbors) - len(self._now)\n",
        "self.lacking = 0\n",
    ),
    "who has promised is waited for": (
        barrier,
        "        if promised:\n            self._note(neighbor, promised)\n",
        "",
    ),
    "promises of before a crash are not noted": (
        barrier,
        "self._note(neighbor, self._promised(neighbor, frame))",
        "pass",
    ),
    "a receiver takes a promise for one exchange longer": (
        barrier,
        "for seq in self.window.covered(frame) if",
        "for seq in range(frame.seq + 1, self.window.last_covered(frame) + 2) if",
    ),
    "who is not due is waited for": (
        barrier,
        "self.lacking = len(due - self._quiet.get(self.seq, _NOBODY)) - len(self._now)",
        "self.lacking = len(self.neighbors) - len(self._now)",
    ),
    "a sender forgets its word after a crash": (
        engine,
        "self._promised.update(seq for seq in covered if seq >= saved.seq)",
        "pass",
    ),
    "a sender forgets its word": (
        engine,
        "self._promised.update(self.window.covered(frame))",
        "pass",
    ),
    "a sender promises one exchange more than it will keep": (
        engine,
        "frame.promise = exchange.promise",
        "frame.promise = exchange.promise + 1",
    ),
    "a replay one frame short": (
        engine,
        "and window.last_covered(each.frame) >= seq\n",
        "and each.frame.seq >= seq\n",
    ),
    "a replay that ends too early": (
        engine,
        "and each.frame.seq <= last",
        "and each.frame.seq <= seq + 1",
    ),
    "a frame is dropped with its own exchange": (
        engine,
        "while kept and self.window.last_covered(kept[0].frame) < oldest:",
        "while kept and kept[0].frame.seq < oldest:",
    ),
    "a checkpoint without the frame that covers": (
        engine,
        "for each in self._kept if self.window.last_covered(each.frame) >= oldest)",
        "for each in self._kept if each.frame.seq >= oldest)",
    ),
    "starts as if neighbors were in our round": (
        engine,
        "self._starts = deque(self._starts, maxlen=back + self.window.rounds_behind)",
        "self._starts = deque(self._starts, maxlen=back + 1)",
    ),
    "starts in a checkpoint as if neighbors were in our round": (
        engine,
        "behind = self._back + self.window.rounds_behind - 1",
        "behind = self._back",
    ),
    "starts after a crash as if neighbors were in our round": (
        engine,
        "self._starts = deque(saved.starts, maxlen=saved.back + self.window.rounds_behind)",
        "self._starts = deque(saved.starts, maxlen=saved.back + 1)",
    ),
    "who counts promises anyway": (
        engine,
        "if exchange.promise and self.stopping.agreement.may_promise:",
        "if exchange.promise:",
    ),
    "what was not published is kept silent all the same": (
        engine,
        "if self._promised and seq in self._promised:",
        "if exchange.promised:",
    ),
    "the old window": (window, "self.lead = schedule.lead", "self.lead = 1"),
    "the old window for what is taken": (
        window,
        "return range(need, need + self.lead + 1)",
        "return range(need, need + 2)",
    ),
    "the old window for what is kept": (window, "return ours - self.lead", "return ours - 1"),
    "a stop is announced in frames that are known": (
        window,
        "return need + self.lead + 1",
        "return need + 2",
    ),
    "a promise covers one exchange more": (
        window,
        "self.last_covered(frame) + 1, self._stride)",
        "self.last_covered(frame) + 1 + self._stride, self._stride)",
    ),
    "a promise covers one exchange less": (
        window,
        "self.last_covered(frame) + 1, self._stride)",
        "self.last_covered(frame), self._stride)",
    ),
    "a promise has no stride": (
        window,
        "return range(frame.seq + self._stride, self.last_covered(frame) + 1, self._stride)",
        "return range(frame.seq + 1, frame.seq + frame.promise + 1)",
    ),
    "as many rounds behind as one": (
        window,
        "self.rounds_behind = -(-schedule.lead // schedule.stride)",
        "self.rounds_behind = 1",
    ),
    "T in place of T (R + 1)": (
        agreement,
        "self._notice = diameter * hop",
        "self._notice = diameter",
    ),
    "a word in the first exchange alone": (
        engine,
        "if word := self.stopping.agreement.word:",
        "if word := (self.stopping.agreement.word if self._begins else 0):",
    ),
    "a word is told to whoever hears first": (talk, "self._told |= to", "self._told = self._all"),
    "a round counts where all neighbors had a turn": (
        talk,
        "self._partners = partners",
        "self._partners = window.known if partners is None else partners",
    ),
    "a round without news counts": (
        talk,
        "if news else None",
        "",
    ),
}


@contextmanager
def mutated(module: ModuleType, old: str, new: str) -> Iterator[None]:
    """Every function of the module's classes as the changed source has it, for a while.

    Classes and globals stay what they are: what others have imported is what changes.
    """
    assert module.__file__ is not None
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert source.count(old) == 1, f"{source.count(old)} times in {module.__file__}: {old!r}"
    changed: dict[str, object] = {"__name__": module.__name__}
    exec(compile(source.replace(old, new), module.__file__, "exec"), changed)
    before: list[tuple[type, str, FunctionType]] = []
    for name, kind in vars(module).items():
        if not (isinstance(kind, type) and kind.__module__ == module.__name__):
            continue
        for attribute, function in list(vars(kind).items()):
            other = vars(changed[name]).get(attribute)  # type: ignore[arg-type]
            if isinstance(function, FunctionType) and function.__code__ != other.__code__:  # type: ignore[union-attr]
                before.append((kind, attribute, function))
                mine = FunctionType(other.__code__, function.__globals__, attribute)  # type: ignore[union-attr]
                mine.__defaults__ = function.__defaults__
                mine.__kwdefaults__ = function.__kwdefaults__
                setattr(kind, attribute, mine)
    assert before or old == new
    try:
        yield
    finally:
        for kind, attribute, function in before:
            setattr(kind, attribute, function)


def notices() -> str | None:
    """What notices that something is wrong; None: nothing does."""
    for scenario in SILENCES:
        try:
            scenario()
        except Exception as exc:
            return f"{scenario.__name__}: {exc!r:.200}"
    try:
        run_state_machine_as_test(Crashing, settings=SEARCH)
    except Exception as exc:
        return f"the machine that crashes nodes: {exc!r:.200}"
    return None


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutation_is_noticed(name: str) -> None:
    with mutated(*MUTANTS[name]):
        assert notices() is not None


def test_nothing_is_noticed_in_the_core_as_it_is() -> None:
    assert notices() is None
