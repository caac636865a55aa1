"""What a node proves itself by, and by what it knows those that it calls: read from files, once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dlag_node.net.settings import NodeSettings
from dlag_node.trust.keys import KeyPair, read_pair, read_public, read_token


@dataclass(frozen=True, slots=True)
class Credentials:
    """Our key pair, the public keys of whom we call, and perhaps a token for one join."""

    keys: KeyPair
    coordinator: bytes | None
    observer: bytes | None
    watch: bytes | None
    token: str | None = field(repr=False)


def read_credentials(settings: NodeSettings) -> Credentials | None:
    """Those that the settings name; None for a run without keys."""
    if settings.key is None:
        return None
    return Credentials(
        keys=read_pair(settings.key),
        coordinator=_public(settings.coordinator_key),
        observer=_public(settings.observer_key),
        watch=_public(settings.watch_key),
        token=None if settings.token is None else read_token(settings.token),
    )


def _public(path: Path | None) -> bytes | None:
    return None if path is None else read_public(path)
