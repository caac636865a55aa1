"""Promised and scheduled silence in whole nodes without sockets: broken links, crashes, stops.

Each scenario is a function without arguments, so that `test_round_mutants` can run it with a core
that is broken.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import networkx as nx
import pytest

from dlag_node.rounds import Engine
from dlag_node.rounds.stopping import REST_ROUNDS
from tests.methods.plans import simulate, small_plan
from tests.net.memory_mesh import MemoryMesh
from tests.rounds.crashes import Habits
from tests.rounds.meshes import engines_on, held, run_in_order, run_unfairly

Scenario = Callable[[], None]

PAIR = nx.path_graph(2)
PATH = nx.path_graph(3)
HOUSE = nx.house_graph()  # five nodes, triangles and squares
LONGEST = (1, 2, 3, 6)
ROUNDS = 24


def kinds_of_habits(rounds: int = ROUNDS) -> Iterator[Habits]:
    """Promises of all lengths, in rounds of one and more exchanges, with and without turns."""
    for longest, stride in product(LONGEST, (1, 3)):
        yield Habits((stride,) * rounds, longest)
    for longest, stride in product((0, 2), (2, 3)):
        yield Habits((stride,) * rounds, longest, meet=1)
    for stride, meet in product((1, 2), (2, 4)):
        yield Habits((stride,) * rounds, meet=meet)
    for who in ("all", "even"):
        yield Habits((1,) * rounds, 2, promising=who)


def neighbors_on(graph: nx.Graph) -> list[list[int]]:
    return [sorted(graph[i]) for i in sorted(graph)]


def mesh_of(graph: nx.Graph, habits: Habits, *, every: int = 0) -> MemoryMesh:
    return MemoryMesh(neighbors_on(graph), habits, every=[every] * len(graph))


def expected(graph: nx.Graph, habits: Habits, rounds: int | None = None) -> list[bytes]:
    """Everybody's theta of a run in order."""
    engines = engines_on(graph, habits)
    run_in_order(engines, len(habits.counts) if rounds is None else rounds)
    return [engine.method.theta.tobytes() for engine in engines]


def hear_only(mesh: MemoryMesh, node: int) -> None:
    """What is under way to a node arrives, and waits at its barrier: it computes nothing."""
    for letter in [e for e in mesh.post.flying if e.ends[1] == mesh.addresses[node]]:
        mesh.post.deliver(letter)
    while mesh.nodes[node].links.drain():
        pass


def check_end(mesh: MemoryMesh, graph: nx.Graph, habits: Habits) -> None:
    assert all(node.left for node in mesh.nodes)
    assert mesh.thetas == expected(graph, habits)


def any_order_gives_the_bits_of_the_run_in_order() -> None:
    for habits, seed in product(kinds_of_habits(12), range(3)):
        engines = engines_on(HOUSE, habits)
        lead = habits.schedule.lead

        def look(engines=engines, lead=lead) -> None:  # type: ignore[no-untyped-def]
            for i, j in HOUSE.edges:
                assert abs(engines[i].seq - engines[j].seq) <= lead
                for engine, other in ((engines[i], engines[j]), (engines[j], engines[i])):
                    assert held(engine, other.node) <= lead + 1
                    again = engine.frames_from(other.node, other.seq)
                    assert len(again) <= lead + 1

        run_unfairly(engines, 12, seed, look, slow=seed - 1)
        thetas = [engine.method.theta.tobytes() for engine in engines]
        assert thetas == expected(HOUSE, habits, 12)


def an_undisturbed_run_repeats_nothing() -> None:
    for habits in kinds_of_habits():
        mesh = mesh_of(HOUSE, habits, every=3)
        assert mesh.finish() == 0.0
        check_end(mesh, HOUSE, habits)
        assert mesh.control == {"Done": 2 * len(HOUSE.edges)}
        assert (mesh.repeats, mesh.refused) == (0, 0)


def a_fast_one_is_never_refused() -> None:
    """One goes as far as it can while the others sleep."""
    for habits, fast in product(kinds_of_habits(), range(3)):
        mesh = mesh_of(PATH, habits)
        mesh.until(lambda mesh=mesh: all(node.state.begun for node in mesh.nodes))  # type: ignore[misc]
        while not mesh.nodes[fast].over and any(n.engine.rounds < ROUNDS for n in mesh.nodes):
            mesh.move_only(fast)
            for i in range(3):
                for _ in range(4):
                    mesh.nodes[i].step()
                for letter in [e for e in mesh.post.flying if e.ends[1] == mesh.addresses[i]][:1]:
                    mesh.post.deliver(letter)
        assert mesh.finish() == 0.0
        check_end(mesh, PATH, habits)
        assert (mesh.repeats, mesh.refused) == (0, 0)


def a_broken_link_is_mended_with_few_frames() -> None:
    """Nobody falls back: what is sent again is what is in doubt, which no state folder helps."""
    for habits, steps in product(kinds_of_habits(), range(0, 60, 7)):
        mesh = mesh_of(PATH, habits)
        mesh.until(lambda mesh=mesh: mesh.nodes[1].engine.rounds == 5)  # type: ignore[misc]
        for _ in range(steps):
            mesh.nodes[steps % 3].step()
            for letter in mesh.post.flying[: steps % 2]:
                mesh.post.deliver(letter)
        mesh.cut(0, 1)
        mesh.cut(1, 2)
        assert mesh.finish() == 0.0
        check_end(mesh, PATH, habits)
        assert mesh.refused == 0
        assert mesh.control["Ask"] == 0
        answers = 4 + mesh.control["Need"]  # a hello an edge and direction
        assert mesh.control["Need"] <= 4 * habits.schedule.lead
        assert mesh.control["Resend"] <= answers * (habits.schedule.lead + 1)
        assert mesh.repeats <= mesh.control["Resend"]


