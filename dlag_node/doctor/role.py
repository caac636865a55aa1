"""The node that the device is to be: would its settings, keys and data be taken?"""

from __future__ import annotations

from collections.abc import Iterator

from dlag_node.doctor.finding import Finding, fail, ok
from dlag_node.errors import ConfigError, DlagError
from dlag_node.net.settings import NodeSettings
from dlag_node.trust.keys import read_pair, read_public, read_token


def check_keys(settings: NodeSettings) -> Finding:
    """Whether every key that is named is there, is one, and is secret where it must be."""
    if settings.key is None:
        return ok("keys", "none: the mesh is on loopback, or insecure")
    if settings.post is not None:
        return ok("keys", f"made at the start, and posted at {settings.post}")
    public = (settings.coordinator_key, settings.observer_key, settings.watch_key)
    try:
        pair = read_pair(settings.key)
        for path in public:
            if path is not None:
                read_public(path)
        if settings.token is not None:
            read_token(settings.token)
    except DlagError as exc:
        return fail("keys", str(exc), "dlag keys makes them; docs/operating.md, section 11")
    return ok("keys", f"ours is {pair.public.hex()[:12]}..., it must be on the list of admitted")


def check_data(settings: NodeSettings) -> Iterator[Finding]:
    """Whether the node's own samples can be read, and may be told of; nothing without any."""
    if settings.data is None:
        return
    path = settings.data.file.path
    try:
        table = settings.data.open().table
    except DlagError as exc:
        yield fail("data", str(exc), "look at the file, and at --label, --dim and --scale")
    else:
        yield ok("data", f"{path}: {table.rows.samples:,} samples, {table.rows.dim:,} features")


def refused(exc: ConfigError) -> Finding:
    """What `dlag-node` would say of its settings, and end."""
    return fail("settings", str(exc), "dlag-node would end with exit code 2")
