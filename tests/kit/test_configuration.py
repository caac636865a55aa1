"""One file of settings for each role: what it prints, what it takes, what wins over what."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated

import pytest
import typer

import coordinator.cli
import dlag_node.cli
from dlag_node.configuration import Configuration, takes_configuration
from tests.cluster.meshes import command, read_until

ROLES = {"dlag-node": dlag_node.cli.run, "dlag-coordinator": coordinator.cli.run}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DLAG_CONFIG", "DLAG_ROUNDS", "DLAG_BIND"):
        monkeypatch.delenv(name, raising=False)


def printed(role: str, capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    assert ROLES[role]([*flags, "--print-config"]) == 0
    return capsys.readouterr().out


def settable(role: str, capsys: pytest.CaptureFixture[str]) -> set[str]:
    """The flags that --help lists, but for those about the file itself."""
    assert ROLES[role](["--help"]) == 0
    flags = set(re.findall(r"^  --([a-z-]+)", capsys.readouterr().out, re.M))
    return flags - {"config", "print-config", "version", "help"}


@pytest.mark.parametrize("role", ROLES)
def test_the_printed_file_names_every_setting_and_explains_it(
    role: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(role, capsys)
    named = re.findall(r"^(?:# )?([a-z-]+) =", text, re.M)
    assert set(named) == settable(role, capsys)
    assert len(named) == len(set(named))
    for paragraph in text.split("\n\n")[1:]:
        first, *_ = paragraph.splitlines()
        assert re.match(r"# .*[a-z]{3}", first), paragraph


@pytest.mark.parametrize("role", ROLES)
def test_the_printed_file_read_back_is_the_defaults(
    role: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(role, capsys)
    file = tmp_path / "role.toml"
    file.write_text(text, encoding="utf-8")
    assert printed(role, capsys, "--config", str(file)) == text
    told = tomllib.loads(text)
    expected = {
        "dlag-node": {"bind": "tcp://127.0.0.1:*", "join-timeout": 600.0, "durable": False},
        "dlag-coordinator": {"topology": "grid:5x5", "lambda": 0.01, "rounds": 5000},
    }[role]
    assert told.items() >= expected.items()
    assert "coordinator" not in told  # it has no default: a line to fill in


def test_a_flag_wins_over_the_environment_and_that_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.toml"
    file.write_text('rounds = 11\nseed = 3\nlambda = 1\ntopology = "ring:4"\n', encoding="utf-8")
    monkeypatch.setenv("DLAG_CONFIG", str(file))
    monkeypatch.setenv("DLAG_ROUNDS", "12")
    monkeypatch.setenv("DLAG_TOPOLOGY", "ring:5")
    told = tomllib.loads(printed("dlag-coordinator", capsys, "--topology", "ring:6"))
    assert told["seed"] == 3
    assert told["lambda"] == 1.0
    assert told["rounds"] == 12
    assert told["topology"] == "ring:6"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("neighbour-timeout = 3", "unknown setting 'neighbour-timeout': .* 'neighbor-timeout'"),
        ("join_timeout = 3", "unknown setting 'join_timeout': did you mean 'join-timeout'"),
        ("lifeline = 3", "unknown setting 'lifeline'"),
        ('checkpoint = "often"', "checkpoint = 'often': .*valid int"),
        ("durable = 1", "durable = 1: expected true or false"),
        ("checkpoint = true", "checkpoint = true: expected no boolean"),
        ("bind = [1, 2]", r"bind = \[1, 2\]: expected one value"),
        ("bind = ", "cannot read the configuration"),
    ],
)
def test_a_mistake_in_the_file_is_named(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "node.toml"
    file.write_text(text + "\n", encoding="utf-8")
    assert dlag_node.cli.run(["--config", str(file)]) == 2
    said = capsys.readouterr().err
    assert str(file) in said
    assert re.search(words, said), said


def test_a_setting_that_may_be_repeated_is_a_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "node.toml"
    file.write_text('neighbor = ["1=tcp://a:1", "2=tcp://b:2"]\n', encoding="utf-8")
    told = tomllib.loads(printed("dlag-node", capsys, "--config", str(file)))
    assert told["neighbor"] == ["1=tcp://a:1", "2=tcp://b:2"]


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert dlag_node.cli.run(["--config", "/nowhere/node.toml"]) == 2
    assert "/nowhere/node.toml" in capsys.readouterr().err


def test_secrets_are_neither_shown_nor_printed_but_paths_to_them_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown: list[str] = []
    app = typer.Typer(add_completion=False)

    @app.command()
    @takes_configuration
    def role(
        configuration: Configuration,
        token: Annotated[str, typer.Option(help="One time only.")] = "",
        key: Annotated[Path | None, typer.Option(help="Where the key lies.")] = None,
    ) -> None:
        assert token == "sesame"
        assert key is not None
        shown.append(str(configuration))

    app(["--token", "sesame", "--key", "/etc/k"], standalone_mode=False)
    app(["--token", "sesame", "--key", "/etc/k", "--print-config"], standalone_mode=False)
    assert shown == ['configuration: token = (hidden) (flag), key = "/etc/k" (flag)']
    assert tomllib.loads(capsys.readouterr().out) == {"key": "/etc/k"}


def test_a_process_shows_at_its_start_what_is_in_force_and_where_it_is_from(
    tmp_path: Path,
) -> None:
    file = tmp_path / "c.toml"
    file.write_text('bind = "tcp://127.0.0.1:*"\ntopology = "ring:3"\n', encoding="utf-8")
    with command("dlag-coordinator", "--config", str(file), "--rounds", "9") as process:
        line = read_until(process, "configuration: ")
    assert 'topology = "ring:3" (file)' in line
    assert "rounds = 9 (flag)" in line
    assert "seed = 0 (default)" in line
