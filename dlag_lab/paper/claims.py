"""The paper's claims as functions of the rows of a comparison: each can come out either way.

The paper says "similar", "robust", "about 40 %" and shows curves without numbers. What these words
have to mean here is said once, in the constants below, and in each verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter
from statistics import median

from dlag_lab.compare_table import Row, markdown_table
from dlag_lab.units import share, short

ROBUST = 2.0  # the dearest choice of parameters costs at most this many times the cheapest
SIMILAR = 1.25  # ratio of rounds up to which two methods are "similar"
ABOUT = 0.05  # "about 40 % less" is a saving of 35 % or more

Cost = Callable[[Row], float | None]
Choices = Mapping[str, str]  # what a choice of parameters is called, and its method

ROUNDS: Cost = attrgetter("rounds_to_target")
MESSAGES: Cost = attrgetter("deltas_to_target")
GRADIENTS: Cost = attrgetter("gradients_to_target")


class Status(StrEnum):
    """How a claim came out."""

    HOLDS = "holds"
    PART = "in part"
    FAILS = "does not hold"
    OPEN = "not measured"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One claim: the paper's words, what was measured, how it came out, and why."""

    claim: str
    measured: str
    status: Status
    why: str = ""


class Costs:
    """Medians over the seeds; a method of which a seed did not arrive has none."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def median(self, method: str, cost: Cost) -> float | None:
        """The method's median cost to the target."""
        values = [cost(row) for row in self._rows if row.method == method]
        known = [value for value in values if value is not None]
        return median(known) if known and len(known) == len(values) else None

    def ratios(self, choices: Choices, cost: Cost, base: str) -> dict[str, float | None]:
        """Each choice's cost as a multiple of the base's."""
        whole = self.median(base, cost)
        found = {name: self.median(method, cost) for name, method in choices.items()}
        return {
            name: None if own is None or not whole else own / whole for name, own in found.items()
        }


def robust(costs: Costs, family: str, choices: Choices) -> Verdict:
    """Every choice of parameters arrives, and none costs much more than another."""
    claim = f"{family} is robust to the choice of its parameters"
    spreads, absent = {}, []
    for word, cost in (("rounds", ROUNDS), ("messages", MESSAGES), ("gradients", GRADIENTS)):
        found = {name: costs.median(method, cost) for name, method in choices.items()}
        absent = [name for name, value in found.items() if value is None]
        known = {name: value for name, value in found.items() if value is not None}
        if known:
            dearest = max(known, key=lambda name: known[name])
            spreads[word] = (known[dearest] / min(known.values()), dearest)
    if not spreads:
        return Verdict(claim, "no choice reached the target", Status.FAILS)
    measured = "dearest choice to cheapest: " + ", ".join(
        f"{word} {_times(factor)}" for word, (factor, _) in spreads.items()
    )
    if absent:
        missed = f"not with every seed at the target: {', '.join(absent)}"
        return Verdict(claim, f"{measured}; {missed}", Status.PART, f"robust without {absent[0]}")
    wide = {word: dearest for word, (factor, dearest) in spreads.items() if factor > ROBUST}
    if wide:
        why = "; ".join(f"{dearest} needs most {word}" for word, dearest in wide.items())
        return Verdict(claim, measured, Status.FAILS, f"more than {_times(ROBUST)}: {why}")
    return Verdict(claim, measured, Status.HOLDS, f"robust: within {_times(ROBUST)}")


def similar_rounds(costs: Costs, family: str, choices: Choices, base: tuple[str, str]) -> Verdict:
    """The rounds of each choice of parameters against the base's (its name, its method)."""
    ratios = costs.ratios(choices, ROUNDS, base[1])
    return _for_choices(
        f"{family} needs about as many iterations as {base[0]}",
        "times the rounds",
        ratios,
        good=lambda ratio: ratio <= SIMILAR,
        words=_times,
        meaning=f"similar: at most {_times(SIMILAR)}",
    )


