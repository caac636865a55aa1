"""The result of a run in numbers, computed from its records and its trajectory alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dlag_lab.result import Floats, Records, RunResult, Trajectory

# of run.json, repeated in the summary so that it can be read on its own
_ASKED = ("preset", "parameters", "topology", "weights", "data", "shards", "seed", "target", "mode")
# of an earlier summary: what no record can tell again
_CARRIED = (
    "seconds", "bytes_control", "theta_sha256", "startup", "memory", "restarts", "network", "wire",
    "ended",
)  # fmt: skip


def summarise(
    run: Mapping[str, Any],
    records: Records,
    trajectory: Trajectory,
    *,
    seconds: float | None = None,
    bytes_control: int | None = None,
    theta_sha256: str | None = None,
    startup: Mapping[str, Any] | None = None,
    memory: Mapping[str, Any] | None = None,
    restarts: int | None = None,
    network: Mapping[str, Any] | None = None,
    wire: Mapping[str, Any] | None = None,
    ended: str | None = None,
) -> dict[str, Any]:
    """The fields of summary.json.

    A message is one vector over one directed edge. One that was skipped (`deltas_skipped`) is a
    token in its place, or nothing at all: `tokens_sent`, `quiet`. `overdue` are promised silences
    that the lazy condition did not allow, `slack_ratio` says by how much it held for all workers
    together. The `_to_target` fields count up to and including the first round whose suboptimality
    is at most the target; they are null when there is none. `bytes_sent` is all that was handed to
    the sockets of the mesh: `bytes_frames`, the deltas and tokens of the rounds, and
    `bytes_control`, which opens, repairs and ends links. `wire` is what these came to outside.
    `seconds` is the wall time of the rounds, without the start; of a run that was resumed, since
    then. `seconds_to_target` is the part of it up to the round that met the target. `ended` says
    why there was no further round: "target", "tol", "max-seconds", "asked" or "rounds". `restarts`
    counts processes of nodes that were killed and started again. `network` is what the kernel
    counted on the interfaces of the mesh, headers and opening included, where nodes had their own.
    `wire` is what it counted of any mesh (`dlag_lab.counted`): by those interfaces, or by sockets.
    """
    target = run.get("target")
    to_target = trajectory.rounds_to(None if target is None else float(target))
    rounds, nodes = records.shape
    summary = {
        "method": run["method"],
        "nodes": nodes,
        "edges": len(run["edges"]),
        "rounds": rounds,
        "exchanges": int(np.strings.str_len(records.exchanges).max(axis=1).sum()),
        "deltas_sent": int(records.deltas.sum()),
        "deltas_skipped": int(records.skipped.sum()),
        "tokens_sent": int(records.skips.sum()),
        "quiet": int(records.quiet.sum()),
        "overdue": int(records.overdue.sum()),
        "slack_ratio": slack_ratio(records),
        "bytes_payload": int(records.payload_bytes.sum()),
        "bytes_frames": int(records.sent_bytes.sum()),
        "bytes_control": bytes_control,
        "bytes_sent": int(records.sent_bytes.sum()) + (bytes_control or 0),
        "sample_gradients": int(records.gradients.sum()),
        "suboptimality": float(trajectory.suboptimality[-1]),
        "consensus_error": float(trajectory.consensus_error[-1]),
        "rounds_to_target": to_target,
        "deltas_to_target": _up_to(records.deltas, to_target),
        "gradients_to_target": _up_to(records.gradients, to_target),
        "bytes_to_target": _up_to(records.sent_bytes, to_target),
        "seconds": seconds,
        "seconds_to_target": seconds_up_to(records, to_target, seconds),
        "seconds_by_kind": seconds_by_kind(run, records, seconds),
        "theta_sha256": theta_sha256,
        "ended": ended,
    }
    summary |= {field: run[field] for field in _ASKED if field in run}
    if startup is not None:
        summary["startup"] = dict(startup)
    if restarts is not None:
        summary["restarts"] = restarts
    if memory is not None:
        summary["memory"] = dict(memory)
    if network is not None:
        summary["network"] = dict(network)
    if wire is not None:
        summary["wire"] = dict(wire)
    return summary


def refreshed(result: RunResult) -> dict[str, Any]:
    """The summary computed again from the folder; what no record can tell is taken from the old."""
    carried = {field: result.summary.get(field) for field in _CARRIED}
    return summarise(result.run, result.records, result.trajectory, **carried)


def on_the_wire(summary: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Packets and bytes as they were counted outside of the processes; None: nobody did."""
    return summary.get("wire") or summary.get("network")


