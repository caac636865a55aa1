"""A whole node against a real coordinator: where it says that neighbors reach it."""

from __future__ import annotations

import asyncio
import re

import pytest

from coordinator.draft import Draft
from coordinator.plan import RunSettings
from coordinator.roster import Roster
from coordinator.server import Server
from dlag_node.net.node import run_node
from dlag_node.net.settings import NodeSettings

DEADLINE = 60.0  # seconds for what takes a moment, once the kernels are compiled


@pytest.mark.parametrize("bind", ["tcp://0.0.0.0:*", "tcp://*:*"])
async def test_nodes_that_listen_everywhere_find_each_other(bind: str) -> None:
    roster = Roster(Draft(RunSettings(topology="path:2", rounds=3)))
    server = Server(roster, "tcp://127.0.0.1:*")
    # by name: what the node is told need not be what it can take its own address from
    boss = server.address.replace("127.0.0.1", "localhost")
    try:
        async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve())
            for _ in range(2):
                tasks.create_task(
                    run_node(NodeSettings(coordinator=boss, bind=bind, insecure=True))
                )
    finally:
        server.close()
    told = [member.report.address for member in roster.members.values() if member.report]
    assert len(set(told)) == 2
    assert all(re.fullmatch(r"tcp://127\.0\.0\.1:[1-9][0-9]*", address) for address in told)
