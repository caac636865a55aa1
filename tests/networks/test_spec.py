"""Networks as people write them: what is read, what is refused and with which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.plan import RunSettings
from dlag_lab.network import commands
from dlag_lab.network.network import MOST_NODES, Network
from dlag_lab.network.qdiscs import netem
from dlag_lab.network.spec import NetworkSpec, parse_network
from dlag_lab.runs import Run, RunRequest
from dlag_node.errors import ConfigError
from dlag_node.graphs.topology import parse_topology


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("delay=20ms", NetworkSpec(delay=0.02)),
        ("delay=0ms", NetworkSpec()),
        ("rate=10mbit", NetworkSpec(rate=1e7)),
        ("loss=0.5%", NetworkSpec(loss=0.005)),
        (
            "delay=20ms,jitter=5ms,loss=1%,rate=100kbit",
            NetworkSpec(delay=0.02, jitter=0.005, loss=0.01, rate=1e5),
        ),
        (" rate = 1gbit , delay = 250us ", NetworkSpec(delay=0.00025, rate=1e9)),
        ("delay=1s", NetworkSpec(delay=1.0)),
        ("delay=1.5ms,jitter=1.5ms", NetworkSpec(delay=0.0015, jitter=0.0015)),
        ("rate=2000bit", NetworkSpec(rate=2e3)),
    ],
)
def test_a_network_is_read_and_says_itself_again(text: str, expected: NetworkSpec) -> None:
    spec = parse_network(text)
    for name in ("delay", "jitter", "loss", "rate"):
        read, meant = getattr(spec, name), getattr(expected, name)
        assert read == meant or read == pytest.approx(meant, rel=1e-12)
    assert str(parse_network(str(spec))) == str(spec)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'': expected some of delay=20ms, jitter=5ms, loss=1%, rate=10mbit"),
        (",", "'': expected some of delay=20ms"),
        ("delay=20ms,", "'': expected some of delay=20ms"),
        ("20ms", "'20ms': expected some of delay=20ms"),
        ("delay", "'delay': expected some of delay=20ms"),
        ("latency=20ms", "'latency=20ms': expected some of delay=20ms"),
        ("Delay=20ms", "'Delay=20ms': expected some of delay=20ms"),
        ("delay=20ms;loss=1%", "delay=20ms;loss=1%: expected a number and one of us, ms, s"),
        ("delay=", "delay=: expected a number and one of us, ms, s, like delay=20ms"),
        ("delay=20", "delay=20: expected a number and one of us, ms, s, like delay=20ms"),
        ("delay=ms", "delay=ms: expected a number and one of us, ms, s"),
        ("delay=-1ms", "delay=-1ms: expected a number and one of us, ms, s"),
        ("delay=1e3ms", "delay=1e3ms: expected a number and one of us, ms, s"),
        ("delay=nanms", "delay=nanms: expected a number"),
        ("delay=infs", "delay=infs: expected a number"),
        ("delay=2 0ms", "delay=2 0ms: expected a number"),
        ("delay=20ms=5", "delay=20ms=5: expected a number"),
        ("delay=20%", "delay=20%: expected a number and one of us, ms, s"),
        ("delay=\u0662ms", "expected a number and one of us, ms, s"),
        ("delay=2s", "delay=2000ms with jitter=0ms: expected at most 1000ms together"),
        ("delay=600ms,jitter=500ms", "expected at most 1000ms together"),
        ("jitter=5ms", "jitter=5ms is more than delay=0ms: expected at most the delay"),
        ("delay=1ms,jitter=2ms", "jitter=2ms is more than delay=1ms"),
        ("loss=1", "loss=1: expected a number and one of %, like loss=1%"),
        ("loss=100%", "loss=100%: expected less than 100%"),
        ("loss=-1%", "loss=-1%: expected a number and one of %"),
        ("rate=10", "rate=10: expected a number and one of bit, kbit, mbit, gbit"),
        ("rate=10mb", "rate=10mb: expected a number and one of bit, kbit, mbit, gbit"),
        ("rate=10Mbit", "rate=10Mbit: expected a number and one of bit, kbit, mbit, gbit"),
        ("rate=0mbit", "rate=0bit: expected 2kbit to 10gbit"),
        ("rate=1kbit", "rate=1kbit: expected 2kbit to 10gbit"),
        ("rate=11gbit", "rate=11gbit: expected 2kbit to 10gbit"),
        ("delay=1ms,delay=2ms", "delay is given twice"),
    ],
)
def test_a_malformed_network_is_refused_with_the_part_that_is_wrong(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_network(text)
    assert words in str(refused.value)


def test_a_simulated_run_has_no_network(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a simulated run has none: expected a mesh"):
        RunRequest(
            settings=RunSettings(),
            mode="simulate",
            target=None,
            out=tmp_path,
            network=parse_network("delay=1ms"),
        )


def test_more_hosts_than_a_switch_has_ports_are_refused() -> None:
    with pytest.raises(ConfigError, match="1001 nodes: expected at most 1000"):
        Network(parse_network("delay=1ms"), parse_topology(f"path:{MOST_NODES + 1}", seed=0))


def test_everything_that_the_machine_lacks_is_named_before_a_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    spec = parse_network("delay=1ms,rate=1mbit")
    request = RunRequest(
        settings=RunSettings(topology="ring:4"),
        mode="mesh",
        target=None,
        out=tmp_path / "run",
        network=spec,
    )
    with pytest.raises(ConfigError) as refused:
        Run(request)
    said = str(refused.value)
    assert said.startswith("network delay=1ms,rate=1mbit: this machine lacks ")
    for words in (
        "the command ip (package iproute2)",
        "the command tc (package iproute2)",
        "the command iptables (package iptables)",
        "root: making network namespaces is not for others",
    ):
        assert words in said
    assert not (tmp_path / "run").exists()


def test_a_network_that_adds_nothing_needs_neither_tc_nor_iptables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    lacking = commands.missing(NetworkSpec())
    assert [words.split()[2] for words in lacking if "command" in words] == ["ip"]


def test_the_kernels_own_emulator_is_asked_for_the_same_things() -> None:
    spec = parse_network("delay=20ms,jitter=5ms,loss=1%,rate=10mbit")
    assert " ".join(netem(spec, "mesh-3")) == (
        "tc qdisc add dev mesh-3 root netem limit 100000 delay 20000us 5000us loss 1.000000%"
    )
