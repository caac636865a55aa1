"""A method's state, taken between two rounds and given to a method built anew: the same bits on."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlag_lab.simulate import engines_of
from dlag_node.errors import CheckpointRefused, LocalProtocolError
from dlag_node.methods import METHODS
from dlag_node.methods.state import State, capture, restore
from dlag_node.problems import Problem
from dlag_node.rounds import Engine
from dlag_node.solvers.subproblem import Subproblem
from tests.methods.plans import small_plan
from tests.rounds.meshes import run_in_order

# What the state test must try beside every method's defaults: parts with other streams or memories.
VARIANTS = (
    "dlag:D=3,solver=svrg",
    "dlag:rule=steps,tau=3,predict=linear,form=i1",
    "mdlag:K=3,solver=katyusha,stop=relative:0.1",
    "mdlag-all:K=3,rule=steps,predict=linear",
    "lazy-extra:form=f4",
    "dlag:promise=2",
    "dlag:promise=3,D=5,predict=linear,form=f4",
    "mdlag-all:K=3,promise=2",
    "lazy-admm:promise=3",
    "adfs:output=v,edges=3",
    "tree:memory=3,form=f8",
)
FACTS = (
    Problem,
    Subproblem,
)  # the data, and what a solver overwrites in every call before it reads


# what follows from the state and the settings, and is made again where it is needed
DERIVED = (
    "ahead._coming",
    "ahead._sorted",
    "_curvature._at_zero",
    *(f"{channel}.decided" for channel in ("channel", "gossip[0]", "gossip[1]")),
)


def engines(folder: Path, method: str) -> list[Engine]:
    return engines_of(small_plan(folder, method, topology="path:3", problem="logistic"))


@pytest.mark.grid
@pytest.mark.parametrize("method", [*METHODS, *VARIANTS])
@pytest.mark.parametrize("rounds", [0, 1, 2, 13])
def test_a_restored_method_goes_on_to_the_bit(method: str, rounds: int, tmp_path: Path) -> None:
    whole = engines(tmp_path, method)
    run_in_order(whole, rounds)
    states = [deepcopy(capture(engine.method)) for engine in whole]
    for engine in whole:
        for part in capture(engine.method).values():
            assert part is None or isinstance(part, np.ndarray | bytes | int | float)
    again = engines(tmp_path, method)
    for engine, state in zip(again, states, strict=True):
        restore(engine.method, state)
        assert same(capture(engine.method), state)
    run_in_order(whole, rounds + 12)
    run_in_order(again, 12)
    for one, other in zip(whole, again, strict=True):
        assert same(capture(one.method), capture(other.method))
        assert one.method.theta.tobytes() == other.method.theta.tobytes()
    if rounds:
        assert not same(capture(again[0].method), states[0])  # something did go on


def same(one: State, other: State) -> bool:
    return one.keys() == other.keys() and all(
        type(one[name]) is type(other[name]) and raw(one[name]) == raw(other[name]) for name in one
    )


def raw(value: object) -> object:
    return value.tobytes() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("method", [*METHODS, *VARIANTS])
def test_every_attribute_that_changes_is_declared(method: str, tmp_path: Path) -> None:
    worker = engines(tmp_path, method)
    before = [dict(leaves(engine.method)) for engine in worker]
    run_in_order(worker, 13)
    for engine, first in zip(worker, before, strict=True):
        declared = set(capture(engine.method))
        changed = {path for path, now in leaves(engine.method) if first.get(path) != now}
        forgotten = {path for path in changed if not covered(path, declared | {*DERIVED})}
        assert not forgotten, f"not in STATE: {forgotten}"
        assert changed


def covered(path: str, declared: set[str]) -> bool:
    return any(path == name or path.startswith((f"{name}.", f"{name}[")) for name in declared)


def leaves(part: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Every value that can be reached from an object, by path, in a form that can be compared."""
    if isinstance(part, FACTS) or inspect.isroutine(part):
        return
    if isinstance(part, np.random.Generator):
        yield path, repr(part.bit_generator.state)
    elif isinstance(part, np.ndarray):
        yield path, (part.shape, part.tobytes())
    elif isinstance(part, dict):
        for key, value in part.items():
            yield from leaves(value, f"{path}[{key}]")
    elif isinstance(part, deque | list | tuple):
        yield f"{path}[len]", len(part)
        for i, value in enumerate(part):
            yield from leaves(value, f"{path}[{i}]")
    elif isinstance(part, Iterator) and not hasattr(part, "STATE"):
        raise AssertionError(f"{path} is an iterator, whose state nobody can see")
    elif hasattr(part, "__dict__") or hasattr(part, "__slots__"):
        names = [*getattr(part, "__dict__", ()), *getattr(part, "__slots__", ())]
        for name in names:
            yield from leaves(getattr(part, name), f"{path}.{name}" if path else name)
    else:
        yield path, part


def test_a_forgotten_name_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dlag_node.methods.lazy import LazyRule

    monkeypatch.setattr(LazyRule, "STATE", ("age", "_window", "_recent"))
    with pytest.raises(AssertionError, match=r"not in STATE: \{'channel.rule._older'\}"):
        test_every_attribute_that_changes_is_declared("dlag:D=3", tmp_path)


def broken(state: State, **changes: Any) -> State:
    return {name: value for name, value in (state | changes).items() if value is not ...}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x": ...}, "a checkpoint without x"),
        ({"z": 1.0}, r"a checkpoint with \['z'\], which nobody here keeps"),
        ({"x": 3}, "another kind of x: int"),
        ({"x": np.zeros((2, 2))}, "another kind of x: float64 of shape"),
        ({"x": np.zeros(4, dtype=np.int64)}, "another kind of x: int64 of shape"),
        ({"k": 1.5}, "another kind of k: float"),
        ({"k": None}, "another kind of k: NoneType"),
        ({"oracle.rng": b"short"}, "oracle.rng: 5 bytes, expected 37"),
        ({"oracle.rng": 7}, "another kind of oracle.rng: int"),
        ({"channel.rule._window": 7}, "another kind of channel.rule._window: int"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    method = engines(tmp_path, "dlag")[0].method
    with pytest.raises(CheckpointRefused, match=words):
        restore(method, broken(capture(method), **changes))


def test_state_that_no_checkpoint_holds_is_our_own_bug() -> None:
    class Careless:
        STATE = ("words",)
        words = ("a", "b")

    class Elsewhere:
        STATE = ("rng",)
        rng = np.random.Generator(np.random.MT19937(1))

    with pytest.raises(LocalProtocolError, match="state words is a tuple"):
        capture(Careless())
    with pytest.raises(LocalProtocolError, match="a stream of MT19937: expected PCG64"):
        capture(Elsewhere())
