"""The paper's section Experiments: heart on the 5x5 grid, its Figures 1 to 3 and their claims."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.plan import RunSettings
from dlag_lab.compare_table import Row
from dlag_lab.paper.claims import (
    GRADIENTS,
    MESSAGES,
    Costs,
    Verdict,
    because,
    cost_of_a_round,
    least,
    robust,
    saves,
    similar_rounds,
)
from dlag_lab.paper.experiment import Experiment, PaperFigure

SSDA, MSDA, COLA = ("SSDA", "ssda"), ("MSDA", "msda"), ("COLA", "cola:epochs=40")

# gamma = c and D: the first is the text's choice, the others are in the figures' spirit
PARAMETERS = (("1e-4", 50), ("1e-4", 10), ("1e-5", 50), ("1e-5", 20), ("1e-6", 50))


def choices(method: str) -> dict[str, str]:
    """`DLAG-1e-4,50` and the like, as the paper's legends have them, and the method each means."""
    return {
        f"{method.upper()}-{gamma},{D}": f"{method}:gamma={gamma},c={gamma},D={D}"
        for gamma, D in PARAMETERS
    }


DLAG, MDLAG = choices("dlag"), choices("mdlag")


def judge(rows: Sequence[Row]) -> list[Verdict]:
    """The four claims of the section, each cut into what can be measured."""
    costs = Costs(rows)
    return [
        robust(costs, "DLAG", DLAG),
        robust(costs, "MDLAG", MDLAG),
        similar_rounds(costs, "DLAG", DLAG, SSDA),
        similar_rounds(costs, "MDLAG", MDLAG, MSDA),
        least(
            costs, DLAG, dict([SSDA, MSDA, COLA]) | MDLAG, MESSAGES,
            "DLAG uses the least communication",
        ),
        saves(
            costs, DLAG, SSDA, MESSAGES,
            claim="DLAG communicates about 40 % less than SSDA", about=0.40,
        ),
        least(
            costs, MDLAG, dict([SSDA, MSDA, COLA]) | DLAG, GRADIENTS,
            "MDLAG has the smallest gradient complexity",
        ),
        because(
            saves(
                costs, MDLAG, MSDA, GRADIENTS,
                claim="MDLAG needs about 80 % fewer gradients than MSDA", about=0.80,
            ),
            cost_of_a_round(costs, MDLAG, MSDA),
        ),
    ]  # fmt: skip


HEART = Experiment(
    name="heart",
    title="heart on the 5x5 grid (the paper's Figures 1 to 3)",
    methods={method: name for name, method in [SSDA, MSDA, COLA, *DLAG.items(), *MDLAG.items()]},
    settings=RunSettings(),
    target=1e-7,
    seeds=5,
    figures=(
        PaperFigure(1, "Rounds", "figure-1-iterations"),
        PaperFigure(2, "Messages", "figure-2-communication"),
        PaperFigure(3, "Sample gradients", "figure-3-gradients"),
    ),
    judge=judge,
)
