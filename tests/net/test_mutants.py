"""Small mutations of the node's decisions, each of which some test without a process must notice.

A mutation is a piece of `node_state.py`, found exactly once, and what is put in its place. It is
run through every scenario, and if none of them fails, through the machine that crashes nodes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from dlag_node.net import node_state
from dlag_node.net.node_state import NodeState
from tests.net.test_crashes import Crashing
from tests.net.test_node_state import SCENARIOS

SOURCE = Path(node_state.__file__).read_text(encoding="utf-8")

MUTANTS = {
    "no catching up": ("elif self._ahead:\n            self._catch_up()", ""),
    "catching up ends one exchange early": ("if at < seq:", "if at <= seq:"),
    "Done is not repeated": (
        "if self._said_goodbye:\n            self._orders.append(Send(neighbor, Done",
        "if False:\n            self._orders.append(Send(neighbor, Done",
    ),
    "what was announced is saved once": ("if announced:\n", "if False:\n"),
    "what was announced is not saved": (
        "announced = why is not None and self.course.stop(why)",
        "announced = why is not None and self.course.stop(why) and False",
    ),
    "the end is saved once": (
        "self._save()  # in both slots: whoever hears",
        "pass  # in both slots: whoever hears",
    ),
    "the kernel is not asked": ("self._orders.append(Reckon())", "pass"),
    "a goodbye is not saved": (
        "self._save()  # should we crash now",
        "pass  # should we crash now",
    ),
    "no checkpoint between the rounds": (
        "self.engine.rounds % self._checkpoint == 0",
        "False",
    ),
    "nobody answers who asks": (
        "for outgoing in self.engine.frames_from(neighbor, need):",
        "for _ in ():",
    ),
    "hello is not answered": (
        "self._answer(neighbor, words.need)",
        "pass",
    ),
    "frames are kept for a broken link only": ("self.engine.keep_for(words.back)", "pass"),
    "stops are announced in frames that are known": ("self.course.meet(words.need)", "pass"),
    "the first round does not wait for links": ("if self.begun or not self._down:", "if True:"),
    "a lost link is not noted": ("self._down.add(neighbor)", "pass"),
    "nobody asks": (
        "if neighbor in self._down or neighbor in asked:",
        "if neighbor in self._down:",
    ),
    "nobody says hello again": (
        "if neighbor in self._down or neighbor in asked:",
        "if neighbor in asked:",
    ),
    "who waits asks at once": ("if waited >= self._need_after else", "if True else"),
    "who waits asks again and again": ("- self._down - self._asked if", "- self._down if"),
    "who has asked once asks nobody any more": ("self._asked.clear()", "pass"),
    "a link that is up again is not asked": ("self._asked.discard(neighbor)", "pass"),
    "who has asked once is patient for ever": (
        "self._need_after = NEED_AFTER\n            self._asked",
        "self._asked",
    ),
    "nobody wakes to ask": ("pause = min(pause, max(self._need_after - waited, ", "max((0, "),
    "pauses grow for ever": (
        "self._moved_at = now\n        self._look_after = LOOK_AFTER",
        "self._moved_at = now",
    ),
    "waiting is counted from the begin": (
        "waited = now - max(self._patient_since, self._moved_at)",
        "waited = now - self._patient_since",
    ),
    "nobody gives up": ("if waited > self._timeout:", "if False:"),
    "leaves without a goodbye": (
        "if self._done.issuperset(self._neighbors):",
        "if True:",
    ),
    "as impatient with one that comes back": (
        "self._timeout if self._lasting.intersection(missing) else GOODBYE_SECONDS",
        "GOODBYE_SECONDS",
    ),
    "as patient with one that does not": (
        "self._timeout if self._lasting.intersection(missing) else GOODBYE_SECONDS",
        "self._timeout",
    ),
    "two computations at once": ("if self._computing or self._over:", "if self._over:"),
    "waits while it computes": (
        "if not self._computing and waited >= pause:",
        "if waited >= pause:",
    ),
    "the laboratory hears nothing of who is halted": (
        (
            "self._patient_since = now\n"
            "            self._orders.append(ShowHalted(self.engine.rounds))"
        ),
        "self._patient_since = now",
    ),
    "the laboratory hears nothing of who waits": (
        "if waited > LABORATORY_AFTER and",
        "if False and",
    ),
    "waiting for the laboratory counts against neighbors": (
        "if not missing:\n            self._patient_since = now",
        "if not missing:\n            pass",
    ),
    "more rounds than the run has": (
        "Horizon(min(horizon.rounds, self._limit), horizon.final)",
        "horizon",
    ),
    "a watched node does not wait to be told": (
        "Horizon(0, final=False) if watched else Horizon(rounds, final=True)",
        "Horizon(rounds, final=True)",
    ),
    "ready before all links are up": (
        "if not self.begun and not self._down:\n            self._orders.append(ShowReady",
        "if not self.begun:\n            self._orders.append(ShowReady",
    ),
    "one that had finished begins again": ("if past.finished:", "if False:"),
    "goodbyes from before the crash are forgotten": (
        "self._done = set(past.done)",
        "self._done = set()",
    ),
    "nobody stops": ("why = self._wish.why(seconds)", "why = None"),
    "the time before the first round counts": (
        "self._begun_at = now - self.engine.advance_seconds",
        "self._begun_at = 0.0",
    ),
    "an abort is not passed on": (
        "self._orders.append(Fail(RunAborted(frame.reason)))",
        "pass",
    ),
    "a refusal is no end": ("self._orders.append(Fail(PeerRefused(reason)))", "pass"),
    "last words are said to nobody": (
        (
            "for neighbor in self._neighbors:\n"
            "            self._orders.append(Send(neighbor, self._last_words))"
        ),
        "pass",
    ),
    "who calls later is not told": (
        "self._orders.append(Send(neighbor, self._last_words))\n            return",
        "return",
    ),
    "who ended before us is forgotten": ("self._gone.add(neighbor)", "pass"),
    "last words are as long as the reason": ("Abort(reason[:MAX_TEXT])", "Abort(reason)"),
    "no round's frame leaves": (
        "self._orders.append(result)  # to be sent",
        "type(result) is RoundEnded and self._orders.append(result)  # to be sent",
    ),
    "rounds are not noted": (
        "self._orders.append(result)  # to be sent",
        "type(result) is RoundEnded or self._orders.append(result)  # to be sent",
    ),
    "nothing wakes it again": (
        "self._orders.append(WakeAt(now + pause))",
        "pass",
    ),
    "nobody looks for links that do not open": (
        "self._orders.append(Search(waited, missing))",
        "pass",
    ),
}

SEARCH = settings(
    max_examples=200,
    stateful_step_count=40,
    deadline=None,
    phases=[Phase.generate],
    derandomize=True,
    database=None,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
)


def mutated(old: str, new: str) -> type[NodeState]:
    assert SOURCE.count(old) == 1, f"{SOURCE.count(old)} times in node_state.py: {old!r}"
    module = ModuleType(node_state.__name__)
    exec(compile(SOURCE.replace(old, new), node_state.__file__, "exec"), module.__dict__)
    kind: type[NodeState] = module.NodeState
    return kind


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def notices(kind: type[NodeState]) -> str | None:
    """What notices that something is wrong with this state; None: nothing does."""
    for scenario in SCENARIOS:
        try:
            scenario(kind)
        except Exception:
            return scenario.__name__
    machine = type("Mutant", (Crashing,), {"kind": kind})
    try:
        run_state_machine_as_test(machine, settings=SEARCH)
    except Exception as exc:
        return f"the machine that crashes nodes: {exc!r}"
    return None


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutation_is_noticed(name: str) -> None:
    assert notices(mutated(*MUTANTS[name])) is not None


def test_nothing_is_noticed_in_the_state_as_it_is() -> None:
    assert notices(mutated(SOURCE, SOURCE)) is None
