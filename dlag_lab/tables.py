"""Tables on a console, as the house draws them."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

_NO_LIMIT = 10_000  # characters


def plain_table(first: str, *others: str) -> Table:
    """The house's table: a line below the head, numbers to the right."""
    head = any((first, *others))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=True, show_edge=False, show_header=head)
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def print_whole(console: Console, table: Table) -> None:
    """Print a table without cutting a cell: a terminal too narrow for it breaks its lines."""
    needed = Console(width=_NO_LIMIT).measure(table).maximum
    narrow = console.width
    console.width = max(narrow, needed)
    console.print(table)
    console.width = narrow
