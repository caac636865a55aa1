"""The systemd units as systemd itself reads them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNITS = sorted((Path(__file__).parents[2] / "deploy" / "systemd").glob("*.service"))
MOST_EXPOSURE = 20  # tenths, of 100: what a service that listens on the network can get down to

pytestmark = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


def here(unit: Path, folder: Path, *, instead: tuple[str, str] = ("", "")) -> Path:
    """The unit with this Python's scripts for those of a device, which must exist."""
    text = unit.read_text(encoding="utf-8").replace(*instead)
    copy = folder / unit.name
    copy.write_text(text.replace("/opt/dlag/bin", str(Path(sys.executable).parent)))
    return copy


def analyzed(*words: str) -> tuple[int, str]:
    done = subprocess.run(
        ["systemd-analyze", "--no-pager", *words], capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


def test_there_is_a_unit_for_each_role() -> None:
    assert [unit.stem for unit in UNITS] == ["dlag-coordinator", "dlag-node"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_understands_every_line(unit: Path, tmp_path: Path) -> None:
    assert analyzed("verify", "--man=no", str(here(unit, tmp_path))) == (0, "")
    wrong = here(unit, tmp_path, instead=("Restart=", "Retsart="))
    assert "Unknown key 'Retsart'" in analyzed("verify", "--man=no", str(wrong))[1]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_the_units_are_hardened(unit: Path, tmp_path: Path) -> None:
    words = ("security", "--offline=true", f"--threshold={MOST_EXPOSURE}")
    code, said = analyzed(*words, str(here(unit, tmp_path)))
    assert code == 0, said[-200:]
    weaker = here(unit, tmp_path, instead=("CapabilityBoundingSet=\n", ""))
    assert analyzed(*words, str(weaker))[0] != 0
