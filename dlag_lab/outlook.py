"""What to expect of a run that ended before its target: more rounds, or other parameters."""

from __future__ import annotations

from math import ceil, inf, log

from dlag_lab.result import RunResult
from dlag_lab.units import count, small

_FEWEST = 8  # rounds that tell anything at all
# As for the steps that a node watches: what has never been below half of its worst has not shrunk.
_UNSHRUNK = 0.5
_FAR = 20  # times as many rounds as were made: as good as never


def outlook(result: RunResult) -> str | None:
    """Where the run was heading, from its last two quarters; None where there is nothing to say.

    The worst suboptimality of the last quarter against that of the quarter before: where it is
    smaller the pace tells how many rounds more the target takes; where it is not, or hardly, more
    rounds would not help. A run without a target is spoken of only when it has come nowhere.
    """
    errors, target = result.trajectory.suboptimality, result.target
    if result.rounds < _FEWEST or result.trajectory.rounds_to(target) is not None:
        return None
    quarter = result.rounds // 4
    before, now = float(errors[-2 * quarter : -quarter].max()), float(errors[-quarter:].max())
    if target is None and (now < before or now < _UNSHRUNK * float(errors.max())):
        return None  # it comes down, or stays at the accuracy that its parameters allow
    if target is not None and now < before:
        more = _more(before, now, quarter, target)
        if more is not None and more <= _FAR * result.rounds:
            return (
                f"the suboptimality fell from {small(before)} to {small(now)} in the last "
                f"{count(quarter)} rounds: at this pace some {count(more)} more --rounds would do"
            )
    advice = result.run.get("advice")
    return (
        f"the suboptimality does not fall, or hardly: up to {small(now)} in the last "
        f"{count(quarter)} rounds, {small(before)} in those before"
        + (f"; {advice}" if advice else "")
    )


def _more(before: float, now: float, quarter: int, target: float) -> int | None:
    """The rounds from `now` to the target, falling by before / now in each quarter."""
    rate = log(before / now)  # neighbors among the floats may have the quotient 1
    return ceil(quarter * log(now / target) / rate) if 0 < rate < inf else None
