"""What a node proves itself by, and by what it knows those that it calls: read from files, once."""

from __future__ import annotations

from dataclasses import dataclass, field

from dlag_node.net.settings import NodeSettings
from dlag_node.trust.keys import KeyPair, read_pair, read_public, read_token


@dataclass(frozen=True, slots=True)
class Credentials:
    """Our key pair, the public keys of whom we call, and perhaps a token for one join."""

    keys: KeyPair
    coordinator: bytes | None
    observer: bytes | None
    token: str | None = field(repr=False)


def read_credentials(settings: NodeSettings) -> Credentials | None:
    """Those that the settings name; None for a run without keys."""
    if settings.key is None:
        return None
    coordinator, observer, token = settings.coordinator_key, settings.observer_key, settings.token
    return Credentials(
        keys=read_pair(settings.key),
        coordinator=None if coordinator is None else read_public(coordinator),
        observer=None if observer is None else read_public(observer),
        token=None if token is None else read_token(token),
    )
