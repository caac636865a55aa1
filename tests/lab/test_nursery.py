"""The fork server: a signal right after the fork is the child's own, and nobody else's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

CHILDREN = 40
NODE = ["dlag-node", "--coordinator", "tcp://127.0.0.1:1"]  # nobody is there: it waits


@pytest.mark.timeout(60)
def test_a_child_that_is_ended_at_once_ends_alone(tmp_path: Path) -> None:
    def order(name: str) -> dict[str, Any]:
        return {"name": name, "argv": NODE, "log": str(tmp_path / f"{name}.log")}

    orders = [order("bystander")]
    for n in range(CHILDREN):
        orders += [order(f"child-{n}"), {"name": f"child-{n}", "signal": signal.SIGTERM}]
    nursery = subprocess.Popen(
        [sys.executable, "-m", "dlag_lab.nursery"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    try:
        nursery.stdin.write("".join(json.dumps(each) + "\n" for each in orders))
        nursery.stdin.flush()
        exits: dict[str, int] = {}
        while len(exits) < CHILDREN:
            event = json.loads(nursery.stdout.readline())
            if "exit" in event:
                exits[event["name"]] = event["exit"]
        assert "bystander" not in exits
        rest, errors = nursery.communicate()  # the end of input
    finally:
        with suppress(ProcessLookupError):
            os.killpg(nursery.pid, signal.SIGKILL)
        nursery.communicate()
    assert set(exits.values()) <= {-signal.SIGTERM, 128 + signal.SIGTERM}
    assert [json.loads(line)["name"] for line in rest.splitlines()] == ["bystander"]
    assert errors == ""
