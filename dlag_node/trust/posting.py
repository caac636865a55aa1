"""Keys for processes that nobody has brought any, as containers are: each makes its own pair.

The secret half stays with its process. The public one is posted: a file in a folder that all of
them share, where those that it concerns find it. So whoever can write to that folder belongs.

A post is locked while its process lives: that tells those in use from what an earlier run has left.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from dlag_node.errors import ConfigError
from dlag_node.trust.keys import KeyPair, make_pair, read_pair

log = logging.getLogger(__name__)

_LOOK_EVERY = 0.1  # seconds
_MODE = 0o644


@contextmanager
def own_pair(key: Path, at: Path | None) -> Iterator[KeyPair]:
    """The pair in `key`; made where there is none, and posted meanwhile, if there is a place."""
    if at is None:
        yield read_pair(key)
        return
    pair = make_pair(key)
    with _posted(pair.public, at):
        log.info("our public key is posted at %s", at)
        yield pair


async def wait_for_post(path: Path, *, timeout: float) -> None:
    """Until somebody has posted a key there; a ConfigError after so many seconds."""
    give_up = monotonic() + timeout
    if not path.exists():
        log.info("waiting for a key at %s", path)
    while not path.exists():
        if monotonic() >= give_up:
            raise ConfigError(f"{path}: no key was posted there for {timeout:g} s")
        await asyncio.sleep(_LOOK_EVERY)


def clear_posts(folder: Path) -> int:
    """Remove the posts in `folder` and below whose processes are gone; returns how many."""
    removed = 0
    for path in sorted(folder.rglob("*.pub")):
        try:
            with path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
        except BlockingIOError:
            log.warning("kept: the key at %s is in use", path)
        except OSError as exc:
            raise ConfigError(f"cannot remove {path}: {exc}") from exc
        else:
            removed += 1
    return removed


@contextmanager
def _posted(public: bytes, path: Path) -> Iterator[None]:
    """All of the key appears at once. It stays when we end: who comes back is the same."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    except OSError as exc:
        raise ConfigError(f"cannot post a key at {path}: {exc}") from exc
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        try:
            os.fchmod(descriptor, _MODE)  # whatever the umask is
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(f"{public.hex()}\n")
            file.flush()
            temporary.replace(path)
        except OSError as exc:
            raise ConfigError(f"cannot post a key at {path}: {exc}") from exc
        yield
