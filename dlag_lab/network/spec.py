"""What a network is like: `delay=20ms,jitter=5ms,loss=1%,rate=10mbit` read, checked, said again."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dlag_node.errors import ConfigError

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_BITS = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_UNITS = {"delay": _SECONDS, "jitter": _SECONDS, "loss": {"%": 0.01}, "rate": _BITS}
_EXAMPLES = {"delay": "20ms", "jitter": "5ms", "loss": "1%", "rate": "10mbit"}
_QUANTITY = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([a-z%]*)")

LONGEST_DELAY = 1.0  # seconds: to Linux a host that does not answer ARP within 3 s is not there
SLOWEST_RATE = 2e3  # bits a second: a hand-shake, some 20,000 bits, may take ZeroMQ 30 s
FASTEST_RATE = 10e9


@dataclass(frozen=True, slots=True)
class NetworkSpec:
    """The network between the nodes; zeros, and a rate of None, are a network that adds nothing."""

    delay: float = 0.0  # seconds, one way
    jitter: float = 0.0  # seconds: a packet takes delay +- jitter, uniformly; a link keeps order
    loss: float = 0.0  # of the packets of every link and direction, 0 to below 1
    rate: float | None = None  # bits a second of every link, in each direction

    def __post_init__(self) -> None:
        if self.jitter > self.delay:
            raise ConfigError(
                f"network: jitter={_time(self.jitter)} is more than delay={_time(self.delay)}: "
                "expected at most the delay"
            )
        if self.delay + self.jitter > LONGEST_DELAY:
            raise ConfigError(
                f"network: delay={_time(self.delay)} with jitter={_time(self.jitter)}: "
                f"expected at most {_time(LONGEST_DELAY)} together"
            )
        if not self.loss < 1:
            raise ConfigError(f"network: loss={self.loss * 100:g}%: expected less than 100%")
        if self.rate is not None and not SLOWEST_RATE <= self.rate <= FASTEST_RATE:
            raise ConfigError(
                f"network: rate={_rate(self.rate)}: "
                f"expected {_rate(SLOWEST_RATE)} to {_rate(FASTEST_RATE)}"
            )

    @property
    def disturbs(self) -> bool:
        """Whether packets must be held or lost, and not only paced."""
        return self.delay > 0 or self.loss > 0

    def __str__(self) -> str:
        said = [f"delay={_time(self.delay)}"]
        if self.jitter:
            said.append(f"jitter={_time(self.jitter)}")
        if self.loss:
            said.append(f"loss={self.loss * 100:.10g}%")
        if self.rate is not None:
            said.append(f"rate={_rate(self.rate)}")
        return ",".join(said)


def parse_network(text: str) -> NetworkSpec:
    """A ConfigError names the part that is wrong and what was expected."""
    values: dict[str, float] = {}
    for part in text.split(","):
        key, equals, quantity = (word.strip() for word in part.partition("="))
        if key not in _UNITS or not equals:
            known = ", ".join(f"{name}={example}" for name, example in _EXAMPLES.items())
            raise ConfigError(f"network {text!r:.200}: {part!r:.80}: expected some of {known}")
        if key in values:
            raise ConfigError(f"network {text!r:.200}: {key} is given twice")
        values[key] = _number(text, key, quantity)
    return NetworkSpec(**values)


def _number(text: str, key: str, quantity: str) -> float:
    units = _UNITS[key]
    match = _QUANTITY.fullmatch(quantity)
    if match is None or match[2] not in units:
        raise ConfigError(
            f"network {text!r:.200}: {key}={quantity:.80}: expected a number and one of "
            f"{', '.join(units)}, like {key}={_EXAMPLES[key]}"
        )
    return float(match[1]) * units[match[2]]


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.10g}ms"


def _rate(bits: float) -> str:
    unit = next((each for each in ("gbit", "mbit", "kbit") if bits >= _BITS[each]), "bit")
    return f"{bits / _BITS[unit]:.10g}{unit}"
