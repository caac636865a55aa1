"""The files for Prometheus and Grafana speak of metrics that nodes serve."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from dlag_node.net.faults import Faults
from dlag_node.net.metrics import NodeCollector
from dlag_node.net.witness import Witness
from dlag_node.rounds import Engine
from dlag_node.wire.codec import Codec
from tests.net.test_publisher import RECORD, Unlinked
from tests.rounds.test_tally import Silent

DEPLOY = Path(__file__).parents[1] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana/dashboards/dlag.json").read_text())
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
PROMTOOL = shutil.which("promtool")


def test_every_query_of_the_dashboard_asks_for_a_metric_that_there_is() -> None:
    engine = Engine(Silent(), node=3, neighbors=[1, 7], codec=Codec(2))
    faults = Faults(3, lambda: engine.rounds, None, life=0)
    witness = Witness(engine, Unlinked(), faults, run="r")  # type: ignore[arg-type]
    witness.take(RECORD)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(NodeCollector(witness))
    served = {sample.name for metric in registry.collect() for sample in metric.samples}
    asked = {name for query in QUERIES for name in re.findall(r"dlag_\w+", query)}
    assert asked <= served
    assert len(asked) >= 12


def test_panels_do_not_lie_upon_each_other() -> None:
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    cells = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool: apt-get install prometheus")
def test_prometheus_takes_its_configuration_and_the_queries(tmp_path: Path) -> None:
    config = DEPLOY / "prometheus/prometheus.yml"
    subprocess.run([str(PROMTOOL), "check", "config", str(config)], check=True, capture_output=True)
    rules = {"groups": [{"name": "g", "rules": [
        {"record": f"q{i}", "expr": query} for i, query in enumerate(QUERIES)
    ]}]}  # fmt: skip
    (tmp_path / "rules.json").write_text(json.dumps(rules))  # YAML is a superset
    argv = [str(PROMTOOL), "check", "rules", str(tmp_path / "rules.json")]
    subprocess.run(argv, check=True, capture_output=True)
