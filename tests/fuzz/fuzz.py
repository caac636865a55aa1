"""The fuzzer: `python tests/fuzz/fuzz.py --runs 10000000`, with libFuzzer's own flags after `--`.

atheris mutates inputs towards new lines and branches of the code that reads what others send. The
process says how many frames it has taken and how much memory it holds, and dies with the input of
the first error that we do not name.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
import tempfile
import warnings
from pathlib import Path
from time import perf_counter

import atheris

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
READS = ["dlag_node.wire", "dlag_node.rounding", "dlag_node.rounds.checkpoint"]
READS += ["dlag_node.net.links", "dlag_node.net.routes", "dlag_node.trust.strangers"]

with atheris.instrument_imports(include=READS):
    from tests.fuzz.targets import all_targets, seeds

LONGEST = 600  # bytes of an input: every message of three entries fits


class Fuzzed:
    """Hands an input to its target, and counts."""

    def __init__(self, every: int) -> None:
        self.targets = all_targets()
        self.count = [0] * len(self.targets)
        self._every = every
        self._begun = perf_counter()

    def __call__(self, data: bytes) -> None:
        which = data[0] % len(self.targets) if data else 0
        self.targets[which](data[1:])
        self.count[which] += 1
        if sum(self.count) % self._every == 0:
            self.say()

    def say(self) -> None:
        """Frames so far, of each target, and the memory of this process."""
        names = ("codec", "control", "checkpoint", "hand-shake")
        counts = ", ".join(f"{name} {n:,}" for name, n in zip(names, self.count, strict=True))
        seconds = perf_counter() - self._begun
        gc.collect()
        memory = f"resident {resident()} kB, {sys.getallocatedblocks():,} blocks of Python's"
        line = f"{sum(self.count):,} frames in {seconds:.0f} s ({counts}), {memory}"
        os.write(1, f"{line}\n".encode())


def resident() -> int:
    """Resident memory in kB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def main() -> None:
    """Fuzz until so many runs are done."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=10_000_000)
    options.add_argument("--every", type=int, default=1_000_000, help="frames between two reports")
    options.add_argument("rest", nargs="*", help="flags of libFuzzer, after --")
    asked = options.parse_args()
    warnings.simplefilter("error")
    logging.disable(logging.CRITICAL)  # a line for each stranger: that is not the question here
    fuzzed = Fuzzed(asked.every)
    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(seeds()):
            (Path(corpus) / f"seed-{number}").write_bytes(seed)
        flags = [f"-runs={asked.runs}", f"-max_len={LONGEST}", "-verbosity=0", *asked.rest]
        atheris.Setup([sys.argv[0], *flags, corpus], fuzzed)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
