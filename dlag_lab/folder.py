"""The run folder: where each file of a run lies, how it is written and read back.

run.json               what was asked for, with the effective values
nodes/node-000.jsonl   one Record a line
nodes/node-000.theta   one row of `dim` little-endian float64 a round, appended
nodes/node-000.model.json   the model that the node ended with
nodes/node-000.wire.json   packets and bytes that its kernel counted
nodes/node-000.faults.jsonl   what the node warned of, if anything
trajectory.jsonl       one line a round, measured by the laboratory
summary.json           the result
failure.json           why there is none: the numbers went bad
report.txt, figures/   what people look at
logs/, state/          of the processes of a mesh: what they said, node-000.ending how it failed, if
                       it did; their checkpoints, if asked for
keys/                  theirs too, while the run lasts or can be resumed; for its owner alone
running                while a process is at it
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from dlag_lab.result import CONDITION, COUNTS, MEASURES, Floats, Records, RunResult, Trajectory
from dlag_node.errors import ConfigError
from dlag_node.rounds.record import QUIET, SENT, SKIPPED, Record
from dlag_node.wire.watching import Fault

_RUN_FIELDS = ("method", "preset", "parameters", "topology", "nodes", "edges")

# everything that a run may leave behind; run.json goes last, it is what makes the folder a run's
_CONTENTS = (
    "nodes/node-*.jsonl",
    "nodes/node-*.theta",
    "nodes/node-*.model.json",
    "nodes/node-*.wire.json",
    "nodes/.node-*.tmp",
    "figures/*.png",
    "figures/*.svg",
    "logs/*.log",
    "logs/*.ending",
    "logs/.*.tmp",
    "keys/*",
    "state/node-*/*",
    "state/node-*/.*.tmp",
    "trajectory.jsonl",
    "report.txt",
    "summary.json",
    "failure.json",
    "running",
    "run.json",
)

T = TypeVar("T")


class RunFolder:
    """One run on disk."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    @classmethod
    def create(cls, path: Path | str, *, force: bool) -> RunFolder:
        """An empty run folder at `path`; `force` clears an earlier run's files, and only those."""
        folder = cls(path)
        if folder.path.exists() and not folder.path.is_dir():
            raise ConfigError(f"{path} is a file: expected a folder, or a name not yet taken")
        # hidden files are nobody's result: what keeps an empty folder in git, for one
        if folder.path.is_dir() and any(folder.path.glob("[!.]*")):
            folder._clear(force=force)
        folder.record_path(0).parent.mkdir(parents=True, exist_ok=True)
        return folder

    def record_path(self, node: int) -> Path:
        """The records of one node."""
        return self.path / "nodes" / f"node-{node:03d}.jsonl"

    def theta_path(self, node: int) -> Path:
        """The theta snapshots of one node."""
        return self.path / "nodes" / f"node-{node:03d}.theta"

    def state_path(self, node: int) -> Path:
        """The checkpoints of one node."""
        return self.path / "state" / f"node-{node:03d}"

    @property
    def keys_path(self) -> Path:
        """The folder of the keys of a mesh, while there is one."""
        return self.path / "keys"

    @property
    def run_path(self) -> Path:
        """What was asked for."""
        return self.path / "run.json"

    @property
    def trajectory_path(self) -> Path:
        """What the laboratory measured after each round."""
        return self.path / "trajectory.jsonl"

    @property
    def summary_path(self) -> Path:
        """The result in numbers."""
        return self.path / "summary.json"

    @property
    def failure_path(self) -> Path:
        """Why there is no result, where the run would fail the same way again."""
        return self.path / "failure.json"

    @property
    def report_path(self) -> Path:
        """The result in words."""
        return self.path / "report.txt"

    @property
    def figures_path(self) -> Path:
        """The folder of the pictures."""
        return self.path / "figures"

    def write_run(self, run: Mapping[str, Any]) -> None:
        """Say what was asked for, before the first round."""
        write_json(self.run_path, run)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Say how it went, after the last round."""
        write_json(self.summary_path, summary)

    def trajectory_writer(self) -> TrajectoryWriter:
        """Appends to the trajectory, a line a round."""
        return TrajectoryWriter(self.trajectory_path)

    def thetas(self, node: int, dim: int) -> Floats:
        """One node's theta after each round, [rounds x dim]; a torn last row is left out."""
        raw = _read_bytes(self.theta_path(node))
        rounds = len(raw) // (8 * dim)
        values = np.frombuffer(raw, dtype="<f8", count=rounds * dim)
        return values.reshape(rounds, dim).astype(np.float64)

    def load(self) -> RunResult:
        """Read the run back, cut to the last round that every node and the laboratory completed.

        An interrupted run has a torn or unequal end, and that is no damage; anything else that
        does not fit is a ConfigError that names the file and the line.
        """
        run = read_object(self.run_path)
        try:
            _check_run(run)
        except ValueError as exc:
            raise ConfigError(f"{self.run_path}: {exc}") from exc
        measured = _read_lines(self.trajectory_path, _measurement)
        per_node = [self.records(i) for i in range(run["nodes"])]
        rounds = min(len(measured), *map(len, per_node))
        if rounds == 0:
            raise ConfigError(f"{self.path}: no round that every node completed")
        suboptimality, consensus_error = np.array(measured[:rounds], dtype=np.float64).T
        return RunResult(
            run=run,
            records=Records.of([each[:rounds] for each in per_node]),
            trajectory=Trajectory(suboptimality, consensus_error),
            summary=read_object(self.summary_path) if self.summary_path.exists() else {},
            path=self.path,
        )

    def records(self, node: int) -> list[Record]:
        """What one node recorded, a record a round; a torn last line is left out."""

        def parse(line: str, k: int) -> Record:
            record = Record.from_json(line)
            if (record.node, record.k) != (node, k):
                raise ValueError(
                    f"node {record.node}, round {record.k}: expected node {node}, round {k}"
                )
            _check_types(record)
            return record

        return _read_lines(self.record_path(node), parse)

    def faults(self, node: int) -> list[Fault]:
        """What one node warned of while it ran."""
        path = self.path / "nodes" / f"node-{node:03d}.faults.jsonl"
        if not path.exists():
            return []
        return _read_lines(path, lambda line, _: Fault(**json.loads(line)))

    def _clear(self, *, force: bool) -> None:
        if not self.run_path.is_file():
            raise ConfigError(
                f"{self.path} is not empty and holds no run.json, so it is not a run folder "
                "and --force does not clear it: choose another folder"
            )
        if not force:
            raise ConfigError(f"{self.path} already holds a run: pass --force to replace it")
        for pattern in _CONTENTS:
            for file in self.path.glob(pattern):
                file.unlink()


