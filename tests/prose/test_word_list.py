"""The list of words to avoid."""

import pytest

from tests.prose.word_list import avoided_words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("The mirror, whoever reads it", "whoever", id="no-subject"),
        pytest.param("Connections that stand.", "that stand", id="archaic"),
        pytest.param("Each question costs 1 ms", "Each question", id="request"),
        pytest.param("It caches the answer", "the answer", id="response"),
        pytest.param("Return what events invalidated", "what", id="clause-for-a-noun"),
        pytest.param("The service tells of itself", "tells of", id="personified"),
        pytest.param("A node without\nroom", "without room", id="over-two-lines"),
    ],
)
def test_a_listed_word_is_found_with_its_words_around_it(text: str, expected: str) -> None:
    assert [found for found, _ in avoided_words(text)] == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "`answer: decide` is set",
        "See [questions](question.md#question) `whoever`",
        "a what-if request",
        "It stands for a pod",
    ],
)
def test_code_addresses_and_standard_terms_are_not_found(text: str) -> None:
    assert [found for found, _ in avoided_words(text.replace("questions", "requests"))] == []
