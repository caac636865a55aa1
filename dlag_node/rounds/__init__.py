"""Barrier, round engine, ledger: what happens between a method and the wire."""

from dlag_node.rounds.barrier import Barrier
from dlag_node.rounds.engine import Engine, Outgoing, RoundEnded
from dlag_node.rounds.record import Record

__all__ = ["Barrier", "Engine", "Outgoing", "Record", "RoundEnded"]