def saves(
    costs: Costs, choices: Choices, base: tuple[str, str], cost: Cost, *, claim: str, about: float
) -> Verdict:
    """Each choice costs `about` that share less than the base."""
    ratios = costs.ratios(choices, cost, base[1])
    savings = {name: None if ratio is None else 1.0 - ratio for name, ratio in ratios.items()}
    return _for_choices(
        claim,
        f"less than {base[0]}",
        savings,
        good=lambda saved: saved >= about - ABOUT,
        words=_saving,
        meaning=f"about {share(about)}: {share(about - ABOUT)} or more",
    )


def least(costs: Costs, choices: Choices, others: Choices, cost: Cost, claim: str) -> Verdict:
    """Each choice costs less than every one of the others."""
    known = {
        name: value
        for name, method in others.items()
        if (value := costs.median(method, cost)) is not None
    }
    if not known:
        return Verdict(claim, "nothing to compare with", Status.OPEN)
    cheapest = min(known, key=lambda name: known[name])
    own = {name: costs.median(method, cost) for name, method in choices.items()}
    return _for_choices(
        claim,
        f"the least of the others: {cheapest} {short(known[cheapest])}",
        own,
        good=lambda value: value < known[cheapest],
        words=short,
        meaning=f"less than {cheapest}",
    )


def more(costs: Costs, who: tuple[str, str], others: Choices, cost: Cost, claim: str) -> Verdict:
    """`who` costs more than each of the others."""
    ratios = {
        name: None if ratio is None else 1.0 / ratio
        for name, ratio in costs.ratios(others, cost, who[1]).items()
    }
    return _for_choices(
        claim,
        f"{who[0]}'s as a multiple",
        ratios,
        good=lambda ratio: ratio > 1.0,
        words=_times,
        meaning="more: above x 1",
    )


def because(verdict: Verdict, why: str) -> Verdict:
    """The verdict with one more reason, where the claim does not hold for all."""
    if verdict.status in (Status.HOLDS, Status.OPEN) or not why:
        return verdict
    return replace(verdict, why=f"{verdict.why}. {why}")


def cost_of_a_round(costs: Costs, choices: Choices, base: tuple[str, str]) -> str:
    """What a round costs in gradients, as a multiple of the base's: no parameter changes that."""
    gradients = costs.ratios(choices, GRADIENTS, base[1])
    rounds = costs.ratios(choices, ROUNDS, base[1])
    each = [
        more / times
        for name, times in rounds.items()
        if times and (more := gradients[name]) is not None
    ]
    if not each:
        return ""
    return (
        f"A round costs {_times(median(each))} the gradients of a round of {base[0]}: "
        f"with as many rounds {_saving(1.0 - median(each))} would be saved"
    )


def claims_table(verdicts: Sequence[Verdict]) -> list[str]:
    """The verdicts as the lines of a markdown table."""
    body = [
        [str(at), each.claim, each.measured, f"**{each.status}**", each.why or "-"]
        for at, each in enumerate(verdicts, 1)
    ]
    return markdown_table(["", "claim", "measured", "", "why, or what it means"], body)


def _for_choices(
    claim: str,
    unit: str,
    found: Mapping[str, float | None],
    *,
    good: Callable[[float], bool],
    words: Callable[[float], str],
    meaning: str,
) -> Verdict:
    """Holds if it does for every choice, in part if for some of them."""
    of_one_family = len({name.partition("-")[0] for name in found}) == 1  # and the claim names it
    called = {name: (of_one_family and name.partition("-")[2]) or name for name in found}
    measured = f"{unit}: " + "; ".join(
        f"{called[name]}: {'-' if value is None else words(value)}" for name, value in found.items()
    )
    if all(value is None for value in found.values()):
        return Verdict(claim, measured, Status.OPEN, "not at the target with every seed")
    held = {name: value is not None and good(value) for name, value in found.items()}
    holding = [called[name] for name in found if held[name]]
    others = [called[name] for name in found if not held[name]]
    if not others:
        return Verdict(claim, measured, Status.HOLDS, meaning)
    if not holding:
        return Verdict(claim, measured, Status.FAILS, f"for none ({meaning})")
    why = f"for {'; '.join(holding)}, but not for {'; '.join(others)} ({meaning})"
    return Verdict(claim, measured, Status.PART, why)


def _times(factor: float) -> str:
    return f"x {factor:.3g}"


def _saving(saved: float) -> str:
    return share(saved) if saved >= 0 else f"{share(-saved)} more"
