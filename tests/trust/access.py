"""Access lists on files, as systemd puts them on the credentials of a service."""

from __future__ import annotations

import os
import struct
from pathlib import Path

_LIST = "system.posix_acl_access"  # linux/xattr.h
_VERSION = 2
_NOBODY = 0xFFFFFFFF  # for entries that are not about a certain id
_OWNER, USER, _FILE_GROUP, GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20


def let_read(path: Path, owner: int, *, tag: int = USER, file_group: int = 0) -> None:
    """A file that its owner may read, and one user or group more; its mode then says 0440."""
    entries = [(_OWNER, 4, _NOBODY), (tag, 4, owner), (_FILE_GROUP, file_group, _NOBODY),
               (_MASK, 4, _NOBODY), (_OTHER, 0, _NOBODY)]  # fmt: skip
    packed = b"".join(struct.pack("<HHI", *entry) for entry in sorted(entries))
    os.setxattr(path, _LIST, struct.pack("<I", _VERSION) + packed)
