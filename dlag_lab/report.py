"""The result of a run in words and tables."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dlag_lab.folder import RunFolder
from dlag_lab.outlook import outlook
from dlag_lab.result import Floats, Ints, RunResult
from dlag_lab.summary import bytes_always_sending, on_the_wire, refreshed
from dlag_lab.tables import plain_table
from dlag_lab.units import count, fine, seconds, share, size, small, some

_WIDTH = 92  # of the plain text, in characters
_SHOWN = 5  # workers at either end of the list
_ENDED = {
    "target": "it ended because the target was met",
    "tol": "it ended because every theta_i had come to rest, as the workers found out themselves",
    "max-seconds": "it ended because its time was up",
    "asked": "it ended because somebody asked it to stop",
    "rounds": "it ended because all rounds were made",
}
_SLACK = (
    "slack ratio: the two sides of the paper's lazy condition, each summed over all workers,\n"
    " in the worst round; while it is at most 1 the run is one that the paper's theorem is about"
)
_NOT_COUNTED = "not counted"
_KINDS = {
    "compute": "computing",
    "wait": "waiting for neighbors",
    "send_and_rest": "sending and the rest",
}


def render(result: RunResult, figures: Sequence[Path] = ()) -> str:
    """The report as plain text."""
    text = io.StringIO()
    console = Console(
        file=text, width=_WIDTH, force_terminal=False, color_system=None, legacy_windows=False
    )
    print_report(result, console, figures)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def print_report(result: RunResult, console: Console, figures: Sequence[Path] = ()) -> None:
    """The report on a console, in color where it has any."""
    summary = refreshed(result)
    parts: list[RenderableType] = [*_headline(result, summary), Text(), _totals(result, summary)]
    if summary["slack_ratio"] is not None:
        parts.append(_note(_SLACK))
    if (ended := summary["ended"]) is not None:
        parts.append(_note(_ENDED[ended]))
    if expected := outlook(result):
        parts.append(_note(expected))
    if summary["deltas_skipped"]:
        parts += [_heading("What silence saved"), _savings(result, summary)]
        if summary["tokens_sent"]:
            parts.append(_note("A token saves a payload, not a packet: it still crosses the edge."))
        if summary["quiet"]:
            parts.append(_note("Quiet was promised or scheduled: nothing crosses the edge."))
        parts += [_heading("Who spoke most, who least"), _talkers(result)]
    parts += [*_time(summary), *_process_facts(result.run, summary), *_places(result, figures)]
    for part in parts:
        # a line is never broken: paths and hashes are there to be copied
        console.print(part, soft_wrap=isinstance(part, Text))


def write_report(folder: RunFolder, result: RunResult) -> list[Path]:
    """Draw every figure, write report.txt, and say where they all are."""
    from dlag_lab import figures  # brings matplotlib: only when something is drawn

    drawn = {
        "convergence": figures.convergence([(result.method, result)]),
        "mesh": figures.mesh(result),
        "raster": figures.raster(result),
        "time": figures.times(result),
    }
    paths = []
    for name, figure in drawn.items():
        if figure is not None:
            paths += figures.save(figure, folder.figures_path, name)
    folder.report_path.write_text(render(result, paths), encoding="utf-8")
    return [folder.report_path, *paths]


def _headline(result: RunResult, summary: Mapping[str, Any]) -> list[Text]:
    run, counted = result.run, []
    if wire := on_the_wire(summary):
        words = f"{_least(wire)}{count(wire['packets'])} packets, {count(wire['bytes'])} bytes"
        by = f" ({wire['counted_by']})" if wire.get("counted_by") else ""
        counted.append(Text(f"what the kernel counted: {words}{by}", style="bold"))
    samples = None if result.shard_sizes is None else int(result.shard_sizes.sum())
    facts = [
        f"{run['data']} data" if run.get("data") else "",
        f"{count(samples)} samples of dimension {run.get('dim', '-')}" if samples else "",
        f"shards {run['shards']}" if run.get("shards") else "",
        f"{run['problem']}" if run.get("problem") else "",
        f"lambda {run['lam']:g}" if run.get("lam") is not None else "",
        f"seed {run['seed']}" if run.get("seed") is not None else "",
        f"network {run['network']}" if run.get("network") else "",
    ]
    lines = [Text(", ".join(filter(None, facts)))]
    if (replanned := run.get("replanned")) is not None:
        lines.append(
            Text(
                f"without workers {replanned['lost']} of a run of {replanned['rounds_before']} "
                f"rounds: {replanned['samples_lost']} of {replanned['samples_before']} samples are "
                f"lost; {'warm' if replanned['warm'] else 'cold'} start"
            )
        )
    settings = ", ".join(f"{name} {_setting(value)}" for name, value in run["parameters"].items())
    workers = some(result.nodes, "simulated worker" if run.get("mode") == "simulate" else "worker")
    return [
        Text(
            f"{result.method} on {run['topology']}: {workers}, {some(len(result.edges), 'edge')}",
            style="bold",
        ),
        *counted,
        *lines,
        Text(f"preset {run['preset']}: {settings}" if settings else f"preset {run['preset']}"),
    ]


def _totals(result: RunResult, summary: Mapping[str, Any]) -> Table:
    records, reached = result.records, summary["rounds_to_target"]
    columns = ["whole run"]
    if result.target is not None:
        columns.append(f"to {small(result.target)}" + (" (not reached)" if reached is None else ""))
    table = plain_table("", *columns)

    def once(name: str, value: str, until: str = "") -> None:
        table.add_row(name, value, *[until][: len(columns) - 1])

    def row(name: str, counts: Ints) -> None:
        until = "-" if reached is None else count(int(counts[:reached].sum()))
        once(name, count(int(counts.sum())), until)

    row("rounds", np.ones(result.rounds, np.int64))
    row("exchanges", np.strings.str_len(records.exchanges).max(axis=1))
    row("messages sent (deltas over directed edges)", records.deltas)
    row("messages skipped", records.skipped)
    once("  share skipped", share(result.skip_share), _share_until(result, reached))
    row("  tokens sent in their place", records.skips)
    row("  quiet, nothing sent at all", records.quiet)
    for name, value in _condition(result, summary):
        once(name, value)
    packets, wire_bytes = _outside(summary)
    once("packets on the wire, opening included", packets)
    once("bytes on the wire, headers included", wire_bytes)
    row("payload bytes", records.payload_bytes)
    row("frame bytes (deltas and tokens, by the ledger)", records.sent_bytes)
    if summary["bytes_control"] is not None:
        once("control bytes, by the ledger", count(summary["bytes_control"]))
    row("sample gradients", records.gradients)
    if summary["seconds"] is not None and result.run.get("mode") != "simulate":
        until = seconds(summary["seconds_to_target"])
        once("time of the rounds", seconds(summary["seconds"]), until)
    once("suboptimality of the worst worker", small(summary["suboptimality"]))
    once("consensus error", small(summary["consensus_error"]))
    return table


def _share_until(result: RunResult, rounds: int | None) -> str:
    if rounds is None:
        return "-"
    sent, skipped = result.records.deltas[:rounds].sum(), result.records.skipped[:rounds].sum()
    return share(float(skipped / max(1, sent + skipped)))


def _outside(summary: Mapping[str, Any]) -> tuple[str, str]:
    """Packets and bytes on the wire, as far as anybody counted them."""
    wire = on_the_wire(summary)
    if not wire:
        return _NOT_COUNTED, _NOT_COUNTED
    return _least(wire) + count(wire["packets"]), _least(wire) + count(wire["bytes"])


def _least(wire: Mapping[str, Any]) -> str:
    """What to say before counts of connections of which some broke, with what they had counted."""
    return "" if wire.get("complete", True) else "at least "


def _condition(result: RunResult, summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How the lazy condition fared where silence is promised; nothing where it is not."""
    overdue, ratio, rows = summary["overdue"], summary["slack_ratio"], []
    if overdue or ratio is not None or result.run["parameters"].get("promise"):
        of_silent = overdue / max(1, int(result.records.silent.sum()))
        rows.append(("silent exchanges overdue", f"{count(overdue)} ({fine(of_silent)})"))
    if ratio is not None:
        rows.append(("slack ratio", small(ratio)))
    return rows


