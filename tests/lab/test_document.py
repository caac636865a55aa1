"""The part of a document that a command fills, and everything else left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlag_lab.document import check_document, fill, markers
from dlag_node.errors import ConfigError

BEGIN, END = markers("dlag paper heart")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\nafter — it\n", encoding="utf-8")
    return path


def test_only_what_stands_between_the_markers_changes(page: Path) -> None:
    fill(page, "dlag paper heart", "| a |\n| b |\n")
    expected = f"# Title\n\n{BEGIN}\n\n| a |\n| b |\n\n{END}\n\nafter — it\n"
    assert page.read_text(encoding="utf-8") == expected
    fill(page, "dlag paper heart", "| a |\n| b |\n")
    assert page.read_text(encoding="utf-8") == expected
    assert [path.name for path in page.parent.iterdir()] == ["page.md"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nothing here", "holds 0 lines '<!-- dlag paper heart: begin -->': expected 1"),
        (f"{BEGIN}\n{BEGIN}\n{END}", "holds 2 lines"),
        (f"{BEGIN}\n", "holds 0 lines '<!-- dlag paper heart: end -->'"),
        (f"{END}\n{BEGIN}", "stands before"),
    ],
)
def test_a_document_without_its_markers_is_refused(page: Path, text: str, words: str) -> None:
    page.write_text(text)
    for ask in (check_document, lambda path, name: fill(path, name, "new")):
        with pytest.raises(ConfigError, match=words):
            ask(page, "dlag paper heart")
    assert page.read_text() == text


def test_a_missing_document_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*none\.md"):
        check_document(tmp_path / "none.md", "dlag paper heart")
