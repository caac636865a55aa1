"""A node's metrics, scraped by a real Prometheus."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from dlag_lab.folder import RunFolder
from dlag_node.errors import ConfigError
from dlag_node.net.settings import NodeSettings
from dlag_node.rounds.tally import Tally
from dlag_node.wire.observing import Ready
from tests.cluster.laboratory import Laboratory, laboratory
from tests.cluster.meshes import finish, read_until

PROMETHEUS = shutil.which("prometheus")
PATIENCE = 60.0  # seconds
ROUNDS = 30
HELD = 20  # the round in which everybody is held while Prometheus looks
NEIGHBORS = {0: [1], 1: [0, 2], 2: [1]}

Series = dict[tuple[str, ...], float]


class Prometheus:
    """A Prometheus server of this test alone."""

    def __init__(self, port: int) -> None:
        self._api = f"http://127.0.0.1:{port}/api/v1/query?"

    def ask(self, name: str, *labels: str) -> Series:
        """A metric's latest values, by their labels."""
        try:
            with urlopen(self._api + urlencode({"query": name}), timeout=10) as answer:
                found = json.load(answer)["data"]["result"]
        except OSError:
            return {}  # it has not come up yet
        return {
            tuple(each["metric"][label] for label in labels): float(each["value"][1])
            for each in found
        }

    def until(self, name: str, right: Callable[[Series], bool]) -> Series:
        """The values of a metric by node, once they are right."""
        deadline = time.monotonic() + PATIENCE
        while not right(found := self.ask(name, "node")):
            assert time.monotonic() < deadline, f"{name}: {found}"
            time.sleep(0.1)
        return found


@contextmanager
def prometheus(folder: Path, targets: list[str]) -> Iterator[Prometheus]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder.mkdir()
    config = folder / "prometheus.yml"
    config.write_text(
        json.dumps(  # YAML is a superset
            {
                "global": {"scrape_interval": "1s"},
                "scrape_configs": [{"job_name": "dlag", "static_configs": [{"targets": targets}]}],
            }
        )
    )
    process = subprocess.Popen(
        [
            str(PROMETHEUS),
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield Prometheus(port)
    finally:
        process.kill()
        process.wait()


def targets_of(lab: Laboratory) -> list[str]:
    urls = [read_until(lab.nodes[node], "metrics at").split("metrics at ")[1] for node in NEIGHBORS]
    return [url.strip().removeprefix("http://").removesuffix("/metrics") for url in urls]


def expected(folder: Path) -> dict[int, Tally]:
    """What the nodes must have counted by the held round, by a run without any metrics."""
    finish("simulate", folder, method="dlag", topology="path:3", rounds=ROUNDS)
    tallies = {}
    for node, neighbors in NEIGHBORS.items():
        tallies[node] = Tally(neighbors)
        for record in RunFolder(folder).records(node)[:HELD]:
            tallies[node].take(record)
    return tallies


@pytest.mark.skipif(PROMETHEUS is None, reason="no prometheus: apt-get install prometheus")
def test_a_real_prometheus_scrapes_every_node_and_sees_a_restart(tmp_path: Path) -> None:
    tallies = expected(tmp_path / "expected")
    with laboratory(tmp_path / "run", topology="path:3", rounds=ROUNDS) as lab:
        for node in NEIGHBORS:
            lab.start(node, "--metrics", "127.0.0.1:0")
        targets = targets_of(lab)
        lab.run_to(HELD)
        with prometheus(tmp_path / "prometheus", targets) as server:
            server.until("dlag_round", lambda found: list(found.values()) == [HELD] * 3)
            for metric, field in {
                "dlag_rounds_total": "rounds",
                "dlag_sent_bytes_total": "sent_bytes",
                "dlag_payload_bytes_total": "payload_bytes",
                "dlag_sample_gradients_total": "gradients",
                "dlag_overdue_total": "overdue",
                "dlag_age_rounds": "age",
                "dlag_residual": "residual",
            }.items():
                found = server.ask(metric, "node")
                wanted = {(str(i),): getattr(tally, field) for i, tally in tallies.items()}
                assert found == pytest.approx(wanted), metric
            sent = server.ask("dlag_deltas_sent_total", "node", "neighbor")
            skipped = server.ask("dlag_deltas_skipped_total", "node", "neighbor")
            tokens = server.ask("dlag_tokens_sent_total", "node", "neighbor")
            quiet = server.ask("dlag_quiet_exchanges_total", "node", "neighbor")
            for i, tally in tallies.items():
                for at, (j, told) in enumerate(zip(tally.neighbors, tally.told, strict=True)):
                    assert sent[str(i), str(j)] == told
                    assert tokens[str(i), str(j)] == tally.tokens_to[at]
                    assert quiet[str(i), str(j)] == tally.quiet_to[at]
                    assert skipped[str(i), str(j)] == tally.exchanges - told
            waited = server.ask("dlag_neighbor_wait_seconds_total", "node", "neighbor")
            assert waited.keys() == sent.keys()
            assert sum(waited.values()) > 0
            assert set(server.ask("dlag_restarts_total", "node").values()) == {0}

            lab.kill(1)
            lab.start(1, "--metrics", targets[1])
            lab.until(Ready, {1})
            again = server.until("dlag_restarts_total", lambda found: found.get(("1",)) == 1)
            assert again == {("0",): 0, ("1",): 1, ("2",): 0}
        lab.finish()


@pytest.mark.parametrize("address", ["9100", "tcp://127.0.0.1:9100", "127.0.0.1:70000", "a b:1"])
def test_an_address_for_metrics_that_is_none_is_named(address: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"{address!r}: expected host:port")):
        NodeSettings("tcp://127.0.0.1:1", metrics=address)