def _savings(result: RunResult, summary: Mapping[str, Any]) -> Table:
    """What was sent, against the same run with no message skipped."""
    sent, skipped = summary["deltas_sent"], summary["deltas_skipped"]
    payload, frames = bytes_always_sending(result.records)
    table = plain_table("", "as run", "always sending", "saved")
    for name, value, unsaved in (
        ("deltas", sent, sent + skipped),
        ("tokens", summary["tokens_sent"], 0),
        ("quiet", summary["quiet"], 0),
        ("payload bytes", summary["bytes_payload"], payload),
        ("frame bytes, by the ledger", summary["bytes_frames"], frames),
    ):
        saved = share(1 - value / unsaved) if unsaved else ""
        table.add_row(name, count(value), count(unsaved), saved)
    table.add_row("bytes on the wire", _outside(summary)[1], "", "")
    return table


def _talkers(result: RunResult) -> Table:
    """H_i = mu_min / mu_i is the paper's importance factor: the smaller, the lazier."""
    records = result.records
    counts = {"deltas": records.deltas, "tokens": records.skips, "quiet": records.quiet}
    kinds = {name: each.sum(axis=0) for name, each in counts.items() if each.any()}
    sizes, mu = result.shard_sizes, _strong_convexity(result)
    silent = records.skipped.sum(axis=0) / np.maximum(1, sum(kinds.values()))
    order = np.lexsort((np.arange(result.nodes), silent))
    cut = order if result.nodes <= 2 * _SHOWN else np.r_[order[:_SHOWN], order[-_SHOWN:]]
    table = plain_table("worker", "samples", "mu share", "H_i", "neighbors", *kinds, "skipped")
    for place, i in enumerate(cut):
        table.add_row(
            str(i),
            "-" if sizes is None else count(int(sizes[i])),
            "-" if mu is None else f"{100 * mu[i] / mu.sum():.1f} %",
            "-" if mu is None else f"{mu.min() / mu[i]:.2f}",
            str(result.degrees[i]),
            *(count(int(each[i])) for each in kinds.values()),
            share(float(silent[i])),
            end_section=len(cut) < result.nodes and place == _SHOWN - 1,
        )
    return table


