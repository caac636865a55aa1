"""Frames and control messages, and their bytes."""

from dlag_node.wire.frames import (
    Abort,
    Delta,
    Done,
    Frame,
    Hello,
    Need,
    Refuse,
    RoundFrame,
    Skip,
    Welcome,
    Who,
)
from dlag_node.wire.limits import PROTOCOL
from dlag_node.wire.schema import pack, unpack

__all__ = [
    "PROTOCOL",
    "Abort",
    "Delta",
    "Done",
    "Frame",
    "Hello",
    "Need",
    "Refuse",
    "RoundFrame",
    "Skip",
    "Welcome",
    "Who",
    "pack",
    "unpack",
]
