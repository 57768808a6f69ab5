"""What the prose linter finds: sentences over 35 words, and words on the list."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from tests.prose.files import area
from tests.prose.measure import TOO_LONG
from tests.prose.passage import Passage, word_count
from tests.prose.word_list import avoided_words


class Rule(StrEnum):
    """The rules, as the allowance names them."""

    LENGTH = "length"
    WORDS = "words"


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken rule with its place."""

    path: str
    line: int
    rule: Rule
    message: str

    @property
    def area(self) -> str:
        """The area whose allowance counts it."""
        return area(self.path)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def findings(passages: Iterable[Passage]) -> Iterator[Finding]:
    """Yield the findings, in the order of the passages."""
    for each in passages:
        for sentence in each.sentences():
            if (count := word_count(sentence)) > TOO_LONG:
                yield Finding(each.path, each.line, Rule.LENGTH, f"a sentence of {count} words: {sentence}")
        for word, instead in avoided_words(each.text):
            yield Finding(each.path, each.line, Rule.WORDS, f'"{word}": {instead}')
