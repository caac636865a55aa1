"""The wheel: what is in it, that it runs without these sources, and that it installs alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "dlag_node", "coordinator", "dlag_lab",
           "deploy")  # fmt: skip
PATIENCE = 280.0  # seconds, for a package index that is far away


def ran(*words: str | Path) -> str:
    """What a command said, run far from these sources and settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DLAG_", "PYTHON"))}
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, env=kept, timeout=PATIENCE, cwd="/"
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing is left in the sources."""
    copy, out = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        source, ignored = ROOT / name, shutil.ignore_patterns("__pycache__")
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=ignored)
        else:
            shutil.copy(source, copy / name)
    ran(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", out, copy)
    (built,) = out.glob("*.whl")
    return built


def device(folder: Path, wheel: Path, *flags: str) -> Path:
    """A fresh environment with the wheel in it; returns where its commands are."""
    venv.create(folder, with_pip=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    ran(*pip, *flags, wheel)
    return folder / "bin"


def assert_it_runs(binaries: Path) -> None:
    assert ran(binaries / "dlag-node", "--version").startswith("dlag-mesh ")
    assert "bind" in tomllib.loads(ran(binaries / "dlag-node", "--print-config"))
    assert "rounds" in tomllib.loads(ran(binaries / "dlag-coordinator", "--print-config"))
    units = binaries.parent / "share" / "dlag-mesh" / "systemd"
    for role in ("node", "coordinator"):
        assert (units / f"dlag-{role}.service").is_file()
        assert (units / f"dlag-{role}.service.d" / "keys.conf").is_file()
    assert "doctor" in ran(binaries / "dlag", "--help")


def test_the_wheel_is_for_every_machine_and_has_the_data(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "coordinator/bundled/heart_scale" in names
    sources = {str(path.relative_to(ROOT)) for room in ("dlag_node", "coordinator", "dlag_lab")
               for path in (ROOT / room).rglob("*.py")}  # fmt: skip
    assert sources <= set(names)


def test_it_runs_from_the_wheel_with_the_libraries_of_this_environment(
    wheel: Path, tmp_path: Path
) -> None:
    binaries = device(tmp_path / "device", wheel, "--no-deps")
    (libraries,) = (tmp_path / "device" / "lib").glob("python*/site-packages")
    (libraries / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    assert_it_runs(binaries)


@pytest.mark.skipif(
    "DLAG_TEST_INSTALL" not in os.environ,
    reason="installs every library anew: make test-install",
)
def test_it_installs_with_all_that_it_needs_as_wheels(wheel: Path, tmp_path: Path) -> None:
    binaries = device(tmp_path / "device", wheel)
    assert_it_runs(binaries)
    assert "fail" not in ran(binaries / "dlag", "doctor")
    words = ["simulate", "--topology", "ring:3", "--rounds", "3", "--no-figures", "--out"]
    assert "ring:3" in ran(binaries / "dlag", *words, tmp_path / "run")
