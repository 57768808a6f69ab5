"""Words and phrases to avoid, and what to write instead. A finding is a match outside of code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.prose.passage import without_code


@dataclass(frozen=True, slots=True)
class Avoided:
    """A pattern, matched without case between word boundaries, and what to write instead."""

    pattern: re.Pattern[str]
    instead: str


def _avoided(pattern: str, instead: str) -> Avoided:
    return Avoided(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), instead)


WORDS: Final = (
    # One term in one sense.
    _avoided(
        r"(?:the|an?|this|that|each|every|one|no|such|its|next|first|later|same|another|of) questions?", "request"
    ),
    _avoided(r"questions(?! and)", "requests"),
    _avoided(
        r"(?:the|an?|this|each|every|one|no|such|its|their|next|first|later|late|wrong|fresh|cached|another|of|whose)"
        r" answers?(?! (?:is|are) )",
        "response, result or decision",
    ),
    _avoided(r"asked (?:about|again|for the)|is asked|are asked|was asked|were asked|who asks", "requested, called"),
    # Personified.
    _avoided(r"tells? (?:of|that|which|what|whether|how|when|where|itself)", "report, say, show"),
    _avoided(r"(?:is|are|was|were|be|been) told", "name the message and who sends it"),
    _avoided(
        r"(?:Kindred|it|that|mirror|cache|server) (?:believes|thinks|wants|wishes|remembers|learns|hears)",
        "the field's verb",
    ),
    _avoided(r"knows? (?:of|nothing|about|all)", "have, contain, support"),
    _avoided(r"is known (?:again|of)", "recognised, recorded"),
    _avoided(r"lets? go of|let go of", "release"),
    _avoided(r"lives of|a life of|random lives", "random event sequences"),
    # Without a named subject.
    _avoided(r"who(?:so)?ever|whomever", "name the subject"),
    _avoided(r"nobody(?: else)?|no one(?: else)?|somebody(?: else)?", "name the subject"),
    _avoided(r"for (?:those|people|readers) who|those who", "name the readers"),
    # Archaic or indirect.
    _avoided(
        r"(?:it|that|which|what|each|one|pods?|nodes?|connections?|there|rule|still|already|both|also|now|everything)"
        r" stands?(?! for)",
        "is, is open, is valid",
    ),
    _avoided(r"stands? (?:in|at|on|where|there|behind|before|after)", "is"),
    _avoided(r"of its own accord|as it were|so to speak|in vain|to be had|be had|by and by", "say it directly"),
    _avoided(
        r"thus|thereof|therein|thereby|wherein|whereby|whence|hence|hereby|herein|lest|ere|till|whilst|amongst|albeit",
        "a modern word",
    ),
    _avoided(r"save (?:for|the|where|that|when|POSTs?)", "except"),
    _avoided(
        r"(?:a|no|little|more|hardly any|without|its|the|has|have|for) room(?! of app)",
        "capacity, headroom, memory, space",
    ),
    _avoided(r"goes away|go away|went away|gone away|going away", "end, disappear, is deleted"),
    _avoided(r"mend(?:s|ed|ing)?", "fix, repair"),
    _avoided(r"the law (?:of|that)|same law", "rule, property, invariant"),
    _avoided(r"(?:is|are|was|were) to (?:be )?[a-z]+ed", "must, will"),
    # A clause in place of a noun.
    _avoided(r"what(?![- ]if)", "the noun: the result, the cause, the objects, the setting"),
    _avoided(r"that which|those which|(?:that|those) of|(?:of|by|from|to|with) which", "the noun"),
)
"""In the order of the reports."""


def avoided_words(text: str) -> Iterator[tuple[str, str]]:
    """Yield what a text has of the list, and what to write instead."""
    plain = " ".join(without_code(text).split())
    for avoided in WORDS:
        for found in avoided.pattern.finditer(plain):
            yield found[0], avoided.instead
