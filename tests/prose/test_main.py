"""The prose linter as `make check` runs it."""

from pathlib import Path

import pytest

from tests.prose import __main__ as linter
from tests.prose import allowance

LONG = " ".join(["word"] * 36) + "."


@pytest.fixture(autouse=True)
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a checkout with a page of two findings, which are allowed."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(f"Whoever reads it.\n\n{LONG}\n")
    monkeypatch.setattr(linter, "ROOT", tmp_path)
    monkeypatch.setattr(allowance, "PATH", tmp_path / "allowance.json")
    allowance.write({"docs/page.md": {"length": 1, "words": 1}})
    return tmp_path


def test_a_tree_within_its_allowance_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert linter.main([]) == 0
    assert capsys.readouterr().out == ""


def test_one_more_finding_fails_and_is_listed_with_its_place(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "docs" / "page.md").write_text(f"{LONG}\n\n{LONG}\n")
    assert linter.main([]) == 1
    assert "docs/page.md:3: a sentence of 36 words: word" in capsys.readouterr().out


def test_writing_lowers_the_allowance(tree: Path) -> None:
    (tree / "docs" / "page.md").write_text("Fine.\n")
    assert linter.main(["--write"]) == 0
    assert allowance.read() == {}


def test_with_paths_every_finding_in_them_is_printed(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert linter.main([str(tree / "docs")]) == 0
    assert capsys.readouterr().out.splitlines()[0] == 'docs/page.md:1: "Whoever": name the subject'
