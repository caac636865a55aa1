"""A node's metrics for Prometheus: read from its sums when somebody asks, and not before.

The only module that knows `prometheus_client`; it is loaded where `--metrics` is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dlag_node.errors import ConfigError
from dlag_node.net.sockets import page_address
from dlag_node.net.witness import Witness

_COUNTERS: dict[str, tuple[str, Callable[[Witness], float]]] = {
    "rounds": ("Rounds finished.", lambda w: w.tally.rounds),
    "exchanges": ("Exchanges finished.", lambda w: w.tally.exchanges),
    "payload_bytes": ("Bytes of the vectors sent.", lambda w: w.tally.payload_bytes),
    "sent_bytes": ("Bytes of frames of rounds, tokens too.", lambda w: w.tally.sent_bytes),
    "control_bytes": ("Bytes of frames that are no round's.", lambda w: w.control_bytes),
    "overdue": ("Promised silences against the condition.", lambda w: w.tally.overdue),
    "sample_gradients": ("Gradients of single samples.", lambda w: w.tally.gradients),
    "compute_seconds": ("Seconds in the method.", lambda w: w.tally.compute),
    "wait_seconds": ("Seconds at the barrier.", lambda w: w.tally.wait),
    "refused_frames": ("Frames that were dropped.", lambda w: w.refused),
    "faults": ("Warnings in the log.", lambda w: w.faults.total),
    "restarts": ("Processes before this one, by the state folder.", lambda w: w.restarts),
}
_GAUGES: dict[str, tuple[str, Callable[[Witness], float]]] = {
    "round": ("Rounds finished, by earlier processes too.", lambda w: w.position),
    "age_rounds": ("Rounds since the last delta, d_i.", lambda w: w.tally.age),
    "finished": ("1 once the last round is over.", lambda w: w.finished),
}


class NodeCollector(Collector):
    """Turns a witness into metrics; counters are those of this process but for restarts."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness
        self._node = str(witness.node)

    def collect(self) -> Iterable[Metric]:
        """All metrics as they stand."""
        for name, (text, value) in _COUNTERS.items():
            counter = CounterMetricFamily(f"dlag_{name}", text, labels=["node"])
            counter.add_metric([self._node], value(self._witness))
            yield counter
        for name, (text, value) in _GAUGES.items():
            gauge = GaugeMetricFamily(f"dlag_{name}", text, labels=["node"])
            gauge.add_metric([self._node], value(self._witness))
            yield gauge
        if self._witness.tally.residual is not None:
            text = "Norm of the last step, ||x^{k+1} - x^k||."
            residual = GaugeMetricFamily("dlag_residual", text, labels=["node"])
            residual.add_metric([self._node], self._witness.tally.residual)
            yield residual
        yield from self._per_neighbor()

    def _per_neighbor(self) -> Iterator[Metric]:
        tally = self._witness.tally
        rows: tuple[tuple[str, str, list[float]], ...] = (
            ("deltas_sent", "Deltas sent.", [*tally.told]),
            ("deltas_skipped", "Exchanges without one: a token, or nothing.", [*tally.withheld]),
            ("tokens_sent", "Tokens sent in the place of deltas.", [*tally.tokens_to]),
            ("quiet_exchanges", "Exchanges in which nothing was sent.", [*tally.quiet_to]),
            (
                "neighbor_wait_seconds",
                "Seconds at the barrier for which it was the last to come.",
                self._witness.waits(),
            ),
        )
        for name, text, values in rows:
            family = CounterMetricFamily(f"dlag_{name}", text, labels=["node", "neighbor"])
            for neighbor, value in zip(tally.neighbors, values, strict=True):
                family.add_metric([self._node, str(neighbor)], max(0.0, value))
            yield family


class MetricsServer:
    """Serves a witness's metrics over HTTP, from a thread of its own."""

    def __init__(self, address: str, witness: Witness) -> None:
        host, port = page_address(address)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(NodeCollector(witness))
        try:
            self._server, self._thread = start_http_server(port, host.strip("[]"), registry)
        except OSError as exc:
            raise ConfigError(f"cannot serve metrics on {address}: {exc}") from exc
        self.url = f"http://{host}:{self._server.server_port}/metrics"

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
