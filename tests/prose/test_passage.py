"""Passages: sentences without markup, and their words."""

import pytest

from tests.prose.passage import Kind, Passage, word_count


def sentences(text: str) -> list[str]:
    return list(Passage("page.md", 1, Kind.DOCS, text).sentences())


def test_a_sentence_ends_with_a_full_stop_before_a_capital_letter() -> None:
    assert sentences("One node fits. Two do not.\nWhy? See v1.34 for it. kube-scheduler knows.") == [
        "One node fits.",
        "Two do not.",
        "Why?",
        "See v1.34 for it.",
        "kube-scheduler knows.",
    ]


def test_an_abbreviation_ends_no_sentence() -> None:
    assert sentences("Some pods, e.g. Jobs, wait.") == ["Some pods, e.g. Jobs, wait."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Run `make test -k x` now", "Run CODE now", id="code"),
        pytest.param("See [the long page](a.md#b).", "See the long page.", id="link"),
        pytest.param("At https://example.org/a.b here", "At URL here", id="address"),
    ],
)
def test_markup_is_left_out(text: str, expected: str) -> None:
    assert sentences(text) == [expected]


def test_code_is_one_word() -> None:
    assert word_count("CODE has 5,000 node's cells: kube-scheduler too") == 8
