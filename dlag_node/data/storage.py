"""Where a large matrix lives: in memory up to a size, beyond it in a file that is mapped.

A mapped matrix is read by the kernel as it is passed over, and dropped again when memory is short:
passes over it run at the disk's speed, and the process itself stays small.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dlag_node.errors import StorageError

Array = NDArray[np.float64]

IN_MEMORY_BYTES = 256 << 20  # a matrix that we make ourselves and that is larger goes to a file
BLOCK_BYTES = 8 << 20  # rows in hand at a time, as float64
# Linux: a private mapping need not be backed by memory and swap, for none of it is written to.
_MAP_NORESERVE = 0x4000


def blank(samples: int, dim: int) -> Array:
    """An empty samples x dim matrix: in memory, or in a file without a name, in TMPDIR."""
    size = 8 * samples * dim
    if size <= IN_MEMORY_BYTES:
        return np.empty((samples, dim))
    try:
        with tempfile.TemporaryFile() as file:  # unlinked: it goes when the mapping goes
            os.posix_fallocate(file.fileno(), 0, size)
            held = mmap.mmap(file.fileno(), size)
    except OSError as exc:
        folder = tempfile.gettempdir()
        raise StorageError(f"no room for {size} bytes in {folder} (TMPDIR): {exc}") from exc
    return np.frombuffer(held, np.float64).reshape(samples, dim)


def mapped(descriptor: int, offset: int, samples: int, dim: int) -> Array:
    """A float64 matrix that lies in a file from `offset` on, as it is.

    The mapping is private and can be written to, as far as compiled loops are concerned: they know
    a read-only array as another type. Nobody writes to it, so that no page is ever copied.
    """
    held = mmap.mmap(
        descriptor,
        offset + 8 * samples * dim,
        flags=mmap.MAP_PRIVATE | _MAP_NORESERVE,
        prot=mmap.PROT_READ | mmap.PROT_WRITE,
    )
    return np.frombuffer(held, np.float64, samples * dim, offset).reshape(samples, dim)


def blocks(samples: int, dim: int) -> Iterator[slice]:
    """The rows of a matrix in turn, as many at a time as fit into BLOCK_BYTES."""
    step = max(1, BLOCK_BYTES // (8 * max(1, dim)))
    for first in range(0, samples, step):
        yield slice(first, min(first + step, samples))
