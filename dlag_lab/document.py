"""The part of a document that a command fills: what stands between two markers, nothing else."""

from __future__ import annotations

from pathlib import Path

from dlag_node.errors import ConfigError


def markers(name: str) -> tuple[str, str]:
    """The lines before and after the part called `name`; markdown does not show them."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def check_document(path: Path, name: str) -> None:
    """ConfigError unless the document has that part; to be asked before hours of work."""
    _split(path, name)


def fill(path: Path, name: str, text: str) -> None:
    """Put `text` between the markers of `name`, in the place of what stood there."""
    before, after = _split(path, name)
    begin, end = markers(name)
    whole = f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}"
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(whole, encoding="utf-8")
    temporary.replace(path)


def _split(path: Path, name: str) -> tuple[str, str]:
    """What stands before the first marker and after the second."""
    begin, end = markers(name)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"cannot read {path}: {exc}") from exc
    for marker in (begin, end):
        if (found := text.count(marker)) != 1:
            raise ConfigError(f"{path} holds {found} lines {marker!r}: expected 1")
    before, rest = text.split(begin)
    if end not in rest:
        raise ConfigError(f"{path}: {end!r} stands before {begin!r}")
    return before, rest.split(end)[1]
