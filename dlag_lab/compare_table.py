"""The result of a comparison in numbers: a row a run for machines, a row a method for people."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median

from rich.table import Table

from dlag_lab.compare import Outcome, meanings
from dlag_lab.outlook import outlook
from dlag_lab.summary import on_the_wire, seconds_up_to
from dlag_lab.tables import plain_table
from dlag_lab.theory import bound_for
from dlag_lab.units import count, ratio, short, small

_FLOAT_BYTES = 8  # a vector travels as float64


@dataclass(frozen=True, slots=True)
class Row:
    """One run as compare.csv has it; what a run has not is empty.

    `_to_target` counts up to and including the round that met the target, or over the whole run
    where none was asked for. The others are of the whole run, which goes on for a block or two.
    """

    method: str
    seed: int
    status: str  # reached, done (no target), not reached, failed
    rounds_to_target: int | None = None
    deltas_to_target: int | None = None
    tokens_to_target: int | None = None
    quiet_to_target: int | None = None
    floats_to_target: int | None = None
    payload_to_target: int | None = None
    bytes_to_target: int | None = None
    gradients_to_target: int | None = None
    bound_to_target: float | None = None  # Theorem 3 for that many rounds; dlag and mdlag
    seconds_to_target: float | None = None  # of real processes alone
    rounds: int | None = None
    exchanges: int | None = None
    deltas_sent: int | None = None
    deltas_skipped: int | None = None  # a token in their place, or nothing
    tokens_sent: int | None = None
    quiet: int | None = None
    overdue: int | None = None
    slack_ratio: float | None = None
    packets: int | None = None  # on the wire, where somebody counted them
    bytes_wire: int | None = None
    floats_sent: int | None = None
    bytes_payload: int | None = None
    bytes_frames: int | None = None
    bytes_control: int | None = None
    bytes_sent: int | None = None
    sample_gradients: int | None = None
    suboptimality: float | None = None
    consensus_error: float | None = None
    seconds: float | None = None
    theta_sha256: str | None = None
    failure: str | None = None  # what went wrong, or where a run without its target was heading
    folder: str = ""

    @property
    def arrived(self) -> bool:
        """Whether it met its target, or had none to meet."""
        return self.rounds_to_target is not None


@dataclass(frozen=True, slots=True)
class Measure:
    """One column of the table for people."""

    title: str
    of: Callable[[Row], float | None]
    whole: Callable[[float], str] = lambda value: count(round(value))
    brief: Callable[[float], str] = short


MEASURES = (
    Measure("rounds", lambda row: row.rounds_to_target),
    Measure("messages", lambda row: row.deltas_to_target),
    Measure("payload bytes", lambda row: row.payload_to_target),
    Measure("frame bytes", lambda row: row.bytes_to_target),
    Measure("sample gradients", lambda row: row.gradients_to_target),
)
PACKETS = Measure("packets", lambda row: row.packets if row.arrived else None)
WIRE_BYTES = Measure("wire bytes", lambda row: row.bytes_wire if row.arrived else None)
_SECONDS = Measure("seconds", lambda row: row.seconds_to_target, *2 * ["{:.3g}".format])
_BOUND = Measure("by Theorem 3", lambda row: row.bound_to_target)
_NOTHING = "-"


def row_of(outcome: Outcome) -> Row:
    """The numbers of one run, from its summary and its records."""
    head = (outcome.method, outcome.seed)
    result = outcome.result
    if result is None:
        return Row(*head, "failed", failure=outcome.failure, folder=str(outcome.folder))
    summary = result.summary
    whole = {
        name: summary[name]
        for name in (each.name for each in fields(Row))
        if name in summary and name not in ("method", "seed") and "_to_target" not in name
    }
    whole |= {
        "floats_sent": summary["bytes_payload"] // _FLOAT_BYTES,
        "folder": str(outcome.folder),
    }
    if wire := on_the_wire(summary):
        whole |= {"packets": wire["packets"], "bytes_wire": wire["bytes"]}
    if not outcome.reached:
        return Row(*head, "not reached", failure=outlook(result), **whole)
    rounds = result.rounds if result.target is None else result.trajectory.rounds_to(result.target)
    assert rounds is not None
    records = result.records
    payload = int(records.payload_bytes[:rounds].sum())
    on_mesh = result.run.get("mode") == "mesh"  # a simulator's seconds are of all workers in turn
    return Row(
        *head,
        "done" if result.target is None else "reached",
        rounds_to_target=rounds,
        deltas_to_target=int(records.deltas[:rounds].sum()),
        tokens_to_target=int(records.skips[:rounds].sum()),
        quiet_to_target=int(records.quiet[:rounds].sum()),
        floats_to_target=payload // _FLOAT_BYTES,
        payload_to_target=payload,
        bytes_to_target=int(records.sent_bytes[:rounds].sum()),
        gradients_to_target=int(records.gradients[:rounds].sum()),
        bound_to_target=bound_for(result.run, rounds),
        seconds_to_target=(seconds_up_to(records, rounds, summary["seconds"]) if on_mesh else None),
        **whole,
    )


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """One line a run, all numbers as they are."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [each.name for each in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def console_table(rows: Sequence[Row], base: str, called: Mapping[str, str]) -> Table:
    """A line a method: the median, below it the range over the seeds, below it the ratio."""
    head, *body = _cells(rows, base, called, "\n")
    table = plain_table(*head)
    table.show_lines = True
    for line in body:
        table.add_row(*line)
    return table


