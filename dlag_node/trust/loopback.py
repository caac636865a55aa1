"""Without keys nobody may listen where others can call: that takes a word of the operator's."""

from __future__ import annotations

import ipaddress
import re

from dlag_node.errors import ConfigError

_HOST = re.compile(r"tcp://(\[[^\]]*\]|[^:]*):.*")


def is_loopback(address: str) -> bool:
    """Whether nobody but this machine can reach tcp://host:port."""
    match = _HOST.fullmatch(address)
    host = "" if match is None else match[1].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def require_loopback(*addresses: str | None, unless: bool) -> None:
    """A ConfigError for an address that is not on loopback, unless the operator has said so."""
    for address in addresses:
        if address is not None and not unless and not is_loopback(address):
            raise ConfigError(
                f"{address} is not on loopback: expected keys (--key; `dlag keys` makes them), or "
                "--insecure to let anybody in"
            )
