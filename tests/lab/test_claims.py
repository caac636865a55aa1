"""Each of the paper's claims, on rows made up so that it holds and so that it does not."""

from __future__ import annotations

import pytest

from dlag_lab.compare_table import Row
from dlag_lab.paper.claims import (
    GRADIENTS,
    MESSAGES,
    Costs,
    Status,
    Verdict,
    because,
    claims_table,
    cost_of_a_round,
    least,
    more,
    robust,
    saves,
    similar_rounds,
)
from dlag_lab.paper.heart import DLAG, HEART, MDLAG, judge

BASE = ("SSDA", "ssda")
CHOICES = {"DLAG-1e-4,50": "dlag:D=50", "DLAG-1e-4,10": "dlag:D=10"}


def row(method: str, rounds: int | None, messages: int = 100, gradients: int = 100) -> Row:
    if rounds is None:
        return Row(method, 0, "not reached", rounds=99)
    return Row(
        method,
        0,
        "reached",
        rounds_to_target=rounds,
        deltas_to_target=messages,
        gradients_to_target=gradients,
    )


def costs(*rows: Row) -> Costs:
    return Costs([row("ssda", 100), *rows])


def both(first: Row, second: Row) -> Costs:
    return costs(first, second)


def test_a_cost_is_the_median_of_seeds_that_all_arrived() -> None:
    rows = [row("dlag", rounds) for rounds in (3, 1, 8)]
    assert Costs(rows).median("dlag", lambda each: each.rounds_to_target) == 3
    assert Costs([*rows, row("dlag", None)]).median("dlag", GRADIENTS) is None
    assert Costs(rows).median("ssda", GRADIENTS) is None


@pytest.mark.parametrize(
    ("second", "status", "words"),
    [
        (row("dlag:D=10", 199), Status.HOLDS, "rounds x 1.99"),
        (row("dlag:D=10", 201), Status.FAILS, "DLAG-1e-4,10 needs most rounds"),
        (row("dlag:D=10", 100, messages=300), Status.FAILS, "needs most messages"),
        (row("dlag:D=10", 100, gradients=300), Status.FAILS, "needs most gradients"),
        (row("dlag:D=10", None), Status.PART, "not with every seed at the target: DLAG-1e-4,10"),
    ],
)
def test_robust_means_that_no_choice_is_much_dearer(
    second: Row, status: Status, words: str
) -> None:
    verdict = robust(both(row("dlag:D=50", 100), second), "DLAG", CHOICES)
    assert verdict.status is status
    assert words in f"{verdict.measured} {verdict.why}"


def test_nothing_is_robust_that_never_arrives() -> None:
    nobody = both(row("dlag:D=50", None), row("dlag:D=10", None))
    assert robust(nobody, "DLAG", CHOICES).status is Status.FAILS


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        (125, 100, Status.HOLDS),
        (126, 100, Status.PART),
        (126, 200, Status.FAILS),
        (100, None, Status.PART),
        (None, None, Status.OPEN),
    ],
)
def test_similar_rounds(first: int | None, second: int | None, status: Status) -> None:
    table = both(row("dlag:D=50", first), row("dlag:D=10", second))
    verdict = similar_rounds(table, "DLAG", CHOICES, BASE)
    assert verdict.status is status
    if status is Status.PART:
        assert ("for 1e-4,10, but not for 1e-4,50" in verdict.why) == (first == 126)


@pytest.mark.parametrize(
    ("messages", "status"),
    [((60, 64), Status.HOLDS), ((60, 66), Status.PART), ((99, 140), Status.FAILS)],
)
def test_a_saving_of_about_forty_percent(messages: tuple[int, int], status: Status) -> None:
    table = both(row("dlag:D=50", 1, messages[0]), row("dlag:D=10", 1, messages[1]))
    verdict = saves(table, CHOICES, BASE, MESSAGES, claim="less", about=0.4)
    assert verdict.status is status
    if status is Status.FAILS:
        assert verdict.measured == "less than SSDA: 1e-4,50: 1 %; 1e-4,10: 40 % more"


@pytest.mark.parametrize(
    ("gradients", "status"),
    [((99, 98), Status.HOLDS), ((100, 98), Status.PART), ((100, 101), Status.FAILS)],
)
def test_the_least_is_less_than_every_other(gradients: tuple[int, int], status: Status) -> None:
    table = both(
        row("dlag:D=50", 1, gradients=gradients[0]), row("dlag:D=10", 1, gradients=gradients[1])
    )
    verdict = least(table, CHOICES, dict([BASE]), GRADIENTS, "the least")
    assert verdict.status is status
    assert least(table, CHOICES, {}, GRADIENTS, "the least").status is Status.OPEN


def test_more_is_more_than_each() -> None:
    who = ("ADFS", "adfs")
    table = costs(row("adfs", 1, 101), row("dlag:D=50", 1, 100), row("dlag:D=10", 1, 100))
    assert more(table, who, CHOICES, MESSAGES, "more").status is Status.HOLDS
    table = costs(row("adfs", 1, 100), row("dlag:D=50", 1, 100), row("dlag:D=10", 1, 50))
    assert more(table, who, CHOICES, MESSAGES, "more").status is Status.PART
    assert more(costs(row("adfs", 1)), who, CHOICES, MESSAGES, "more").status is Status.OPEN


def test_a_reason_is_added_where_a_claim_fails() -> None:
    table = both(row("dlag:D=50", 200, gradients=100), row("dlag:D=10", 100, gradients=50))
    why = cost_of_a_round(table, CHOICES, BASE)
    assert why.startswith("A round costs x 0.5 the gradients of a round of SSDA")
    assert "50 % would be saved" in why
    failed = Verdict("c", "m", Status.FAILS, "for none")
    assert because(failed, why).why == f"for none. {why}"
    assert because(Verdict("c", "m", Status.HOLDS, "x"), why).why == "x"
    assert cost_of_a_round(costs(), CHOICES, BASE) == ""


def heart_rows(lazy: tuple[int, int, int], multi: tuple[int, int, int]) -> list[Row]:
    others = [
        row("ssda", 100, 100, 100),
        row("msda", 40, 200, 50),
        row("cola:epochs=40", 400, 400, 400),
    ]
    own = [row(method, *lazy) for method in DLAG.values()]
    return [*others, *own, *(row(method, *multi) for method in MDLAG.values())]


def test_hearts_claims_all_hold_or_all_fail() -> None:
    good = judge(heart_rows((110, 60, 120), (45, 180, 10)))
    assert [verdict.status for verdict in good] == [Status.HOLDS] * 8
    bad = judge(heart_rows((150, 160, 220), (85, 380, 51)))
    assert [verdict.status for verdict in bad[2:]] == [Status.FAILS] * 6
    assert "A round costs" in bad[-1].why
    lines = claims_table(bad)
    assert len(lines) == 2 + len(bad)
    assert lines[4].startswith("| 3 | DLAG needs about as many iterations as SSDA |")
    assert "**does not hold**" in lines[4]


def test_hearts_methods_are_those_that_its_claims_speak_of() -> None:
    assert set(DLAG.values()) | set(MDLAG.values()) < set(HEART.methods)
    assert HEART.methods["dlag:gamma=1e-4,c=1e-4,D=50"] == "DLAG-1e-4,50"
    assert (HEART.settings.topology, HEART.settings.lam) == ("grid:5x5", 0.01)
