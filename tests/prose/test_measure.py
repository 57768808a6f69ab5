"""The figures of readability."""

from pathlib import Path

import pytest

from tests.prose.measure import main, readability, table
from tests.prose.passage import Kind, Passage


def passage(text: str, kind: Kind = Kind.DOCS) -> Passage:
    return Passage("page.md", 1, kind, text)


def test_shares_are_of_the_sentences_and_fragments_are_none() -> None:
    found = readability([passage("The pod is bound now. " + "Word " * 26 + "end. Two words."), passage("Ever")])
    assert found is not None
    assert (found.sentences, found.words, found.median_words) == (2, 32, 16.0)
    assert (found.over_25, found.over_35, found.passive) == (0.5, 0.0, 0.5)


def test_listed_words_are_per_thousand() -> None:
    found = readability([passage("Whoever reads it waits here.")])
    assert found is not None
    assert found.listed == pytest.approx(200)


def test_no_sentence_has_no_figures() -> None:
    assert readability([passage("name")]) is None


def test_the_table_has_a_row_for_each_kind_with_sentences() -> None:
    lines = table([passage("One two three."), passage("One two three four.", Kind.COMMENT)]).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["docs", "comments"]


def test_the_pages_of_another_project_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "page.md").write_text("Kubernetes schedules pods. It binds them.")
    main(["--docs", str(tmp_path)])
    assert "| docs | 2 | 3 | 0.0 % |" in capsys.readouterr().out
