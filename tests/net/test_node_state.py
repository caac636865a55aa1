"""What a node decides, without a loop and without a sleep: small meshes in memory, by the letter.

Each scenario takes the class of the state, so that `test_mutants` can hand in a broken one.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from itertools import product

import pytest

from dlag_node.errors import NeighborTimeout, PeerRefused, RunAborted
from dlag_node.net.node_state import (
    GOODBYE_SECONDS,
    LABORATORY_AFTER,
    LOOK_AFTER,
    NEED_AFTER,
    NodeState,
)
from dlag_node.net.orders import (
    Ask,
    Compute,
    Leave,
    Mention,
    Order,
    Reckon,
    Save,
    Search,
    Send,
    Show,
    ShowHalted,
    ShowReady,
    WakeAt,
)
from dlag_node.rounds import Outgoing, RoundEnded
from dlag_node.wire.frames import Abort, Hello, Refuse
from dlag_node.wire.limits import MAX_TEXT, PROTOCOL
from dlag_node.wire.observing import Horizon
from tests.net.memory_mesh import MemoryMesh, MemoryNode

Kind = type[NodeState]
Scenario = Callable[[Kind], None]

PATH = [[1], [0, 2], [1]]
PAIR = [[1], [0]]


def given(node: MemoryNode, kind: type[Order]) -> list[Order]:
    """The orders of this kind that a node has had so far."""
    return [order for order in node.orders if isinstance(order, kind)]


def act(node: MemoryNode) -> list[Order]:
    """Let one node do all that it can do now; returns its orders."""
    before = len(node.orders)
    while node.step():
        pass
    return node.orders[before:]


def an_undisturbed_run_repeats_nothing(kind: Kind) -> None:
    mesh = MemoryMesh(PATH, [1, 2, 0, 3] * 3, every=[0, 2, 5], kind=kind)
    assert mesh.finish() == 0.0
    assert all(node.left for node in mesh.nodes)
    assert mesh.control == {"Done": 4}  # one a direction of each edge, and no Need
    assert [len(disk.records) for disk in mesh.disks] == [12] * 3


def the_kernel_is_asked_once_after_the_last_round_and_before_goodbye(kind: Kind) -> None:
    """While all connections are up: whoever has heard a goodbye may close its own."""
    mesh = MemoryMesh(PATH, [1] * 3, kind=kind)
    mesh.finish()
    for node in mesh.nodes:
        kinds = [type(o) for o in node.orders if isinstance(o, RoundEnded | Reckon | Send)]
        assert kinds[:5] == [RoundEnded] * 3 + [Reckon, Send]
        assert kinds.count(Reckon) == 1


def nothing_is_computed_before_every_link_is_up(kind: Kind) -> None:
    mesh = MemoryMesh(PATH, [1], kind=kind)
    middle = mesh.nodes[1]
    hellos = [each for each in mesh.post.flying if each.ends[1] == mesh.addresses[1]]
    assert len(hellos) == 1  # of node 2; node 0 is called, and has not answered
    for letter in hellos:
        mesh.post.deliver(letter)
    act(middle)
    assert not given(middle, Compute)
    assert not given(middle, ShowReady)
    mesh.move()
    assert len(given(middle, ShowReady)) == 1
    assert middle.left


def computing_goes_on_once_at_a_time(kind: Kind) -> None:
    mesh = MemoryMesh(PAIR, [1] * 3, watched=True, kind=kind)
    mesh.move()
    state = mesh.nodes[0].state
    state.granted(Horizon(3, final=True))
    while not isinstance(state.next_order(), Compute):
        pass
    state.granted(Horizon(2, final=True))
    state.wake(mesh.now + 100.0)
    assert isinstance(state.next_order(), WakeAt)
    assert state.next_order() is None  # no second one, and no asking: it is not we who wait


def a_round_is_noted_saved_and_then_shown(kind: Kind) -> None:
    mesh = MemoryMesh(PAIR, [1] * 4, every=[2, 2], watched=True, kind=kind)
    for node in mesh.nodes:
        node.state.granted(Horizon(4, final=True))
    mesh.finish()
    kinds = [
        type(o) for o in mesh.nodes[0].orders if isinstance(o, RoundEnded | Save | Show | Outgoing)
    ]
    round_ = [Outgoing, RoundEnded, Show]
    saved = [Outgoing, RoundEnded, Save, Show]
    assert kinds == [*round_, *saved, *round_, *saved, Save, Save, *kinds[16:]]
    assert kinds[16:] in ([], [Save])  # a Done that comes after ours
    finished = [order.finished for order in mesh.nodes[0].orders if isinstance(order, Save)]
    assert finished[:4] == [False, False, True, True]


def mesh_at(rounds: int, steps: int, *, every: int, kind: Kind) -> MemoryMesh:
    """A path of three whose middle has made so many rounds, and so many small steps after that."""
    mesh = MemoryMesh(PATH, [1] * 30, every=[every, 2 * every, every], kind=kind)
    mesh.until(lambda: mesh.nodes[1].engine.rounds == rounds)
    for _ in range(steps):
        for node in mesh.nodes:
            node.step()
        for letter in mesh.post.flying[:1]:
            mesh.post.deliver(letter)
    return mesh


def a_broken_link_costs_no_pause(kind: Kind) -> None:
    """What was under way is lost; the first hello on the new connection brings it again."""
    for steps in range(12):
        mesh = mesh_at(9, steps, every=0, kind=kind)
        mesh.cut(0, 1)
        mesh.cut(1, 2)
        assert mesh.finish() == 0.0
        assert all(node.left for node in mesh.nodes)


def lose(mesh: MemoryMesh, sender: int) -> None:
    """What a node has under way is dropped, and its connections stay."""
    mesh.post.flying = [e for e in mesh.post.flying if e.ends[0] != mesh.addresses[sender]]


def a_frame_that_was_dropped_is_asked_for_late(kind: Kind) -> None:
    """In one exchange, and in another one: progress makes the pause as short as it was."""
    mesh = MemoryMesh(PAIR, [1] * 9, kind=kind)
    for rounds in (3, 5):
        mesh.until(lambda rounds=rounds: mesh.nodes[0].engine.rounds == rounds)  # type: ignore[misc]
        mesh.move_only(0)  # waits for a frame that node 1 has not made
        mesh.move_only(1)
        lose(mesh, 1)
        seq, begun = mesh.nodes[0].engine.seq, mesh.now
        while mesh.nodes[0].engine.seq == seq and mesh.now < begun + 100.0:
            asked = mesh.control["Ask"]
            mesh.wait(0.25)
            mesh.move_only(0)
            assert mesh.control["Ask"] == asked or mesh.now - begun >= NEED_AFTER
            mesh.move_only(1)
        assert NEED_AFTER <= mesh.now - begun <= NEED_AFTER + 1.0
    assert mesh.finish() == 0.0
    assert all(node.left for node in mesh.nodes)


def who_waits_by_a_link_that_is_up_asks_once_an_exchange_and_connection(kind: Kind) -> None:
    mesh = MemoryMesh(PAIR, [1] * 9, kind=kind)
    mesh.until(lambda: mesh.nodes[0].engine.rounds == 3)
    node = mesh.nodes[0]
    mesh.move_only(0)
    reopened = Hello(PROTOCOL, "run", "config", 1, node.engine.seq, 0, mesh.addresses[1])
    asked: list[float] = []

    def sleep(seconds: float) -> None:
        """Time passes; the neighbor is there, and makes nothing."""
        until = mesh.now + seconds
        while mesh.now < until:
            before = len(given(node, Ask))
            mesh.wait(min(node.wake_at, until) - mesh.now)
            act(node)
            asked.extend([mesh.now] * (len(given(node, Ask)) - before))

    sleep(6.0)
    assert asked == [pytest.approx(NEED_AFTER, abs=0.02)]
    sleep(94.0)
    assert len(asked) == 1
    assert len(given(node, Mention)) > 20  # the log hears of it as before
    node.state.opened(1, reopened)
    sleep(100.0)
    assert len(asked) == 2
    mesh.nodes[0].state.opened(1, reopened)
    sleep(100.0)
    assert len(asked) == 3


def who_waits_looks_after_pauses_that_double(kind: Kind) -> None:
    mesh = MemoryMesh(PAIR, [1] * 9, kind=kind, timeout=30.0)
    mesh.now = 50.0  # what was before the last progress does not count
    mesh.until(lambda: mesh.nodes[0].engine.rounds == 3)
    mesh.kill(1)
    node = mesh.nodes[0]
    act(node)
    mesh.wait(0.0)  # it would have woken long ago
    act(node)
    assert mesh.control["Ask"] == 0
    pauses: list[float] = []
    while node.error is None and len(pauses) < 50:
        before, asked = mesh.now, mesh.control["Ask"]
        mesh.wait(node.wake_at - mesh.now)
        act(node)
        if mesh.control["Ask"] > asked:
            pauses.append(mesh.now - before)
    assert pauses[:9] == [0.25, 0.25, 0.5, 1.0, 2.0, 1.0, 4.0, 4.0, 4.0]  # 5 s are a limit, too
    assert max(pauses) == 4.0
    assert isinstance(node.error, NeighborTimeout)
    assert mesh.now == pytest.approx(80.0, abs=0.5)
    assert not given(node, Search)  # the links had been up


def pauses_are_short_again_after_progress(kind: Kind) -> None:
    mesh = MemoryMesh(PAIR, [1] * 9, every=[1, 1], kind=kind)
    mesh.until(lambda: mesh.nodes[0].engine.rounds == 3)
    mesh.kill(1)
    for _ in range(8):
        mesh.wait(mesh.nodes[0].wake_at - mesh.now)
        act(mesh.nodes[0])
    mesh.start(1)
    mesh.until(lambda: mesh.nodes[0].engine.rounds == 5)
    mesh.kill(1)
    act(mesh.nodes[0])
    asked = mesh.control["Ask"]
    mesh.wait(4.0)  # one pause of before is over
    act(mesh.nodes[0])
    mesh.wait(LOOK_AFTER)
    act(mesh.nodes[0])
    mesh.wait(2 * LOOK_AFTER)
    act(mesh.nodes[0])
    assert mesh.control["Ask"] - asked >= 2


def links_that_never_open_are_looked_into(kind: Kind) -> None:
    mesh = MemoryMesh(PATH, [1], kind=kind, timeout=8.0)
    mesh.post.flying.clear()
    mesh.kill(0)
    node = mesh.nodes[1]
    while node.error is None and mesh.now < 20.0:
        act(node)
        mesh.wait(node.wake_at - mesh.now)
    act(node)
    searches = given(node, Search)
    assert searches
    assert isinstance(searches[0], Search)
    assert searches[0].missing == (0, 2)
    assert isinstance(node.error, NeighborTimeout)


def one_that_fell_back_catches_up_without_waiting(kind: Kind) -> None:
    """Its neighbors have all that it lacks: it asks for each exchange as it comes to it."""
    for every, steps in product((1, 2, 5), range(12)):  # whatever was under way when it died
        mesh = mesh_at(19, steps, every=every, kind=kind)
        mesh.crash(1)
        assert mesh.finish() == 0.0
        assert all(node.left for node in mesh.nodes)


def frames_are_kept_for_one_that_falls_back_twice(kind: Kind) -> None:
    """The newer checkpoint is unreadable: twice as many rounds are made again."""
    mesh = MemoryMesh(PATH, [1] * 40, every=[5, 10, 5], kind=kind)
    mesh.until(lambda: mesh.nodes[1].engine.rounds == 39)
    mesh.crash(1, rot=True)
    assert mesh.nodes[1].engine.rounds == 20
    mesh.finish()
    assert all(node.left for node in mesh.nodes)


def one_that_comes_back_elsewhere_is_found(kind: Kind) -> None:
    """By those whom it had called, and by those who had called it."""
    for mover in range(3):
        mesh = MemoryMesh(PATH, [1] * 10, every=[1, 1, 1], kind=kind)
        mesh.until(lambda mesh=mesh: mesh.nodes[0].engine.rounds == 4)  # type: ignore[misc]
        mesh.kill(mover)
        mesh.start(mover, elsewhere=True)
        mesh.finish()
        assert all(node.left for node in mesh.nodes)
        for j in PATH[mover]:
            assert mesh.nodes[j].links.address_of(mover) == mesh.addresses[mover]


def goodbye_is_said_again_to_one_that_missed_it(kind: Kind) -> None:
    mesh = MemoryMesh(PAIR, [1] * 3, every=[1, 1], kind=kind)
    mesh.until(lambda: mesh.nodes[0].state.course.over and mesh.nodes[1].state.course.over)
    for node in mesh.nodes:
        act(node)
    mesh.cut(0, 1)  # with both goodbyes
    assert not any(node.left for node in mesh.nodes)
    assert mesh.finish() == 0.0
    assert all(node.left for node in mesh.nodes)


def who_has_finished_stays_for_one_that_has_not(kind: Kind) -> None:
    mesh = MemoryMesh(PAIR, [1] * 6, every=[3, 3], kind=kind)
    mesh.until(lambda: mesh.nodes[0].state.course.over)
    mesh.kill(1)
    act(mesh.nodes[0])
    for _ in range(8):  # longer than for a neighbor that does not come back
        mesh.wait(GOODBYE_SECONDS / 2)
        act(mesh.nodes[0])
    assert not mesh.nodes[0].left
    mesh.start(1)
    mesh.finish()
    assert all(node.left for node in mesh.nodes)


def nobody_stays_long_for_one_that_does_not_come_back(kind: Kind) -> None:
    mesh = MemoryMesh(PAIR, [1] * 6, kind=kind)
    mesh.until(lambda: mesh.nodes[0].state.course.over)
    mesh.kill(1)
    while not mesh.nodes[0].left and mesh.now < 100.0:
        act(mesh.nodes[0])
        mesh.wait(1.0)
    assert GOODBYE_SECONDS < mesh.now < 3 * GOODBYE_SECONDS


def one_that_crashes_after_its_goodbye_makes_no_round_again(kind: Kind) -> None:
    """Nor with its newer checkpoint unreadable: its neighbors may be gone with their frames."""
    for rot in (False, True):
        mesh = MemoryMesh(PAIR, [1] * 7, every=[3, 3], kind=kind)
        said = lambda mesh=mesh: given(mesh.nodes[0], Send)  # type: ignore[misc]  # noqa: E731
        mesh.until(lambda said=said: bool(said()))  # type: ignore[misc]
        mesh.move_only(1)
        assert [node.left for node in mesh.nodes] == [False, True]
        mesh.crash(0, rot=rot)
        mesh.finish()
        assert mesh.nodes[0].left
        assert not given(mesh.nodes[0], Compute)


def one_that_had_finished_needs_no_word_to_leave(kind: Kind) -> None:
    mesh = MemoryMesh(PAIR, [1] * 3, every=[1, 1], watched=True, kind=kind)
    for node in mesh.nodes:
        node.state.granted(Horizon(3, final=True))
    mesh.until(lambda: bool(given(mesh.nodes[0], Send)))
    mesh.crash(0)
    mesh.finish()
    assert all(node.left for node in mesh.nodes)


def who_has_heard_all_goodbyes_before_a_crash_need_not_wait_for_them(kind: Kind) -> None:
    mesh = MemoryMesh(PAIR, [1] * 4, every=[2, 2], kind=kind)
    saved = lambda: [o.done for o in mesh.nodes[0].orders if isinstance(o, Save)]  # noqa: E731
    mesh.until(lambda: mesh.nodes[0].left or {1} in saved())
    assert not mesh.nodes[0].left  # the goodbye is on disk: it dies before it can leave
    mesh.crash(0)
    assert mesh.finish() == 0.0
    assert all(node.left for node in mesh.nodes)


def all_stop_after_the_same_round(kind: Kind) -> None:
    mesh = MemoryMesh(PATH, [1] * 30, every=[0, 0, 0], kind=kind)
    mesh.until(lambda: mesh.nodes[0].engine.rounds == 5)
    mesh.nodes[0].wish.ask()
    mesh.finish()
    assert {node.engine.rounds for node in mesh.nodes} == {8}  # the next round's end, and T = 2
    assert {node.state.course.ended for node in mesh.nodes} == {"asked"}


def the_time_that_a_run_may_take_is_that_of_its_rounds(kind: Kind) -> None:
    mesh = MemoryMesh(PAIR, [1] * 30, kind=kind)
    mesh.now = 100.0  # before the first round
    mesh.nodes[0].wish.max_seconds = 5.0
    mesh.until(lambda: mesh.nodes[0].engine.rounds == 4)
    mesh.now = 106.0
    mesh.finish()
    assert {node.engine.rounds for node in mesh.nodes} == {6}
    assert {node.state.course.ended for node in mesh.nodes} == {"max-seconds"}
    assert mesh.nodes[0].state.seconds == 6.0


def a_stop_survives_a_crash_of_who_announced_it(kind: Kind) -> None:
    for rot in (False, True):
        mesh = MemoryMesh(PAIR, [1] * 12, every=[6, 6], kind=kind)
        mesh.until(lambda mesh=mesh: mesh.nodes[0].engine.rounds == 2)  # type: ignore[misc]
        mesh.nodes[0].wish.ask()
        mesh.until(lambda mesh=mesh: mesh.nodes[1].engine.stopping.agreement.known)  # type: ignore[misc]
        mesh.crash(0, rot=rot)
        mesh.finish()
        assert all(node.left for node in mesh.nodes)
        assert len({node.engine.rounds for node in mesh.nodes}) == 1


def nothing_is_announced_in_rounds_that_are_made_again(kind: Kind) -> None:
    mesh = MemoryMesh(PAIR, [1] * 12, every=[12, 12], kind=kind)
    mesh.until(lambda: mesh.nodes[0].engine.rounds == 6)
    mesh.crash(0)
    mesh.nodes[0].wish.ask()
    mesh.finish()
    assert all(node.left for node in mesh.nodes)
    assert len({node.engine.rounds for node in mesh.nodes}) == 1


def a_watched_node_goes_as_far_as_it_is_told(kind: Kind) -> None:
    mesh = MemoryMesh(PAIR, [1] * 9, watched=True, kind=kind)
    mesh.move()
    assert [given(node, ShowReady) for node in mesh.nodes] == [[ShowReady(0)]] * 2
    assert not any(given(node, Compute) for node in mesh.nodes)
    for node in mesh.nodes:
        node.state.granted(Horizon(4, final=False))
    mesh.move()
    assert [node.engine.rounds for node in mesh.nodes] == [4, 4]
    assert [o.flush for o in mesh.nodes[0].orders if isinstance(o, Show)] == [False] * 3 + [True]
    assert not given(mesh.nodes[0], Leave)
    for node in mesh.nodes:  # more than the run has
        node.state.granted(Horizon(50, final=True))
    mesh.finish()
    assert [node.engine.rounds for node in mesh.nodes] == [9, 9]
    assert all(node.left for node in mesh.nodes)


def a_halted_node_tells_so_and_waits_for_ever(kind: Kind) -> None:
    """It is the laboratory that it waits for: no neighbor is to blame, and nobody is asked."""
    mesh = MemoryMesh(PAIR, [1] * 9, watched=True, kind=kind, timeout=5.0)
    mesh.move()
    for _ in range(30):
        mesh.wait(1.0)
        mesh.move()
    assert [node.error for node in mesh.nodes] == [None, None]
    halted = given(mesh.nodes[0], ShowHalted)
    assert 5 <= len(halted) <= 30
    assert halted[0] == ShowHalted(0)
    assert mesh.control["Ask"] == 0
    for node in mesh.nodes:  # the last word comes late: there is time for goodbyes all the same
        node.state.granted(Horizon(0, final=True))
    act(mesh.nodes[0])
    mesh.wait(0.3)
    act(mesh.nodes[0])
    assert not mesh.nodes[0].left


def a_link_that_is_lost_meanwhile_is_repaired_and_forgiven(kind: Kind) -> None:
    """The wait for the laboratory does not count against a neighbor that is lost later."""
    mesh = MemoryMesh(PAIR, [1] * 9, watched=True, kind=kind, timeout=20.0)
    mesh.move()
    node = mesh.nodes[0]
    while mesh.now < 60.0:
        mesh.wait(1.0)
        mesh.move()
    assert mesh.control["Ask"] == 0
    node.state.lost(1)
    while node.error is None and mesh.now < 100.0:
        mesh.wait(1.0)
        act(node)
    assert mesh.control["Ask"] > 2
    assert isinstance(node.error, NeighborTimeout)
    assert mesh.now == pytest.approx(80.0, abs=5.0)


def who_waits_long_for_a_neighbor_tells_the_laboratory_too(kind: Kind) -> None:
    """The neighbor may wait for a word of a new laboratory, which may lack ours."""
    mesh = MemoryMesh(PAIR, [1] * 9, watched=True, kind=kind)
    mesh.move()
    mesh.nodes[0].state.granted(Horizon(4, final=False))
    mesh.move()
    while mesh.now <= LABORATORY_AFTER:
        assert not given(mesh.nodes[0], ShowHalted)
        mesh.wait(0.5)
        mesh.move()
    mesh.wait(3.0)
    mesh.move()
    assert given(mesh.nodes[0], ShowHalted)
    assert given(mesh.nodes[0], Mention)


def an_abort_is_passed_on_and_ends_the_node(kind: Kind) -> None:
    mesh = MemoryMesh(PATH, [1] * 9, watched=True, kind=kind)
    mesh.move()
    mesh.nodes[0].state.abort("node 0: its disk is full" + "!" * MAX_TEXT)
    mesh.move()
    error = mesh.nodes[1].error
    assert isinstance(error, RunAborted)
    assert str(error).startswith("node 0: its disk is full!")
    assert len(str(error)) == MAX_TEXT


def who_must_end_tells_those_that_call_later(kind: Kind) -> None:
    mesh = MemoryMesh(PATH, [1] * 9, kind=kind)
    state = mesh.nodes[0].state
    assert state.knows(set())
    state.abort("asked to end")
    act(mesh.nodes[0])
    mesh.move()
    assert isinstance(mesh.nodes[1].error, RunAborted)
    assert not state.knows({1})
    state.control(1, Abort("too"))
    assert state.knows({1})
    assert not given(mesh.nodes[0], Compute)


def a_refusal_ends_the_node_and_names_who_refused(kind: Kind) -> None:
    mesh = MemoryMesh(PAIR, [1], kind=kind)
    mesh.nodes[0].state.control(1, Refuse("another run"))
    mesh.move()
    assert isinstance(mesh.nodes[0].error, PeerRefused)
    assert str(mesh.nodes[0].error) == "neighbor 1 refused us: another run"


def a_node_without_neighbors_runs_alone(kind: Kind) -> None:
    mesh = MemoryMesh([[]], [1, 0, 2], kind=kind)
    assert mesh.finish() == 0.0
    assert mesh.nodes[0].left
    assert given(mesh.nodes[0], Send) == []


SCENARIOS: list[Scenario] = [
    function
    for _, function in inspect.getmembers(sys.modules[__name__], inspect.isfunction)
    if list(inspect.signature(function).parameters) == ["kind"]
    and function.__module__ == __name__
    and not function.__name__.startswith("test_")
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
def test_scenario(scenario: Scenario) -> None:
    scenario(NodeState)
