"""Any run that an operator may ask for, drawn at random: small, but of every kind there is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import strategies as st

from coordinator.plan import Plan, RunSettings
from dlag_lab.referee import Measurement, Referee
from dlag_lab.simulate import Simulator
from dlag_node.errors import ConfigError, ConvergenceError
from dlag_node.methods import METHODS
from dlag_node.methods.spec import PRESETS
from dlag_node.problems import Array
from dlag_node.rounding import FORMS
from dlag_node.rounds import Engine
from dlag_node.solvers import SOLVERS

MOST_NODES = 12


@dataclass(frozen=True, slots=True)
class Case:
    """One run: what the operator asks for, and the text of the data file and the file of edges."""

    settings: RunSettings
    samples: str
    edges: str = ""


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    """10^e, e between the two, to three digits."""
    return st.floats(low, high).map(lambda e: float(f"{10.0**e:.3g}"))


def pairs(nodes: int, rng: np.random.Generator) -> str:
    """A file of edges: a random tree, and some edges more."""
    tree = [(int(rng.integers(i)), i) for i in range(1, nodes)]
    more = [sorted(rng.choice(nodes, 2, replace=False).tolist()) for _ in range(nodes // 3)]
    return "".join(f"{i} {j}\n" for i, j in [*tree, *more])


@st.composite
def topologies(draw: st.DrawFn) -> tuple[str, int]:
    """A topology of every kind, and the number of its nodes; `edges` stands for a file."""
    kind = draw(
        st.sampled_from(["path", "ring", "star", "complete", "grid", "erdos", "regular", "edges"])
    )
    if kind == "grid":
        rows = draw(st.integers(1, 3))
        columns = draw(st.integers(2, MOST_NODES // rows))
        return f"grid:{rows}x{columns}", rows * columns
    nodes = draw(st.integers(3 if kind == "ring" else 2, MOST_NODES))
    if kind == "erdos":
        return f"erdos:{nodes},{draw(st.sampled_from([0.5, 0.7, 1]))}", nodes
    if kind == "regular":
        degrees = [k for k in range(1, nodes) if nodes * k % 2 == 0 and (k > 1 or nodes == 2)]
        return f"regular:{nodes},{draw(st.sampled_from(degrees))}", nodes
    return (kind if kind == "edges" else f"{kind}:{nodes}"), nodes


@st.composite
def data(draw: st.DrawFn, problem: str, nodes: int) -> str:
    """LIBSVM text of at least one sample a node, now and then badly scaled or sparse."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n0 = max(2, nodes + draw(st.sampled_from([0, 1, 5, 30])))
    dim = draw(st.integers(1, 6))
    A = rng.normal(size=(n0, dim))
    b = A @ rng.normal(size=dim) + rng.normal(size=n0)
    A *= 10.0 ** rng.uniform(-1, 1, size=dim) ** draw(st.sampled_from([0, 1, 3]))
    A *= 10.0 ** draw(st.sampled_from([0, 0, 0, -3, 3]))
    if draw(st.booleans()):
        A[rng.random(A.shape) < 0.8] = 0.0
        A[0, -1] = 1.0  # some feature must be stored
    if problem == "logistic":
        b = np.where(b > np.median(b), 1.0, -1.0)
        b[0], b[1] = 1.0, -1.0
    else:
        b *= 10.0 ** draw(st.sampled_from([0, 0, -3, 3]))
    return "".join(
        " ".join([f"{label!r}", *(f"{t}:{a!r}" for t, a in enumerate(row, 1) if a)]) + "\n"
        for label, row in zip(b.tolist(), A.tolist(), strict=True)
    )


@st.composite
def stops(draw: st.DrawFn) -> str:
    """A stop rule of every form."""
    rule = draw(st.sampled_from(["epochs", "relative", "exact", "theorem"]))
    if rule == "epochs":
        return f"epochs:{draw(st.integers(1, 60))}"
    if rule == "relative":
        return f"relative:{draw(powers(-9, -0.05))}"
    return "theorem" if rule == "theorem" else f"exact:{draw(powers(-13, 0))}"


def solvers(problem: str) -> st.SearchStrategy[str]:
    """The solvers that the problem has."""
    quick = ["newton", "closed"] if problem == "ridge" else ["newton"]
    return st.one_of(st.sampled_from(quick), st.sampled_from([*SOLVERS][:4]))


def laziness() -> st.SearchStrategy[float | str]:
    """gamma or c."""
    return st.one_of(powers(-9, -0.05), st.sampled_from([0.0, "theorem"]))


