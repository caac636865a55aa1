"""Key files: who can read them, what is refused, and that a command may be given again."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from dlag_lab.cli import app as dlag
from dlag_node.errors import ConfigError
from dlag_node.process import EXIT_OK, EXIT_USAGE, run_command
from dlag_node.trust.keys import (
    admit,
    make_pair,
    make_token,
    new_pair,
    read_admitted,
    read_pair,
    read_public,
    read_token,
    read_tokens,
    token_hash,
)
from tests.trust.access import GROUP, let_read


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def keys(*argv: str | Path) -> int:
    return run_command(dlag, ["keys", *map(str, argv)], "dlag")


@pytest.mark.usefixtures("umask")
def test_secrets_are_for_their_owner_alone_and_publics_for_all(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    assert keys("mesh", folder, "--nodes", "3") == EXIT_OK
    assert mode(folder) == 0o700
    names = ["coordinator", "node-000", "node-001", "node-002"]
    assert {path.name for path in folder.iterdir()} == (
        {f"{name}.key" for name in names} | {f"{name}.pub" for name in names} | {"admitted"}
    )
    for name in names:
        assert mode(folder / f"{name}.key") == 0o600
        assert mode(folder / f"{name}.pub") == 0o644
        assert read_public(folder / f"{name}.pub") == read_pair(folder / f"{name}.key").public
    nodes = [read_public(folder / f"node-00{i}.pub") for i in range(3)]
    assert read_admitted(folder / "admitted") == {key: i for i, key in enumerate(nodes)}


def test_given_again_a_command_changes_nothing_and_adds_what_is_new(tmp_path: Path) -> None:
    assert keys("mesh", tmp_path, "--nodes", "2") == EXIT_OK
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert keys("mesh", tmp_path, "--nodes", "2") == EXIT_OK
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert keys("mesh", tmp_path, "--nodes", "3") == EXIT_OK
    assert (tmp_path / "node-000.key").read_bytes() == before[tmp_path / "node-000.key"]
    assert sorted(read_admitted(tmp_path / "admitted").values(), key=str) == [0, 1, 2]


def test_a_pair_of_ones_own_can_be_admitted(tmp_path: Path) -> None:
    admitted = tmp_path / "admitted"
    for _ in range(2):
        assert keys("pair", tmp_path / "mine.key", "--admit", admitted) == EXIT_OK
    assert keys("pair", tmp_path / "other.key", "--admit", admitted, "--id", "4") == EXIT_OK
    mine, other = (read_pair(tmp_path / f"{name}.key").public for name in ("mine", "other"))
    assert read_admitted(admitted) == {mine: None, other: 4}


def test_no_secret_is_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert keys("mesh", tmp_path, "--nodes", "2") == EXIT_OK
    assert keys("pair", tmp_path / "mine.key") == EXIT_OK
    assert keys("token", tmp_path / "tokens", tmp_path / "token") == EXIT_OK
    secrets = [path.read_text().strip() for path in tmp_path.glob("*.key")]
    secrets.append((tmp_path / "token").read_text().strip())
    printed = "".join(capfd.readouterr())
    assert read_pair(tmp_path / "mine.key").public.hex() in printed
    assert len(secrets) == 5
    assert not any(secret in printed for secret in secrets)


def test_a_key_that_cannot_be_written_whole_is_not_there_at_all(tmp_path: Path) -> None:
    path = tmp_path / "node.key"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))  # bytes, as of a disk that is full
    try:
        with pytest.raises(ConfigError, match="cannot write"):
            make_pair(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []
    assert make_pair(path) == read_pair(path)


def test_a_pair_does_not_show_its_secret() -> None:
    pair = new_pair()
    assert pair.secret.hex() not in repr(pair)
    assert repr(pair.secret) not in repr(pair)


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "node.key"
    make_pair(path)
    for open_mode in (0o640, 0o604, 0o644, 0o660):
        path.chmod(open_mode)
        with pytest.raises(ConfigError, match=f"node.key has mode {open_mode:04o}: others can"):
            read_pair(path)


def test_a_credential_of_systemd_is_for_its_service_alone_though_its_mode_says_0440(
    tmp_path: Path,
) -> None:
    path = tmp_path / "node.key"
    made = make_pair(path)
    try:
        let_read(path, os.geteuid())
    except (AttributeError, OSError) as exc:
        pytest.skip(f"no access lists here: {exc}")
    assert mode(path) == 0o440
    assert read_pair(path) == made
    for who in ({"owner": 61_184}, {"owner": 61_184, "tag": GROUP}, {"owner": 0, "file_group": 4}):
        let_read(path, **who)
        with pytest.raises(ConfigError, match=r"node\.key has mode 0440: others can read it"):
            read_pair(path)


def test_what_is_no_key_is_refused_without_showing_it(tmp_path: Path) -> None:
    path = tmp_path / "node.key"
    for text in ("", "secretword", "g" * 64, "a" * 63, "a" * 65):
        path.write_text(text)
        path.chmod(0o600)
        expected = f"{len(text)} characters: expected 64 hexadecimal digits"
        with pytest.raises(ConfigError, match=expected) as error:
            read_pair(path)
        assert not text or text not in str(error.value)
    with pytest.raises(ConfigError, match=r"cannot read .*none.key: .*`dlag keys` makes keys"):
        read_pair(tmp_path / "none.key")


def test_a_public_half_of_another_key_is_noticed(tmp_path: Path) -> None:
    make_pair(tmp_path / "node.key")
    (tmp_path / "node.pub").write_text(new_pair().public.hex())
    with pytest.raises(ConfigError, match=r"node.pub is not the public half of .*node.key"):
        make_pair(tmp_path / "node.key")


@pytest.mark.parametrize("line", ["abc", f"{'a' * 64} x", f"{'a' * 64} 1 2", f"{'A' * 64}", "# no"])
def test_a_bad_line_of_the_list_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "admitted"
    path.write_text(f"{'0' * 64} 3\n\n{line}\n")
    with pytest.raises(ConfigError, match=r"admitted, line 3: .*: expected a public key of 64"):
        read_admitted(path)


def test_a_token_is_kept_as_a_hash(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    for name in ("one", "two"):
        make_token(tokens, tmp_path / name)
        assert mode(tmp_path / name) == 0o600
    assert mode(tokens) == 0o600
    one, two = (read_token(tmp_path / name) for name in ("one", "two"))
    assert one not in tokens.read_text()
    assert read_tokens(tokens) == {token_hash(one), token_hash(two)}
    with pytest.raises(ConfigError, match=r"cannot write .*one: .*exists"):
        make_token(tokens, tmp_path / "one")


def test_a_key_is_on_the_list_once(tmp_path: Path) -> None:
    path, pairs = tmp_path / "admitted", [new_pair() for _ in range(20)]
    for pair in pairs:
        admit(path, {pair.public: None})
        admit(path, {pair.public: 7})  # it is on the list as it is
    assert read_admitted(path) == {pair.public: None for pair in pairs}


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("mesh", "keys", "--nodes", "0"), "nodes = 0: expected 1 to 10000"),
        (("pair", "node"), "node: expected a name that ends in .key"),
        (("pair", "keys/node.key", "--id", "3"), "id = 3: expected --admit too"),
    ],
)
def test_a_mistake_is_named(
    argv: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert keys(*argv) == EXIT_USAGE
    assert words in capfd.readouterr().err
