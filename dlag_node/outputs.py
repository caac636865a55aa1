"""Whether something can be written where the operator wants it: asked before the work begins."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import TypeVar

from dlag_node.errors import ConfigError

P = TypeVar("P", Path, Path | None)


def to_file(path: P) -> P:
    """The path, if a file can be written there; the callback of options that name one."""
    if path is not None:
        _try(path, folder=False)
    return path


def to_folder(path: P) -> P:
    """The path, if a folder is there or can be made, into which files can be written."""
    if path is not None:
        _try(path, folder=True)
    return path


def _try(path: Path, *, folder: bool) -> None:
    try:
        if path.exists() and path.is_dir() != folder:
            raise ConfigError(
                f"cannot write {path}: it is a file, expected a folder or a name not yet taken"
                if folder
                else f"cannot write {path}: it is a folder, expected a file"
            )
        if path.exists() and not folder and not path.is_file():  # a device, a pipe
            if not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return
        near = path if folder else path.parent
        while not near.exists():
            near = near.parent
        with tempfile.TemporaryFile(dir=near):  # permissions alone do not tell: /proc
            pass
    except OSError as exc:
        raise ConfigError(f"cannot write {path}: {exc.strerror or exc}") from exc