def _strong_convexity(result: RunResult) -> Floats | None:
    """mu_i as the run wrote it, or up to a factor: it grows with the samples of the shard."""
    mu = result.run.get("mu")
    if mu is not None and len(mu) == result.nodes:
        return np.asarray(mu, dtype=np.float64)
    sizes = result.shard_sizes
    return None if sizes is None or not sizes.all() else sizes.astype(np.float64)


def _time(summary: Mapping[str, Any]) -> list[RenderableType]:
    wall, kinds = summary["seconds"], summary["seconds_by_kind"]
    if wall is None and kinds is None:
        return []
    parts: list[RenderableType] = [_heading("Where the time went")]
    if wall:
        rate = summary["rounds"] / wall
        parts.append(_note(f"{seconds(wall)} of rounds, {rate:.3g} rounds a second"))
    if kinds is not None:
        whose = "all workers" if summary.get("mode") == "simulate" else "mean of the workers"
        table = plain_table("", whose, "share")
        total = sum(kinds.values())
        for kind, spent in kinds.items():
            table.add_row(_KINDS[kind], seconds(spent), share(spent / total))
        parts.append(table)
    return parts


def _process_facts(run: Mapping[str, Any], summary: Mapping[str, Any]) -> list[RenderableType]:
    lines = []
    if start := summary.get("startup"):
        ready, cpu = seconds(start["seconds_to_ready"]), seconds(start["cpu_seconds_nodes"])
        words = f"all {summary['nodes']} nodes were ready after {ready}, for {cpu} of CPU time"
        lines.append(_note(words))
    if memory := summary.get("memory"):
        mean, most = (size(memory[f"resident_bytes_{which}"]) for which in ("mean", "max"))
        lines.append(_note(f"resident memory of a node: {mean} on average, {most} at most"))
    if summary["theta_sha256"]:
        lines.append(_note(f"final theta, SHA-256: {summary['theta_sha256']}"))
    if blas := run.get("blas"):
        lines.append(_note(f"computed with {', '.join(blas)}"))
    return [_heading("The processes"), *lines] if lines else []


def _places(result: RunResult, figures: Sequence[Path]) -> list[RenderableType]:
    lines = [_note(str(path)) for path in figures]
    if result.path is not None:
        lines.append(_note(f"run folder: {result.path}"))
    return [_heading("Where to look"), *lines] if lines else []


def _heading(words: str) -> Padding:
    return Padding(Text(words, style="bold"), (1, 0, 0, 0))


def _note(words: str) -> Text:
    return Text(f" {words}")


def _setting(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
