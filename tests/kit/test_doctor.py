"""What the doctor says of real conditions, and its exit code."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dlag_lab.cli import app
from dlag_node.doctor import Level
from dlag_node.doctor.machine import check_clock, check_disk, check_libraries
from dlag_node.doctor.reach import check_port, check_reach
from dlag_node.problems.blas import blas_names
from dlag_node.process import run_command
from dlag_node.trust.cli import make_mesh


@pytest.fixture
def listener() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


def nobody() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"tcp://127.0.0.1:{server.getsockname()[1]}"


def test_a_port_that_is_taken_is_in_the_way(listener: str) -> None:
    found = check_port(listener)
    assert found.level is Level.FAIL
    assert listener in found.value
    assert "another program has it" in str(found)
    assert check_port("tcp://0.0.0.0:*").level is Level.OK
    assert check_port("tcp://127.0.0.1:*").level is Level.WARN


def test_an_address_of_another_machine_cannot_be_listened_on() -> None:
    found = check_port("tcp://192.0.2.1:*")
    assert found.level is Level.FAIL
    assert "no such address" in found.remedy


def test_who_listens_is_reached_and_who_does_not_is_named(listener: str) -> None:
    found = check_reach("neighbor", listener)
    assert found.level is Level.OK
    assert re.search(r"open in [0-9.]+ ms", found.value)
    silent = check_reach("neighbor", nobody())
    assert silent.level is Level.FAIL
    assert "Connection refused" in silent.value
    assert "nobody listens" in silent.remedy


@pytest.mark.parametrize("address", ["tcp://no such name:1", "localhost:5555", "tcp://h:99999"])
def test_an_address_that_is_none_is_shown_as_it_should_be(address: str) -> None:
    found = check_reach("coordinator", address)
    assert found.level is Level.FAIL
    assert "expected tcp://host:port" in found.value


def test_a_state_folder_that_can_be_written_has_its_room_and_speed_told(tmp_path: Path) -> None:
    found = check_disk(tmp_path / "new")
    assert found.level in (Level.OK, Level.WARN)
    assert re.search(r"[0-9,]+ MiB free, [0-9.]+ ms", found.value)


def test_a_state_folder_that_cannot_be_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = check_disk(tmp_path / "file" / "state")
    assert found.level is Level.FAIL
    assert "Not a directory" in found.value
    assert check_disk(None).level is Level.WARN


def test_a_full_disk_is_in_the_way(tmp_path: Path) -> None:
    options = ["-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    if subprocess.run(["mount", *options], capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        assert check_disk(tmp_path).remedy == "make room"
        (tmp_path / "all").write_bytes(bytes(64 << 10))
        full = check_disk(tmp_path)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
    assert full.level is Level.FAIL
    assert "No space left on device" in full.value


def test_a_clock_from_before_the_installation_is_wrong() -> None:
    found = check_clock(now=86_400.0)
    assert found.level is Level.FAIL
    assert "1970-01-02" in found.value
    assert check_clock().level is not Level.FAIL


def test_every_library_is_named_with_its_version() -> None:
    assert re.search(r"numpy \d.*numba \d.*pyzmq \d", check_libraries().value)


def test_the_command_reads_a_nodes_file_and_fails_where_a_check_does(
    listener: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "node.toml"
    file.write_text(
        f'coordinator = "{listener}"\nbind = "tcp://0.0.0.0:*"\nstate = "{tmp_path / "state"}"\n'
        "join-timeout = 5\ninsecure = true\n",
        encoding="utf-8",
    )
    words = ["doctor", "--config", str(file)]
    assert (
        run_command(app, [*words, "--reach", listener, "--neighbor", f"1={listener}"], "dlag") == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert all(re.match(r"(ok|warn)  ", line) or line.startswith("ok ") for line in lines)
    names = "python libraries clock memory disk port keys coordinator neighbor neighbor blas solver"
    assert [line.split()[1] for line in lines] == names.split()
    (blas,) = [line for line in lines if line.startswith("ok    blas")]
    assert blas.endswith(", ".join(blas_names()))
    assert run_command(app, [*words, "--reach", nobody()], "dlag") == 1
    assert "fail  neighbor" in capsys.readouterr().out


def test_settings_that_a_node_would_refuse_are_in_the_way(
    listener: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["doctor", "--coordinator", listener, "--bind", "tcp://0.0.0.0:*"]
    assert run_command(app, words, "dlag") == 1
    (line,) = [each for each in capsys.readouterr().out.splitlines() if " settings " in each]
    assert line.startswith("fail")
    assert "tcp://0.0.0.0:* is not on loopback" in line


def test_keys_and_data_are_looked_at_as_the_node_would(
    listener: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_mesh(tmp_path / "keys", 1)
    data = tmp_path / "own.csv"
    data.write_text("a,b,y\n" + "1,2,0\n3,4,1\n" * 6, encoding="utf-8")
    key, public = tmp_path / "keys" / "node-000.key", tmp_path / "keys" / "coordinator.pub"
    words = ["doctor", "--coordinator", listener, "--key", str(key), "--coordinator-key"]
    words += [str(public), "--data", str(data), "--label", "y", "--scale", "minmax"]
    assert run_command(app, words, "dlag") == 0
    shown = capsys.readouterr().out
    assert f"ok    data        {data}: 12 samples, 2 features" in shown
    assert re.search(r"ok    keys        ours is [0-9a-f]{12}\.\.\.", shown)

    key.chmod(0o644)
    data.write_text("a,b,y\n1,2,0\n", encoding="utf-8")
    assert run_command(app, words, "dlag") == 1
    shown = capsys.readouterr().out
    assert re.search(r"fail  keys .*has mode 0644: others can read it", shown)
    assert re.search(r"fail  data .*has 1 samples: --scale minmax would tell", shown)
