"""What a node proves itself by, and by what it knows those that it calls: from files, once."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from dlag_node.net.settings import NodeSettings
from dlag_node.trust.keys import KeyPair, read_public, read_token
from dlag_node.trust.posting import own_pair, wait_for_post


@dataclass(frozen=True, slots=True)
class Credentials:
    """Our key pair, the public keys of whom we call, and perhaps a token for one join."""

    keys: KeyPair
    coordinator: bytes | None
    observer: bytes | None
    watch: bytes | None
    token: str | None = field(repr=False)


async def find_credentials(settings: NodeSettings, stack: ExitStack) -> Credentials | None:
    """Those that the settings name; None for a run without keys.

    Where everybody posts its own key, ours is up first: nobody waits for who waits for it.
    """
    if settings.key is None:
        return None
    keys = stack.enter_context(own_pair(settings.key, settings.post))
    if settings.post is not None:
        for path in (settings.coordinator_key, settings.observer_key, settings.watch_key):
            if path is not None:
                await wait_for_post(path, timeout=settings.join_timeout)
    return Credentials(
        keys=keys,
        coordinator=_public(settings.coordinator_key),
        observer=_public(settings.observer_key),
        watch=_public(settings.watch_key),
        token=None if settings.token is None else read_token(settings.token),
    )


def _public(path: Path | None) -> bytes | None:
    return None if path is None else read_public(path)
