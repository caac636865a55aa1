"""Who can read a file, beside its owner and ourselves: by its mode, and by its access list.

A service of systemd's finds its credentials as files of root that an access list (POSIX ACL) lets
its user read. The mode's group bits then are no group's: they are the list's mask, as in 0440.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

_LIST = "system.posix_acl_access"  # linux/xattr.h
_HEADER = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")  # tag, permissions, id: linux/posix_acl_xattr.h
_USER, _GROUP_OF_FILE, _GROUP, _MASK = 0x02, 0x04, 0x08, 0x10  # linux/posix_acl.h
_GROUP_BITS, _OTHER_BITS = 0o070, 0o007


def readable_by_others(path: Path) -> bool:
    """Whether anybody but its owner, root and this process's user may read or change the file."""
    mode = path.stat().st_mode
    if mode & _OTHER_BITS:
        return True
    entries = _access_list(path)
    if not entries:
        return bool(mode & _GROUP_BITS)
    mask = next((permissions for tag, permissions, _ in entries if tag == _MASK), 0o7)
    ours = {0, os.geteuid()}
    return any(
        permissions & mask
        for tag, permissions, owner in entries
        if tag in (_GROUP_OF_FILE, _GROUP) or (tag == _USER and owner not in ours)
    )


def _access_list(path: Path) -> list[tuple[int, int, int]]:
    """The entries of a file's access list; none where it has no list, or the system knows none."""
    try:
        raw = os.getxattr(path, _LIST)
    except (AttributeError, OSError):  # no Linux; no list, or a file system without
        return []
    return list(_ENTRY.iter_unpack(raw[_HEADER.size :]))
