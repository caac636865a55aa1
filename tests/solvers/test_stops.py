"""Stop rules and their text."""

from __future__ import annotations

import pytest

from dlag_node.errors import ConfigError
from dlag_node.solvers import Stop, parse_stop


@pytest.mark.parametrize(
    ("text", "rule", "amount"),
    [
        ("epochs:30", "epochs", 30),
        ("relative:0.1", "relative", 0.1),
        ("exact:1e-10", "exact", 1e-10),
    ],
)
def test_a_rule_is_read_and_written_the_same(text: str, rule: str, amount: float) -> None:
    assert parse_stop(text) == Stop(rule, amount)
    assert str(parse_stop(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "", "epochs", "epochs:", "epochs:0", "epochs:-3", "epochs:2.5", "epochs:many", "epochs:inf",
        "relative:0", "relative:1", "relative:nan", "relative:-0.1", "exact:0", "exact:inf",
        "exact:nan", "exact:-1e-3", "steps:10", "30", "epochs:30:1",
    ],
)  # fmt: skip
def test_a_bad_rule_is_an_error_that_names_it_and_the_right_forms(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_stop(text)
    assert repr(text) in str(caught.value)
    assert "epochs:N (N >= 1), relative:R (0 < R < 1) or exact:TOL (TOL > 0)" in str(caught.value)


def test_a_rule_made_by_hand_is_checked_too() -> None:
    with pytest.raises(ConfigError, match="relative:2"):
        Stop("relative", 2)
    with pytest.raises(ConfigError, match="epochs:nan"):
        Stop("epochs", float("nan"))
