"""Samples from files, what a node says of them, and what all nodes do alike to theirs."""

from dlag_node.data.agreement import Agreement, agree
from dlag_node.data.held import MIN_SAMPLES, HeldData, HeldFile
from dlag_node.data.reading import read_table
from dlag_node.data.summary import SCALES, Spread, Summary, check_scale, summarise
from dlag_node.data.table import Table

__all__ = [
    "MIN_SAMPLES",
    "SCALES",
    "Agreement",
    "HeldData",
    "HeldFile",
    "Spread",
    "Summary",
    "Table",
    "agree",
    "check_scale",
    "read_table",
    "summarise",
]