def slack_ratio(records: Records) -> float | None:
    """How much of the paper's lazy condition the workers used up together, at worst.

        max_k  sum_i gap_i^k / sum_i B_i^k

    Lemma 2 uses the condition through these sums alone: while this is at most 1, Theorems 1, 2 and
    4 hold as they stand, whoever was overdue. Round 0, in which everybody tells its theta and B is
    0, does not count. Null where a worker's condition is not known, or is not the paper's.
    """
    gaps, bounds = records.gap.sum(axis=1)[1:], records.bound.sum(axis=1)[1:]
    known = ~np.isnan(gaps + bounds) & ((gaps > 0) | (bounds > 0))
    if not known.any():
        return None
    with np.errstate(divide="ignore"):
        return float((gaps[known] / bounds[known]).max())


def theta_sha256(thetas: Sequence[Floats]) -> str:
    """SHA-256 over the nodes' final theta in id order, as little-endian float64."""
    digest = hashlib.sha256()
    for theta in thetas:
        digest.update(np.ascontiguousarray(theta, dtype="<f8").tobytes())
    return digest.hexdigest()


def seconds_up_to(records: Records, rounds: int | None, seconds: float | None) -> float | None:
    """The wall time of the first `rounds` rounds, by their share of computing and waiting.

    A record says how long a round took its worker, not when it ended. Null where the target was
    not met, or where the records hold no times.
    """
    spent = (records.compute + records.wait).sum(axis=1)
    if rounds is None or seconds is None or not spent.sum() > 0:
        return None
    return seconds * float(spent[:rounds].sum() / spent.sum())


def seconds_by_kind(
    run: Mapping[str, Any], records: Records, seconds: float | None
) -> dict[str, float] | None:
    """Where the wall time of the rounds went; null when the records hold no times.

    On a mesh, the mean over the nodes, which work side by side. In the simulator, the sum: one
    process does the work of all. What is neither computing nor waiting is sending and the rest.
    """
    compute, wait = float(records.compute.sum()), float(records.wait.sum())
    if not compute + wait > 0:
        return None
    if run.get("mode") != "simulate":
        compute, wait = compute / records.shape[1], wait / records.shape[1]
    kinds = {"compute": compute, "wait": wait}
    if seconds is not None:
        kinds["send_and_rest"] = max(0.0, seconds - compute - wait)
    return kinds


def bytes_always_sending(records: Records) -> tuple[int, int]:
    """Payload and whole frames, had every message been sent.

    A delta's frame is measured where a worker sent no token in a round; should there be no such
    round, it is a payload in a token.
    """
    deltas, skipped = int(records.deltas.sum()), int(records.skipped.sum())
    payload, frames = int(records.payload_bytes.sum()), int(records.sent_bytes.sum())
    always = payload + round(skipped * payload / max(1, deltas))
    alone = (records.skips == 0) & (records.deltas > 0)
    if alone.any():
        frame = float(records.sent_bytes[alone].sum() / records.deltas[alone].sum())
        return always, round((deltas + skipped) * frame)
    around = (frames - payload) / max(1, deltas + int(records.skips.sum()))
    return always, always + round((deltas + skipped) * around)


def _up_to(counts: np.ndarray[Any, np.dtype[np.int64]], rounds: int | None) -> int | None:
    return None if rounds is None else int(counts[:rounds].sum())
