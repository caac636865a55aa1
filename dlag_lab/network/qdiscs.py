"""The kernel's own queues of packets, as commands of tc."""

from __future__ import annotations

from dlag_lab.network.spec import NetworkSpec

_BURST_BYTES = 1_600  # one packet with its headers
_BURST_SECONDS = 1e-3
_BACKLOG_BYTES = 1 << 16  # of what an interface has yet to send, or one second's worth if more
_NETEM_PACKETS = 100_000  # netem's own limit of 1,000 would lose packets of large meshes


def tbf(rate: float, interface: str) -> list[str]:
    """The command that lets a host send no more than `rate` bits a second."""
    burst = round(_BURST_BYTES + rate / 8 * _BURST_SECONDS)
    backlog = round(max(_BACKLOG_BYTES, rate / 8))
    argv = ["tc", "qdisc", "add", "dev", interface, "root", "tbf"]
    return [*argv, "rate", f"{rate:.0f}bit", "burst", str(burst), "limit", str(backlog)]


def netem(spec: NetworkSpec, port: str) -> list[str]:
    """The command that holds and loses what a port of the switch sends to its host."""
    argv = ["tc", "qdisc", "add", "dev", port, "root", "netem", "limit", str(_NETEM_PACKETS)]
    argv += ["delay", f"{spec.delay * 1e6:.0f}us"]
    if spec.jitter:
        argv.append(f"{spec.jitter * 1e6:.0f}us")
    if spec.loss:
        argv += ["loss", f"{spec.loss * 100:.6f}%"]
    return argv
