"""What must hold after every round of every run, whatever was sent and whatever was not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dlag_node.problems import Array
from dlag_node.rounds import Engine
from dlag_node.wire.frames import Delta, RoundFrame
from tests.methods.plans import States, heart_plan, simulate, small_plan

LAZY = "gamma=1e-3,c=1e-3,D=6"
METHODS = [
    "ssda:stop=epochs:5",
    "msda:stop=epochs:5",
    f"dlag:{LAZY},stop=epochs:5",
    f"mdlag:{LAZY}",
]


class Ears:
    """What each worker has heard of each neighbor's theta: the sum of the deltas sent to it."""

    def __init__(self, exchanges: int) -> None:
        self.heard: dict[tuple[int, int], Array] = {}
        self._exchanges = exchanges

    def attach(self, engines: list[Engine]) -> None:
        for engine in engines:
            engine.deliver = self._listening(engine, engine.deliver)  # type: ignore[method-assign]

    def _listening(self, engine: Engine, deliver):  # type: ignore[no-untyped-def]
        def listen(neighbor: int, frame: RoundFrame) -> bool:
            # only the first exchange of a round carries a delta of theta
            if isinstance(frame, Delta) and frame.seq % self._exchanges == 0:
                edge = (neighbor, engine.node)
                self.heard[edge] = self.heard.get(edge, 0.0) + frame.vector
            return bool(deliver(neighbor, frame))

        return listen


@pytest.mark.parametrize("method", METHODS)
def test_sum_of_x_P_and_the_known_thetas_along_a_run(method: str) -> None:
    plan = heart_plan(method)
    states, ears = States(), Ears(exchanges=4 if method.startswith("m") else 1)
    run = simulate(plan, 40, prepare=ears.attach, finished=states.keep)

    for name in ("x", "y"):
        # sum_i x_i = 0: the columns of U sum to 0, so every step keeps it up to rounding
        drift = np.linalg.norm(states[name].sum(axis=1), axis=1)
        size = np.linalg.norm(states[name], axis=2).sum(axis=1)
        assert (drift <= 1e-12 * size).all()

    theta_hat = states["theta_hat"]
    mixed = np.einsum("ij,kjd->kid", plan.U, theta_hat)
    np.testing.assert_allclose(
        states["P"], mixed, rtol=0, atol=1e-12 * np.abs(theta_hat).max()
    )  # P is a sum of deltas, each rounded

    edges = {(i, j) for i in range(plan.nodes) for j in plan.graph.neighbors(i)}
    assert ears.heard.keys() == edges
    for (sender, _), heard in ears.heard.items():
        np.testing.assert_allclose(
            heard, theta_hat[-1, sender], rtol=0, atol=1e-12 * np.abs(theta_hat).max()
        )
    if "lag" in method:
        assert any("s" in said for row in run.sent for said in row)


@pytest.mark.parametrize("method", METHODS)
def test_a_message_is_one_vector_over_one_directed_edge(method: str, tmp_path: Path) -> None:
    plan = small_plan(tmp_path, method, topology="star:5")
    run = simulate(plan, 30)
    for row in run.records:
        for node, record in enumerate(row):
            degree = plan.graph.degree(node)
            assert record.deltas == record.exchanges.count("D") * degree
            assert record.skips == record.exchanges.count("s") * degree
            assert record.payload_bytes == record.deltas * 8 * plan.dim


@pytest.mark.parametrize("D", [1, 3])
@pytest.mark.parametrize("method", ["dlag", "mdlag"])
def test_nobody_is_silent_for_more_than_D_rounds(method: str, D: int, tmp_path: Path) -> None:
    plan = small_plan(tmp_path, f"{method}:solver=closed,gamma=1e-3,c=1e-3,D={D}")
    run = simulate(plan, 40)
    ages = np.array([[record.age for record in row] for row in run.records])
    silent = np.array([[said[0] == "s" for said in row] for row in run.sent])
    assert ages.max() == D
    assert not silent[0].any()
    np.testing.assert_array_equal(ages > 0, silent)
    np.testing.assert_array_equal(ages[1:][silent[1:]], ages[:-1][silent[1:]] + 1)
