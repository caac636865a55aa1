"""Promised silence: a delta may say for how many exchanges its worker will not speak again."""

from __future__ import annotations

from dlag_node.errors import ConfigError
from dlag_node.methods.flow import EVERYBODY_SPEAKS, Schedule

LONGEST_PROMISE = 100  # exchanges: what the wire's field takes


def require_promise(promise: int, D: int) -> None:
    """ConfigError unless R = `promise` is 0 (no promises), or a length that silence may have."""
    if not 0 <= promise <= LONGEST_PROMISE:
        raise ConfigError(f"promise = {promise}: expected 0 (off) to {LONGEST_PROMISE}")
    if promise > D:
        raise ConfigError(f"promise = {promise}: expected at most D = {D}, the longest silence")


def schedule_of(longest: int, *, exchanges: int = 1, lazy: int = 1) -> Schedule:
    """Who speaks when, in rounds of so many exchanges of which the first `lazy` are lazy.

    A worker waits for a neighbor in every exchange that the neighbor has not promised silence for.
    With R = `longest`, a neighbor whose silences are all promised can be waited for no sooner than
    R exchanges of every lazy channel later. One exchange in between that is not lazy ends this.
    """
    if not longest:
        return EVERYBODY_SPEAKS
    if lazy < exchanges:
        return Schedule(longest, exchanges, lead=lazy + 1, hop=1)
    return Schedule(longest, exchanges, lead=longest * exchanges + 1, hop=longest + 1)
