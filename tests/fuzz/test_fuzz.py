"""A short run of the fuzzer: it finds nothing, and holds no more memory at the end."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.targets import Handshake, all_targets, seeds

pytest.importorskip("atheris")

FRAMES = 30_000
GROWTH = 500  # objects: what one more cache of the interpreter may take


def test_inputs_that_mean_something_are_taken() -> None:
    targets = all_targets()
    assert {seed[0] for seed in seeds()} == set(range(len(targets)))
    for seed in seeds():
        targets[seed[0]](seed[1:])
    assert isinstance(targets[-1], Handshake)
    targets[-1].scene.close()


def test_fuzzed_frames_crash_nothing_and_leave_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, str(Path(__file__).with_name("fuzz.py"))),
            *("--runs", str(FRAMES), "--every", str(FRAMES // 3), "--", "-seed=1"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    # not the resident memory: libFuzzer's own grows with what it has seen
    blocks = [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) blocks", done.stdout)]
    assert len(blocks) == 3
    assert blocks[-1] - blocks[0] <= GROWTH
