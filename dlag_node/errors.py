"""Everything that can go wrong, as one tree.

DlagError
  ConfigError                 the operator's to fix; raised before any socket opens
  ProtocolError
    LocalProtocolError        we broke the rules: a bug here
    RemoteProtocolError       the peer broke them: names the peer, frame and expectation
  PeerRefused                 a peer does not take us for a member of its run, and says why
  NotNeeded                   every place in the run is taken: there are more nodes than it has
  NeighborTimeout             node, neighbor, exchange, seconds waited
  ConvergenceError            the numbers went bad: non-finite iterate, oracle out of budget
  StorageError                a file of ours cannot be written, or read again
  CheckpointRefused           a checkpoint is torn, or not of this node in this run
  ProcessDied                 a process was killed, or ended in a way that nobody foresaw
  RunAborted                  somebody else in the run failed, and said why

Each can be raised again from its text alone, by who started the process that it ended
(`outcome.py`).
"""

from __future__ import annotations

from typing import ClassVar


class DlagError(Exception):
    """Root of the tree: catch this one at the top of a process."""

    exit_code: ClassVar[int] = 1  # of a process that ends by it
    node: int | None = None  # the node that it ends, once that has an id


class ConfigError(DlagError):
    """A setting is wrong; the message names the value found and what was expected."""

    exit_code = 2


class ProtocolError(DlagError):
    """Somebody broke the rules of the wire."""


class LocalProtocolError(ProtocolError):
    """We broke the rules ourselves: a bug in this program."""


class RemoteProtocolError(ProtocolError):
    """A peer broke the rules; the message names the peer, the frame and what was expected."""


class PeerRefused(DlagError):
    """A neighbor or the coordinator does not take us for a member of its run."""


class NotNeeded(DlagError):
    """The run has all the nodes that it needs; a surplus one ends, and that is no failure."""


class NeighborTimeout(DlagError):
    """A neighbor kept us waiting at the barrier for longer than the deadline."""


class ConvergenceError(DlagError):
    """The numbers went bad; the message says what to change."""


class StorageError(DlagError):
    """A record or a checkpoint cannot be written, or what was written is damaged."""


class CheckpointRefused(DlagError):
    """A checkpoint is torn, or belongs to another run, node or version; the message says which."""


class ProcessDied(DlagError):
    """A process of the run ended by a signal or a fault of ours, and by no other of these."""


class RunAborted(DlagError):
    """Another process of this run gave up, and its reason came to us."""
