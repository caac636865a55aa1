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
    """The unit and its drop-ins with this Python's scripts for a device's, which must exist."""
    binaries = str(Path(sys.executable).parent)
    for file in (unit, *drop_ins(unit)):
        copy = folder / file.relative_to(unit.parent)
        copy.parent.mkdir(exist_ok=True)
        text = file.read_text(encoding="utf-8").replace(*instead)
        copy.write_text(text.replace("/opt/dlag/bin", binaries), encoding="utf-8")
    return folder / unit.name


def drop_ins(unit: Path) -> list[Path]:
    return sorted(unit.with_name(f"{unit.name}.d").glob("*.conf"))


def analyzed(*words: str) -> tuple[int, str]:
    done = subprocess.run(
        ["systemd-analyze", "--no-pager", *words], capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


def test_there_is_a_unit_for_each_role() -> None:
    assert [unit.stem for unit in UNITS] == ["dlag-coordinator", "dlag-node"]
    for unit in UNITS:
        assert [each.name for each in drop_ins(unit)] == ["keys.conf"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_understands_every_line(unit: Path, tmp_path: Path) -> None:
    assert analyzed("verify", "--man=no", str(here(unit, tmp_path))) == (0, "")
    for right, typo in (("Restart=", "Retsart="), ("LoadCredential=", "LaodCredential=")):
        wrong = here(unit, tmp_path, instead=(right, typo))
        assert f"Unknown key '{typo[:-1]}'" in analyzed("verify", "--man=no", str(wrong))[1]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_the_units_are_hardened(unit: Path, tmp_path: Path) -> None:
    words = ("security", "--offline=true", f"--threshold={MOST_EXPOSURE}")
    code, said = analyzed(*words, str(here(unit, tmp_path)))
    assert code == 0, said[-200:]
    weaker = here(unit, tmp_path, instead=("CapabilityBoundingSet=\n", ""))
    assert analyzed(*words, str(weaker))[0] != 0