class TrajectoryWriter:
    """Appends what was measured after each round; a context manager."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def write(self, k: int, *, suboptimality: float, consensus_error: float) -> None:
        """Append round k. A number that is not finite becomes null: NaN is no JSON."""
        line = {"k": k, "suboptimality": suboptimality, "consensus_error": consensus_error}
        self._file.write(json.dumps(_plain(line), separators=(",", ":")) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Nothing follows."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write all of it or nothing: a reader never meets half a file."""
    text = json.dumps(_plain(value), indent=2, allow_nan=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # a device, a pipe: to be written to, not replaced
        path.write_text(text, encoding="utf-8")
        return
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _plain(value: Any) -> Any:
    """The value in JSON's own types: numpy's become Python's, what is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Iterable):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as exc:
        raise ConfigError(f"{path} is missing: not a run folder, or not a complete one") from exc
    except OSError as exc:
        raise ConfigError(f"{path} cannot be read: {exc.strerror}") from exc


def read_object(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object; anything else is a ConfigError that names the file."""
    try:
        value = json.loads(_read_bytes(path))
    except ValueError as exc:
        raise ConfigError(f"{path}: {exc}") from exc
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: expected a JSON object")
    return value


def _read_lines(path: Path, parse: Callable[[str, int], T]) -> list[T]:
    """One value a line, the k-th line being round k; an unfinished last line is left out."""
    *lines, rest = _read_bytes(path).decode("utf-8", errors="replace").split("\n")
    values = []
    for k, line in enumerate([*lines, rest] if rest else lines):
        try:
            values.append(parse(line, k))
        except (ValueError, TypeError, KeyError) as exc:
            if k == len(lines):  # no line's end: the writer was stopped in the middle of it
                break
            raise ConfigError(f"{path}, line {k + 1}: {exc}") from exc
    return values


def _measurement(line: str, k: int) -> tuple[float, float]:
    value = json.loads(line)
    if value["k"] != k:
        raise ValueError(f"round {value['k']}: expected round {k}")
    suboptimality, consensus_error = (
        math.nan if value[field] is None else float(value[field])
        for field in ("suboptimality", "consensus_error")
    )
    return suboptimality, consensus_error


def _check_run(run: Mapping[str, Any]) -> None:
    for field in _RUN_FIELDS:
        if field not in run:
            raise ValueError(f"no field {field!r}")
    nodes, edges = run["nodes"], run["edges"]
    if type(nodes) is not int or nodes < 1:
        raise ValueError(f"nodes = {nodes!r}: expected a count of at least 1")
    for edge in edges if type(edges) is list else [edges]:
        if type(edge) is not list or len(edge) != 2 or not set(edge) <= set(range(nodes)):
            raise ValueError(f"edge {edge!r}: expected two of the nodes 0 to {nodes - 1}")
    if not isinstance(run["parameters"], dict):
        raise ValueError(f"parameters = {run['parameters']!r}: expected an object")
    if not isinstance(run.get("target"), int | float | None):
        raise ValueError(f"target = {run['target']!r}: expected a number or null")


def _check_types(record: Record) -> None:
    for field in COUNTS:
        count = getattr(record, field)
        if type(count) is not int or count < 0:
            raise ValueError(f"{field} = {count!r}: expected a count")
    for field in MEASURES:
        if type(getattr(record, field)) not in (int, float):
            raise ValueError(f"{field} = {getattr(record, field)!r}: expected a number")
    for field in CONDITION:
        if type(getattr(record, field)) not in (int, float, type(None)):
            raise ValueError(f"{field} = {getattr(record, field)!r}: expected a number, or nothing")
    letters = (SENT, SKIPPED, QUIET)
    if type(record.exchanges) is not str or set(record.exchanges) - {*letters}:
        raise ValueError(f"exchanges = {record.exchanges!r}: expected letters {', '.join(letters)}")
