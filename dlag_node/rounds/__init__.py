"""Barrier, round engine, ledger: what happens between a method and the wire."""

from dlag_node.rounds.barrier import Barrier
from dlag_node.rounds.engine import Advance, Engine, Outgoing, RoundEnded, Silence
from dlag_node.rounds.record import Record

__all__ = ["Advance", "Barrier", "Engine", "Outgoing", "Record", "RoundEnded", "Silence"]
