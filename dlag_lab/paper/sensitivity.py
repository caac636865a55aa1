"""Which of the experiment's unstated settings its claims hang on: one change at a time.

The paper leaves open how accurately and from where SSDA and MSDA solve their subproblems, how long
an epoch of Katyusha is, and says twice how uneven the shards are, with different numbers. Variants
on the same problem share a comparison, so that no run is made twice. SSDA's and DLAG's rounds and
messages are those of exact subproblems (Newton): none of their gradients are asked for here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from coordinator.plan import RunSettings
from dlag_lab.compare import Comparison, slug
from dlag_lab.compare_table import Row, markdown_table
from dlag_lab.paper.claims import GRADIENTS, MESSAGES, ROUNDS, Cost, Costs
from dlag_lab.units import share

PARAMETERS = (("1e-4", 50), ("1e-5", 20))  # gamma = c and D: the paper's, and cautious ones
_ROUNDS = 4_000  # what is not there by then does not arrive
NEWTON = "solver=newton,stop=exact:1e-10"


@dataclass(frozen=True, slots=True)
class Variant:
    """One change: of the problem, of MSDA's solver, or of MDLAG's."""

    name: str
    problem: dict[str, Any] = field(default_factory=dict)  # fields of RunSettings
    baseline: str = ""  # parameters of msda
    lazy: str = ""  # parameters of mdlag

    def base(self, name: str) -> str:
        """`ssda` by Newton, or `msda` with this variant's parameters."""
        parameters = NEWTON if name == "ssda" else self.baseline
        return f"{name}:{parameters}" if parameters else name

    def choices(self, name: str) -> dict[str, str]:
        """`dlag` by Newton or `mdlag` as the variant says, with each pair of parameters."""
        more = f",{NEWTON}" if name == "dlag" else f",{self.lazy}" if self.lazy else ""
        return {
            f"{gamma},{D}": f"{name}:gamma={gamma},c={gamma},D={D}{more}" for gamma, D in PARAMETERS
        }

    @property
    def methods(self) -> tuple[str, ...]:
        """All of them."""
        lazy = [*self.choices("dlag").values(), *self.choices("mdlag").values()]
        return (self.base("ssda"), self.base("msda"), *lazy)


def variants(raw: Path | None) -> tuple[Variant, ...]:
    """Everything that is tried; the unscaled features only where their file is at hand."""
    cold, fine = "start=cold", "stop=exact:1e-14"
    tried = [
        Variant("as in `dlag paper heart`"),
        Variant("MSDA to 1e-14", baseline=fine),
        Variant("MSDA from 0 in every round", baseline=cold),
        Variant("MSDA from 0 to 1e-14", baseline=f"{cold},{fine}"),
        Variant("Katyusha's epoch m steps", baseline="passes=1", lazy="passes=1"),
        Variant("Katyusha's epoch 3m steps", baseline="passes=3", lazy="passes=3"),
        Variant("20 epochs for MDLAG", lazy="stop=epochs:20"),
        Variant(
            "m steps an epoch, and MSDA from 0 to 1e-14",
            baseline=f"{cold},{fine},passes=1",
            lazy="passes=1",
        ),
        Variant("shards U[1, 25]", {"shards": "uneven:1,25"}),
        Variant("shards U[1, 100]", {"shards": "uneven:1,100"}),
        Variant("shards even", {"shards": "even"}),
        Variant("lambda 0.001", {"lam": 0.001}),
        Variant("lambda 0.1", {"lam": 0.1}),
    ]
    if raw is not None:
        problem = {"data": str(raw), "rounds": _ROUNDS // 2}
        tried.append(Variant("raw features (Newton, 2,000 rounds)", problem, NEWTON, NEWTON))
    return tuple(tried)


def comparisons(
    tried: Sequence[Variant],
    settings: RunSettings,
    *,
    seeds: int,
    mode: Literal["mesh", "simulate"],
    target: float,
    out: Path,
    force: bool,
) -> Iterator[tuple[list[Variant], Comparison]]:
    """One comparison a problem, with the methods of all variants on it."""
    groups: dict[tuple[tuple[str, Any], ...], list[Variant]] = {}
    for variant in tried:
        groups.setdefault(tuple(variant.problem.items()), []).append(variant)
    for changes, group in groups.items():
        methods = tuple(dict.fromkeys(method for each in group for method in each.methods))
        name = slug("-".join(f"{key}={value}" for key, value in changes)) or "as-stated"
        yield (
            group,
            Comparison(
                methods=methods,
                settings=replace(settings, **{"rounds": _ROUNDS, **dict(changes)}),
                seeds=seeds,
                mode=mode,
                target=target,
                out=out / name,
                force=force,
            ),
        )


HEAD = (
    "setting",
    "DLAG to SSDA, rounds",
    "DLAG to SSDA, messages saved",
    "MDLAG to MSDA, rounds",
    "MDLAG to MSDA, gradients saved",
)


def line_of(variant: Variant, rows: Sequence[Row]) -> list[str]:
    """One line of the table, both pairs of parameters in each cell."""
    costs = Costs(rows)

    def cell(name: str, base: str, cost: Cost, *, saved: bool) -> str:
        ratios = costs.ratios(variant.choices(name), cost, variant.base(base)).values()
        return " / ".join("-" if ratio is None else _words(ratio, saved) for ratio in ratios)

    return [
        variant.name,
        cell("dlag", "ssda", ROUNDS, saved=False),
        cell("dlag", "ssda", MESSAGES, saved=True),
        cell("mdlag", "msda", ROUNDS, saved=False),
        cell("mdlag", "msda", GRADIENTS, saved=True),
    ]


def table(lines: Sequence[Sequence[str]]) -> str:
    """The table for a document."""
    return "\n".join(markdown_table(HEAD, lines, numbers=True))


def _words(ratio: float, saved: bool) -> str:
    if not saved:
        return f"x {ratio:.3g}"
    return share(1.0 - ratio) if ratio <= 1 else f"-{share(ratio - 1.0)}"