def one_that_fell_back_catches_up_without_waiting() -> None:
    """Whoever it is, and however many at once; from the older checkpoint, too."""
    crashes = [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)]
    for number, habits in enumerate(kinds_of_habits()):
        for crashing, rot, every in product(crashes, (False, True), (1, 3)):
            mesh = mesh_of(PATH, habits, every=every)
            mesh.until(lambda mesh=mesh, k=8 + number % 5: mesh.nodes[1].engine.rounds == k)  # type: ignore[misc]
            mesh.move_only(crashing[-1])
            for i in crashing:
                mesh.kill(i)
            for i in crashing:
                if rot:
                    mesh.disks[i].slots.pop()
                mesh.start(i)
            assert mesh.finish() == 0.0
            check_end(mesh, PATH, habits)


def frames_are_kept_for_one_that_is_behind_and_falls_back() -> None:
    """The slow one promises all it can; the other is a whole lead ahead when it crashes."""
    for longest, every, rounds, both in product((1, 2, 3), (1, 3), range(7, 14), (False, True)):
        habits = Habits((1,) * ROUNDS, longest, promising="even")
        mesh = mesh_of(PAIR, habits, every=every)
        mesh.until(lambda mesh=mesh, rounds=rounds: mesh.nodes[0].engine.rounds == rounds)  # type: ignore[misc]
        mesh.move_only(1)
        if both:
            mesh.crash(1)
            hear_only(mesh, 0)
            mesh.move_only(1)  # what it kept is what it had saved, and one exchange more
        mesh.crash(0, rot=True)
        assert mesh.finish() == 0.0
        check_end(mesh, PAIR, habits)


def all_stop_in_the_round_that_is_announced() -> None:
    for habits, asked in product(kinds_of_habits(60), range(3)):
        mesh = mesh_of(PATH, habits)
        mesh.until(lambda mesh=mesh, i=asked: mesh.nodes[i].engine.rounds == 10)  # type: ignore[misc]
        mesh.nodes[asked].wish.ask()
        mesh.finish()
        (rounds,) = {node.engine.rounds for node in mesh.nodes}
        assert {node.state.course.ended for node in mesh.nodes} == {"asked"}
        meet = max(1, habits.meet)
        notice = 2 * habits.schedule.hop  # T = 2
        assert 11 + (notice - 1) * meet < rounds <= 11 + (notice + 1) * meet
        assert mesh.thetas == expected(PATH, habits, rounds)


def all_come_to_rest_in_the_same_round() -> None:
    """Whoever counts tells its silence, so that counts can grow; and words get around in time."""
    for number, plain in enumerate(kinds_of_habits(150)):
        habits = Habits(plain.counts, plain.longest, plain.meet, 3, plain.promising)
        mesh = MemoryMesh(neighbors_on(PATH), habits, tol=1e-9, every=[2, 2, 2])
        if number % 2:
            mesh.until(lambda mesh=mesh, k=8 + number % 6: mesh.nodes[1].engine.rounds == k)  # type: ignore[misc]
            mesh.crash(number % 3)
        mesh.finish()
        (rounds,) = {node.engine.rounds for node in mesh.nodes}
        assert {node.state.course.ended for node in mesh.nodes} == {"tol"}
        meet, T = max(1, habits.meet), 2
        still = 3 + REST_ROUNDS
        latest = still + habits.longest + 1 + (T + 1 + T * habits.schedule.hop) * meet
        assert still + T < rounds <= latest
        assert mesh.thetas == expected(PATH, habits, rounds)


def nothing_is_announced_in_a_frame_that_a_neighbor_may_have() -> None:
    """One was a whole lead ahead of its neighbor, which has its frames, and fell back behind it."""
    for longest, back, who in product((1, 2, 3), range(1, 9), ("all", "even")):
        habits = Habits((1,) * 40, longest, promising=who)
        mesh = mesh_of(PAIR, habits, every=40)
        mesh.until(lambda mesh=mesh, back=back: mesh.nodes[0].engine.rounds == back)  # type: ignore[misc]
        mesh.move_only(1)  # as far as the promises of node 0 allow
        hear_only(mesh, 0)
        mesh.crash(1)
        mesh.nodes[1].wish.ask()
        hear_only(mesh, 0)
        mesh.move_only(1)  # it learns where its neighbor is, which is slow
        mesh.finish()
        assert all(node.left for node in mesh.nodes)
        assert len({node.engine.rounds for node in mesh.nodes}) == 1


def words_travel_over_the_tree_whoever_is_asked() -> None:
    """Up in one exchange and down in another: each neighbor is told in its first frame."""
    with TemporaryDirectory() as folder:
        for topology in ("path:6", "erdos:9,0.4"):
            plan = small_plan(Path(folder), "tree", topology=topology)
            for asked in range(plan.nodes):

                def finished(engine: Engine, asked: int = asked) -> None:
                    if (engine.node, engine.rounds) == (asked, 3):
                        engine.stopping.agreement.announce("asked")

                run = simulate(plan, 60, shuffle=asked, finished=finished)
                (rounds,) = {engine.rounds for engine in run.engines}
                assert rounds == 3 + 2 * int(run.engines[0].method.parameters["depth"])


SILENCES: list[Scenario] = [
    function
    for _, function in inspect.getmembers(sys.modules[__name__], inspect.isfunction)
    if not inspect.signature(function).parameters
    and function.__module__ == __name__
    and not function.__name__.startswith(("test_", "kinds_"))
]


@pytest.mark.parametrize("scenario", SILENCES, ids=lambda each: each.__name__)
def test_scenario(scenario: Scenario) -> None:
    scenario()
