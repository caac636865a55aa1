"""An error that ends a process is the same error for who started it, whoever that is."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlag_node import errors
from dlag_node.errors import ConfigError, DlagError, NeighborTimeout, ProcessDied, RunAborted
from dlag_node.net.introduction import Refused
from dlag_node.outcome import KINDS, VARIABLE, Ending, cause_of, ending_of
from dlag_node.process import EXIT_FAILED, EXIT_USAGE, run_command


def tree(root: type[DlagError]) -> set[type[DlagError]]:
    below = {each for child in root.__subclasses__() for each in tree(child)}
    return {each for each in {root} | below if each.__module__ == errors.__name__}


def test_every_class_of_the_tree_is_known_by_its_name() -> None:
    assert set(KINDS.values()) == tree(DlagError)
    assert all(kind.__name__ == name for name, kind in KINDS.items())
    assert len(KINDS) > 10


@given(st.sampled_from(sorted(KINDS)), st.text())
def test_an_error_can_be_raised_again_from_its_text_alone(name: str, reason: str) -> None:
    ending = Ending.of(KINDS[name](reason), "node-003")
    assert Ending.told(ending.text, "node-003") == ending
    with pytest.raises(DlagError) as caught:
        raise ending.error("log: there")
    assert type(caught.value) is KINDS[name]
    assert str(caught.value) == f"node-003: {reason} (log: there)"
    assert caught.value.exit_code == (EXIT_USAGE if name == "ConfigError" else EXIT_FAILED)


@given(st.text() | st.builds("{}: {}".format, st.sampled_from(dir(errors) + dir(os)), st.text()))
def test_a_text_of_strangers_makes_a_class_of_the_tree_and_loses_no_word(text: str) -> None:
    ending = Ending.told(text, "node 3")
    assert ending.kind in KINDS.values()
    assert text in (ending.reason, ending.text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ConfigError",
        "ConfigError:",
        "ConfigErrors: x",
        " ConfigError: x",
        "configerror: x",
        "KeyboardInterrupt: x",
        "SystemExit: 0",
        "ClassVar: x",
        "__builtins__: x",
        "errors.ConfigError: x",
        "node 3: ConfigError: x",
    ],
)
def test_what_is_no_class_of_the_tree_is_a_reason_as_a_whole(text: str) -> None:
    assert Ending.told(text, "node 3") == Ending(RunAborted, text, "node 3")


def test_an_error_from_outside_the_tree_is_its_next_ancestor_in_it_or_a_death() -> None:
    assert Ending.of(Refused("another run"), "n") == Ending.told(
        "RemoteProtocolError: another run", "n"
    )
    assert Ending.of(KeyError("x"), "n") == Ending(ProcessDied, "KeyError: 'x'", "n")


def test_a_node_that_has_an_id_is_called_by_it() -> None:
    error = NeighborTimeout("too long")
    error.node = 7
    assert Ending.of(error, "node").who == "node-007"


@given(st.sampled_from(sorted(KINDS)), st.text())
def test_an_ending_on_disk_is_whole_or_none(
    tmp_path_factory: pytest.TempPathFactory, name: str, reason: str
) -> None:
    path = tmp_path_factory.mktemp("endings") / "node-003.ending"
    ending = Ending(KINDS[name], reason, "node-003")
    ending.leave(path)
    assert [each.name for each in path.parent.iterdir()] == ["node-003.ending"]
    assert ending_of(path, code=1, who="node-003") == ending
    whole = path.read_bytes()
    for cut in {0, 1, len(whole) // 2, len(whole) - 2}:
        path.write_bytes(whole[:cut])
        assert ending_of(path, code=7, who="node-003") == Ending.untold(7, "node-003")


@pytest.mark.parametrize("raw", [b"[]", b"3", b'"error"', b"{}", b'{"error": 1}', b"\xff", b"null"])
def test_a_file_that_is_no_ending_says_nothing(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "ending"
    path.write_bytes(raw)
    assert ending_of(path, code=-9, who="n") == Ending(ProcessDied, "killed by signal 9", "n")


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        (-9, ProcessDied, "killed by signal 9"),
        (137, ProcessDied, "ended by signal 9"),  # as containers say it
        (143, ProcessDied, "ended by signal 15"),
        (1, ProcessDied, "ended with exit code 1, and has not said why"),
        (2, ConfigError, "ended with exit code 2: wrong settings"),
    ],
)
def test_who_leaves_nothing_has_an_ending_by_its_exit_code(
    code: int, kind: type[DlagError], reason: str, tmp_path: Path
) -> None:
    assert ending_of(tmp_path / "none", code=code, who="n") == Ending(kind, reason, "n")


def test_an_ending_goes_into_a_file_that_cannot_be_replaced(tmp_path: Path) -> None:
    """As Kubernetes mounts one, and as a launcher may hand over a descriptor."""
    ending = Ending(RunAborted, "the others", "n")
    with (tmp_path / "log").open("w+b") as file:
        file.write(b"what was there before, and is longer than what comes" * 10)
        file.flush()
        ending.leave(Path(f"/proc/self/fd/{file.fileno()}"))
    assert ending_of(tmp_path / "log", code=1, who="n") == ending


def test_one_with_a_reason_of_its_own_comes_before_those_that_were_told() -> None:
    told = Ending(RunAborted, "node 2: ConvergenceError: it diverges", "node-000")
    # the class decides, and not the words
    own = Ending(ProcessDied, "RunAborted: is a part of my name", "node-002")
    assert cause_of([told, own]) is own
    assert cause_of([own, told]) is own
    assert cause_of([told]) is told


@pytest.mark.parametrize(
    ("error", "code"), [(ConfigError("x = 3"), 2), (NeighborTimeout("120 s"), 1)]
)
def test_a_command_leaves_its_ending_where_it_was_asked_to(
    error: DlagError, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    path = tmp_path / "ending"
    monkeypatch.setenv(VARIABLE, str(path))
    assert run_command(fail, [], "dlag-test") == code
    assert ending_of(path, code=0, who="dlag-test") == Ending.of(error, "dlag-test")


def test_a_fault_that_nobody_foresaw_leaves_an_ending_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: list[str], prog_name: str) -> None:
        raise ZeroDivisionError(prog_name)

    path = tmp_path / "ending"
    monkeypatch.setenv(VARIABLE, str(path))
    with pytest.raises(ZeroDivisionError):
        run_command(fail, [], "dlag-test")
    expected = Ending(ProcessDied, "ZeroDivisionError: dlag-test", "n")
    assert ending_of(path, code=1, who="n") == expected


def test_an_ending_that_cannot_be_left_changes_nothing_else(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RunAborted("the others")

    monkeypatch.setenv(VARIABLE, "/proc/nowhere/ending")
    assert run_command(fail, [], "dlag-test") == EXIT_FAILED
    assert "dlag-test: RunAborted: the others\n" in capfd.readouterr().err


def test_who_ends_well_or_by_request_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(argv: list[str], **_: object) -> None:
        raise SystemExit(int(argv[0]))

    monkeypatch.setenv(VARIABLE, str(tmp_path / "ending"))
    for code in (0, 3, 128 + signal.SIGTERM):
        assert run_command(end, [str(code)], "dlag-test") == code
    assert not (tmp_path / "ending").exists()