def parameters(name: str, problem: str) -> dict[str, st.SearchStrategy[object]]:
    """What can be set of a method, and to what."""
    dual: dict[str, st.SearchStrategy[object]] = {
        "eta_beta": powers(-3, 2),
        "s": powers(0, 3),
        "solver": solvers(problem) | st.just("best"),
        "stop": stops(),
        "weights": st.just("curvature"),
        "constants": st.just("tight"),
        "form": st.sampled_from([*FORMS]),
    }
    lazy = {
        "gamma": laziness(),
        "c": laziness(),
        "D": st.integers(1, 60),
        "rule": st.sampled_from(["paper", "steps"]),
        "tau": powers(-2, 2),
        "mu": st.just("own"),
        "predict": st.just("linear"),
        "promise": st.integers(1, 5),
    }
    channel = {
        "tau": powers(-2, 2) | st.just(0.0),
        "D": st.integers(1, 60),
        "predict": st.sampled_from(["none", "linear"]),
        "promise": st.integers(0, 5),
        "form": st.sampled_from([*FORMS]),
    }
    penalty = {"c": powers(-6, 3) | st.sampled_from([0.0, "balanced"]), "tol": powers(-13, -1)}
    local = {"local": st.integers(1, 5)}
    steps = {"alpha_L": powers(-3, 2), "sigma": st.floats(0.01, 1.99)}
    return {
        "ssda": dual,
        "msda": dual | {"K": st.integers(0, 8)},
        "dlag": dual | lazy,
        "mdlag": dual | lazy | {"K": st.integers(0, 8)},
        "mdlag-all": dual | lazy | {"K": st.integers(0, 8)},
        "extra": steps | {"alpha_L": st.one_of(powers(-3, 2), st.just("theorem"))},
        "exact-diffusion": steps | local,
        "diging": steps,
        "admm": penalty,
        "lazy-extra": steps | channel,
        "lazy-exact-diffusion": steps | local | channel,
        "lazy-admm": penalty | channel,
        "tree": {
            "memory": st.integers(1, 20),
            "curvature": st.sampled_from(["shard", "none"]),
            "output": st.sampled_from(["taken", "trial"]),
            "form": st.just("f4"),
        },
        "fgm": {
            "eps": powers(-8, 1),
            "start": st.sampled_from(["cold", "warm"]),
            "solver": solvers(problem),
        },
        "cola": {
            "gamma": powers(-2, 0),
            "epochs": st.integers(1, 60),
            "solver": solvers(problem),
        },
        "dsba": {"alpha_L": powers(-3, 3)},
        "adfs": {"output": st.sampled_from(["y", "v"])},
    }.get(name, {})


@st.composite
def methods(draw: st.DrawFn, problem: str, names: tuple[str, ...] = tuple(METHODS)) -> str:
    """A method with any of its parameters set."""
    name = draw(st.sampled_from(names))
    given_ = {
        key: draw(values)
        for key, values in parameters(name, problem).items()
        if draw(st.booleans())
    }
    if name in ("ssda", "msda", "dlag", "mdlag", "mdlag-all", "fgm"):
        given_["max_epochs"] = draw(st.sampled_from([30, 300]))  # bounds the time
    text = ",".join(f"{key}={value}" for key, value in given_.items())
    return f"{name}:{text}" if text else name


@st.composite
def cases(draw: st.DrawFn, names: tuple[str, ...] = tuple(METHODS)) -> Case:
    """Any run."""
    problem = draw(st.sampled_from(["logistic", "ridge"]))
    topology, nodes = draw(topologies())
    even = ["even", "uneven:1,4", "uneven:1,100"]
    skewed = ["labels:0.01", "labels:1"] if problem == "logistic" else []
    seed = draw(st.integers(0, 1000))
    settings = RunSettings(
        method=draw(methods(problem, names)),
        preset=draw(st.sampled_from(PRESETS)),
        topology=topology,
        weights=draw(st.sampled_from(["metropolis", "max-degree", "laplacian"])),
        problem=problem,
        lam=draw(powers(-4, -1)),
        shards=draw(st.sampled_from(even + skewed)),
        seed=seed,
    )
    edges = pairs(nodes, np.random.default_rng(seed)) if topology == "edges" else ""
    return Case(settings, draw(data(problem, nodes)), edges)


@dataclass(frozen=True, slots=True, eq=False)
class Ending:
    """How a run ended: refused before it began, by ConvergenceError, or after all its rounds."""

    refused: str = ""
    failed: str = ""
    start: float = nan  # max(f(0), worst f(theta_i^0)) - f*
    errors: tuple[float, ...] = ()  # worst f(theta_i^k) - f*
    finite: bool = True  # every theta of every round


def ending_of(case: Case, rounds: int) -> Ending:
    """Make the run in the simulator."""
    with TemporaryDirectory() as folder:
        try:
            simulator, referee, measured = _set_up(case, Path(folder), rounds)
        except ConfigError as exc:
            return Ending(refused=str(exc))
    finite = True

    def look(engine: Engine) -> None:
        nonlocal finite
        finite = finite and bool(np.isfinite(engine.method.theta).all())

    failed = ""
    try:
        simulator.run(referee, finished=look)
    except ConvergenceError as exc:
        failed = str(exc)
    errors = tuple(each.suboptimality for each in measured)
    zero: Array = np.zeros(referee.pooled.dim)
    at_zero = referee.pooled.value(zero) - referee.f_star
    return Ending("", failed, max([at_zero, *errors[:1]]), errors, finite)


def _set_up(case: Case, folder: Path, rounds: int) -> tuple[Simulator, Referee, list[Measurement]]:
    (folder / "samples.txt").write_text(case.samples)
    (folder / "edges").write_text(case.edges)
    settings = case.settings
    topology = str(folder / "edges") if settings.topology == "edges" else settings.topology
    plan = Plan(replace(settings, topology=topology, data=str(folder / "samples.txt")))
    measured: list[Measurement] = []
    referee = Referee(plan, target=None, rounds=rounds, report=measured.append)
    return Simulator(plan), referee, measured