def markdown(rows: Sequence[Row], base: str, called: Mapping[str, str], heading: str) -> str:
    """The same table for a document."""
    head, *body = _cells(rows, base, called, "<br>")
    lines = [heading, "", *markdown_table(head, body, numbers=True)]
    said = notes(rows, called)
    lines += ["", *(f"- {note}" for note in said)] if said else []
    return "\n".join(lines) + "\n"


def markdown_table(
    head: Sequence[str], body: Sequence[Sequence[str]], *, numbers: bool = False
) -> list[str]:
    """The lines of a table; `numbers` in all columns but the first stand to the right."""
    rule = ["---", *["---:" if numbers else "---"] * (len(head) - 1)]
    return ["| " + " | ".join(cells) + " |" for cells in (head, rule, *body)]


def notes(rows: Sequence[Row], called: Mapping[str, str]) -> list[str]:
    """What the table's names and dashes mean."""
    said = meanings(called)
    if any(row.packets is not None for row in rows):
        said.append(
            "packets and wire bytes are what the kernel counted in the whole run, headers and "
            "opening included; payload and frame bytes are the ledger's, up to the target"
        )
    else:
        said.append("frame bytes are the ledger's; nobody counted on the wire")
    for row in rows:
        name = f"{row.method}, seed {row.seed}"
        if row.status == "failed":
            said.append(f"{name} failed: {row.failure}")
        elif row.status == "not reached":
            said.append(
                f"{name} did not reach the target: {small(row.suboptimality)} after "
                f"{count(row.rounds)} rounds" + (f"; {row.failure}" if row.failure else "")
            )
    return said


def _cells(
    rows: Sequence[Row], base: str, called: Mapping[str, str], newline: str
) -> list[list[str]]:
    measures = list(MEASURES)
    if any(row.packets is not None for row in rows):
        measures[2:2] = [PACKETS, WIRE_BYTES]
    if any(row.bound_to_target is not None for row in rows):
        measures.insert(2, _BOUND)
    if any(row.seconds_to_target is not None for row in rows):
        measures.append(_SECONDS)
    methods = list(dict.fromkeys(row.method for row in rows))
    lines = [["method", *(measure.title for measure in measures)]]
    against = [row for row in rows if row.method == base]
    for method in methods:
        own = [row for row in rows if row.method == method]
        name = called[method] + _who_arrived(own, newline)
        cells = [_cell(measure, own, against, newline) for measure in measures]
        lines.append([name, *cells])
    return lines


def _who_arrived(own: Sequence[Row], newline: str) -> str:
    """Nothing to say when every seed arrived."""
    arrived = sum(row.arrived for row in own)
    if arrived == len(own):
        return ""
    if len(own) == 1:
        return f"{newline}{own[0].status}"
    return f"{newline}{arrived} of {len(own)} seeds arrived"


def _cell(measure: Measure, own: Sequence[Row], base: Sequence[Row], newline: str) -> str:
    values = _values(measure, own)
    if not values:
        return _NOTHING
    parts = [measure.whole(median(values))]
    if len(own) > 1:
        parts.append(f"{measure.brief(min(values))}..{measure.brief(max(values))}")
    # the bound has no ratio of its own: it stands beside the messages
    others = [] if measure is _BOUND else _values(measure, base)
    if others and median(others) > 0:
        parts.append(f"x {ratio(median(values) / median(others))}")
    return newline.join(parts)


def _values(measure: Measure, rows: Sequence[Row]) -> list[float]:
    return [value for row in rows if (value := measure.of(row)) is not None]
