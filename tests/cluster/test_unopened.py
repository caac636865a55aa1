"""A link that cannot be opened: found out before round 1, as a table at the node and above."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster.meshes import command, read_until

PATIENCE = 90.0


@contextmanager
def nobody() -> Iterator[str]:
    """An address where nobody listens, nor will: somebody has bound it, and does not listen."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"tcp://127.0.0.1:{taken.getsockname()[1]}"


def test_both_ends_of_a_closed_link_are_in_the_coordinators_table_before_round_1() -> None:
    flags = ["--topology", "path:2", "--bind", "tcp://127.0.0.1:*"]
    with nobody() as nowhere, command("dlag-coordinator", *flags) as coordinator:
        line = read_until(coordinator, "listening on")
        boss = line.split("listening on ")[1].split()[0]
        shared = ["--coordinator", boss, "--neighbor-timeout", "20"]
        with (
            command("dlag-node", *shared, "--id", "0", "--advertise", nowhere) as first,
            command("dlag-node", *shared, "--id", "1") as second,
        ):
            rows = [read_until(coordinator, f"  {nowhere}  ") for _ in range(2)]
            table = read_until(second, "node  neighbor  address tried")
            row = read_until(second, nowhere)
            assert "error" in table
            assert "0" in row
            coordinator.terminate()
            first.terminate()
            second.terminate()
            assert [each.wait(PATIENCE) for each in (first, second)] == [143, 143]
    by_node = {int(re.search(r"WARNING +(\d)", each)[1]): each for each in rows}  # type: ignore[index]
    assert "Connection refused" in by_node[1]
    assert "it has not called" in by_node[0]
