"""Every limit of the wire, in one place."""

from __future__ import annotations

PROTOCOL = 2  # spoken version; peers of another one are refused

MAX_NODES = 10_000
MAX_CENSUS_NODES = 1_000  # up to here everybody is told the whole graph
MAX_CENSUS_EDGES = 10_000
MAX_DIM = 10_000_000  # features
MAX_SCALED_DIM = 60_000  # features whose scaling is agreed: two vectors in one control message
MAX_SAMPLES = 2**53  # of a node
MAX_VECTORS = 2  # of that many entries in one delta: a method may tell two of its vectors at once
MAX_WIDTH = MAX_VECTORS * MAX_DIM  # entries of a delta: 160 MB
MAX_TEXT = 2_000  # characters of a reason, a method's text, an address
KEY_BYTES = 32  # of a public key
MAX_SEQ = 2**53  # exchanges in a run
MAX_PROMISE = 100  # exchanges of silence that one delta may promise
MAX_BACK = 2_000  # rounds that a node may fall back by: its neighbors keep their frames
# about stopping, either side of 0: three reasons, and a diameter of edges that each take a promise
MAX_WORD = 3 * MAX_NODES * (MAX_PROMISE + 1)
MAX_FIELDS = 16  # of a message, its code included; only an assignment has longer arrays in it
CHUNK_BYTES = 1 << 20  # one piece of a shard
MAX_CONTROL_BYTES = CHUNK_BYTES + 4_096  # a chunk and its envelope; an assignment's spectrum fits
FLOAT_BYTES = 8
ENVELOPE_BYTES = 64  # more than any frame needs beside its vector


def require(holds: bool, found: str) -> None:
    """ValueError with what was found, unless it holds: how a message refuses its own fields."""
    if not holds:
        raise ValueError(found)


def frame_limit(width: int) -> int:
    """The largest honest frame: a delta of `width` entries, or a text, and its envelope."""
    return max(FLOAT_BYTES * width, 4 * MAX_TEXT) + ENVELOPE_BYTES
