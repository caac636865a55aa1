"""The kernel's own queues of packets, as commands of tc."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dlag_lab.network.spec import NetworkSpec

_BURST_BYTES = 1_600  # one packet with its headers
_BURST_SECONDS = 1e-3
_BACKLOG_BYTES = 1 << 16  # of what a link has yet to carry, or one second's worth if more
_PACKET_BYTES = 1_514  # at most, with its Ethernet header
_OTHERS = 0xFFFF  # the class of whoever is not named
_NETEM_PACKETS = 100_000  # netem's own limit of 1,000 would lose packets of large meshes


def htb(rate: float, interface: str, addresses: Iterable[str]) -> Iterator[str]:
    """Lines for `tc -batch`: every one of these hosts is sent at most `rate` bits a second.

    All others share one more link of that rate.
    """
    yield f"qdisc add dev {interface} root handle 1: htb default {_OTHERS:x}"
    yield from _link(rate, interface, _OTHERS)
    for link, address in enumerate(addresses, start=1):
        yield from _link(rate, interface, link)
        match = f"u32 match ip dst {address}/32 flowid 1:{link:x}"
        yield f"filter add dev {interface} parent 1: protocol ip prio 1 {match}"


def _link(rate: float, interface: str, link: int) -> Iterator[str]:
    burst = round(_BURST_BYTES + rate / 8 * _BURST_SECONDS)
    backlog = round(max(_BACKLOG_BYTES, rate / 8))
    paced = f"rate {rate:.0f}bit burst {burst} cburst {burst} quantum {_PACKET_BYTES}"
    yield f"class add dev {interface} parent 1: classid 1:{link:x} htb {paced}"
    yield f"qdisc add dev {interface} parent 1:{link:x} bfifo limit {backlog}"


def netem(spec: NetworkSpec, port: str) -> list[str]:
    """The command that holds and loses what a port of the switch sends to its host."""
    argv = ["tc", "qdisc", "add", "dev", port, "root", "netem", "limit", str(_NETEM_PACKETS)]
    argv += ["delay", f"{spec.delay * 1e6:.0f}us"]
    if spec.jitter:
        argv.append(f"{spec.jitter * 1e6:.0f}us")
    if spec.loss:
        argv += ["loss", f"{spec.loss * 100:.6f}%"]
    return argv
