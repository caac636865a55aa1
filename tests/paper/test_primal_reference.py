"""Reference figures of EXTRA, exact diffusion, DIGing and ADMM, computed by another program.

Round k of these methods ends with x^{k+1}: k iterations are k rounds, and so are their messages.
"""

from __future__ import annotations

import pytest

from coordinator.plan import Plan
from tests.methods.plans import heart_plan, simulate
from tests.paper.runs import TARGET, instance_R

ROUNDS = 1_500  # more than any of them needs


def to_target(plan: Plan) -> tuple[dict[int, str], int, int, int]:
    """The worst errors after 1, 10, 50, 100 iterations; k, messages and floats at the target."""
    run = simulate(plan, ROUNDS, target=TARGET)
    errors = [each.suboptimality for each in run.measured]
    k = next(k for k, error in enumerate(errors, 1) if error <= TARGET)
    floats = sum(record.payload_bytes for row in run.records[:k] for record in row) // 8
    return {at: f"{errors[at - 1]:.4e}" for at in (1, 10, 50, 100)}, k, run.messages(k), floats


# sigma = 1.9 leaves W as the metropolis weights give it, as the reference does
@pytest.mark.parametrize(
    ("method", "table", "k"),
    [
        (
            "extra:alpha_L=1,sigma=1.9",
            {1: "2.6513e-01", 10: "3.5304e-02", 50: "8.9894e-04", 100: "5.7052e-05"},
            267,
        ),
        (
            "exact-diffusion:alpha_L=1",
            {1: "2.4819e-01", 10: "3.4227e-02", 50: "8.9985e-04", 100: "5.6969e-05"},
            267,
        ),
        (
            "diging:alpha_L=0.25,sigma=1.9",
            {1: "2.8802e-01", 10: "1.2890e-01", 50: "2.0235e-02", 100: "5.4702e-03"},
            1_073,
        ),
        (
            "admm:c=0.003",
            {1: "2.3685e-01", 10: "1.9017e-02", 50: "3.7578e-05", 100: "5.5363e-08"},
            97,
        ),
    ],
)
def test_the_worst_error_on_instance_R_to_all_digits(
    method: str, table: dict[int, str], k: int
) -> None:
    errors, found, messages, _ = to_target(instance_R(method))
    assert errors == table
    assert (found, messages) == (k, 80 * k)


@pytest.mark.parametrize(
    ("method", "preset", "k", "floats"),
    [
        ("extra:sigma=1.9", "paper", 255, 265_200),
        ("extra:sigma=1.9,alpha_L=2.3", "paper", 119, 123_760),
        ("extra", "theory", 990, 1_029_600),
        ("exact-diffusion", "paper", 255, 265_200),
        ("exact-diffusion:alpha_L=2.5", "paper", 115, 119_600),
        ("diging:alpha_L=0.3,sigma=1.9", "paper", 851, 1_770_080),
        ("diging:alpha_L=0.47,sigma=1.9", "paper", 547, 1_137_760),
        ("admm:c=0.003", "paper", 103, 107_120),
    ],
)
def test_the_reference_figures_on_instance_S(method: str, preset: str, k: int, floats: int) -> None:
    _, found, messages, sent = to_target(heart_plan(method, preset=preset))
    assert (found, messages, sent) == (k, 80 * k, floats)


@pytest.mark.parametrize(
    ("method", "k"), [("extra", 256), ("exact-diffusion", 255), ("diging", 1_022), ("admm", 100)]
)
def test_the_defaults_bring_every_worker_to_the_target(method: str, k: int) -> None:
    _, found, messages, _ = to_target(heart_plan(method))
    assert (found, messages) == (k, 80 * k)
