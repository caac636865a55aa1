"""Who does not belong stays outside, with real processes; and no secret leaves its file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

import coordinator.cli
import dlag_lab.cli
import dlag_node.cli
from dlag_lab.launcher import Launcher
from dlag_node.process import EXIT_FAILED, EXIT_OK, EXIT_USAGE, run_command
from dlag_node.trust.cli import make_mesh
from dlag_node.trust.keys import make_pair, make_token
from tests.cluster.meshes import command, deeds, family, finish, read_until

LOOPBACK = "tcp://127.0.0.1:*"
SECONDS = 60.0


class Site:
    """A coordinator with keys, and whoever tries to join."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.keys, self.records = folder / "keys", folder / "nodes"
        make_mesh(self.keys, 1)  # node 0 alone is on the list
        make_token(self.keys / "tokens", self.keys / "token")
        self._stack = stack
        self.coordinator = stack.enter_context(
            command(
                *("dlag-coordinator", "--topology", "path:2", "--rounds", "30", "--method", "dlag"),
                *("--bind", LOOPBACK, "--key", str(self.keys / "coordinator.key")),
                *("--admitted", str(self.keys / "admitted")),
                *("--tokens", str(self.keys / "tokens")),
            )
        )
        line = read_until(self.coordinator, "listening on tcp://")
        self.address = line.split("listening on ")[1].split()[0]

    def join(self, key: str | None, *flags: str) -> psutil.Popen:
        """A node with that key, or with none."""
        argv = ["--coordinator", self.address, "--out", str(self.records), *flags]
        if key is not None:
            argv += ["--key", str(self.keys / f"{key}.key")]
            argv += ["--coordinator-key", str(self.keys / "coordinator.pub")]
        return self._stack.enter_context(command("dlag-node", *argv))

    def refused(self, key: str | None, words: str, *flags: str) -> None:
        node = self.join(key, *flags)
        read_until(node, words)
        assert node.wait(SECONDS) == EXIT_FAILED


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(tmp_path, stack)


def test_strangers_are_refused_and_the_run_goes_on_as_if_they_had_not_been(
    site: Site, tmp_path: Path
) -> None:
    make_pair(site.keys / "stranger.key")
    make_pair(site.keys / "newcomer.key")
    site.refused(None, "one of us has keys and the other has none")
    site.refused("node-000", "id 1 is not for key", "--id", "1")
    site.refused("stranger", "is not admitted, nor is its token")
    token = ("--token", str(site.keys / "token"))
    newcomer = site.join("newcomer", *token)
    read_until(site.coordinator, "1 of 2 nodes have joined")
    site.refused("stranger", "our key is not admitted there", *token)  # it has been used
    nodes = [site.join("node-000"), newcomer]
    assert [node.wait(SECONDS) for node in nodes] == [EXIT_OK, EXIT_OK]
    assert site.coordinator.wait(SECONDS) == EXIT_OK
    finish("simulate", tmp_path / "simulated", topology="path:2", rounds=30, method="dlag")
    for node in range(2):
        name = f"nodes/node-{node:03d}.theta"
        assert (tmp_path / name).read_bytes() == (tmp_path / "simulated" / name).read_bytes()
        assert deeds(tmp_path, node) == deeds(tmp_path / "simulated", node)


def test_no_secret_leaves_its_file(tmp_path: Path) -> None:
    out, secrets, words = tmp_path / "run", list[str](), list[str]()

    def look(_: Launcher) -> None:
        keys = sorted((out / "keys").glob("*.key"))
        assert len(keys) == 5
        assert all(path.stat().st_mode & 0o777 == 0o600 for path in keys)
        secrets.extend(path.read_text().strip() for path in keys)
        for process in family(psutil.Process().pid):
            words.extend([*process.cmdline(), *process.environ().values()])

    finish("mesh", out, topology="path:2", rounds=20, method="dlag", started=look)
    assert len(secrets) == 5
    assert not (out / "keys").exists()
    files = [path.read_bytes() for path in out.rglob("*") if path.is_file()]
    assert len(files) > 5
    for secret in secrets:
        assert not any(secret in word for word in words)
        assert not any(secret.encode() in raw or bytes.fromhex(secret) in raw for raw in files)


@pytest.mark.parametrize(
    ("program", "argv"),
    [
        (dlag_node.cli.run, ["--coordinator", "tcp://10.0.0.1:5"]),
        (dlag_node.cli.run, ["--coordinator", "tcp://127.0.0.1:5", "--bind", "tcp://0.0.0.0:*"]),
        (dlag_node.cli.run, ["--coordinator", "tcp://coordinator:5"]),
        (coordinator.cli.run, ["--bind", "tcp://0.0.0.0:5555"]),
    ],
)
def test_without_keys_nobody_listens_or_calls_beyond_loopback(
    program: object, argv: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert callable(program)
    assert program(argv) == EXIT_USAGE
    assert "is not on loopback: expected keys (--key; `dlag keys` makes" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("program", "argv", "words"),
    [
        (
            dlag_node.cli.run,
            ["--coordinator", "tcp://127.0.0.1:5", "--key", "a.key"],
            "coordinator_key = None: expected all three",
        ),
        (
            dlag_node.cli.run,
            ["--coordinator", "tcp://127.0.0.1:5", "--token", "t"],
            "token = t: expected a key too",
        ),
        (
            dlag_node.cli.run,
            ["--coordinator", "tcp://127.0.0.1:5", "--post", "a.pub"],
            "post = a.pub: expected a key too",
        ),
        (coordinator.cli.run, ["--key", "a.key"], "admitted = None, tokens = None, post = None"),
        (coordinator.cli.run, ["--post", "a.pub"], "key = None, admitted = None"),
        (
            lambda argv: run_command(dlag_lab.cli.app, ["referee", *argv], "dlag"),
            ["--records", "mesh", "--post", "a.pub"],
            "key = None, admitted = None, post = a.pub: expected a key",
        ),
    ],
)
def test_half_a_set_of_keys_is_a_mistake(
    program: object, argv: list[str], words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert callable(program)
    assert program(argv) == EXIT_USAGE
    assert words in capfd.readouterr().err
