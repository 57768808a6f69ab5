"""Passive voice by a heuristic: a form of `be`, at most two adverbs, and a past participle.

A participle is a word in -ed or -en, or on a short list of irregular ones. Adjectives of that form ("is connected")
count, and passives without `be` ("the node chosen") do not. Both errors are alike in any technical text, so shares can
be compared.
"""

import re
from typing import Final

_IRREGULAR: Final = (
    "begun|bound|built|bought|brought|caught|cut|done|drawn|fed|felt|fit|found|given|gone|had|heard|held|hit|kept|known|laid|led|left"
    "|lent|let|lost|made|meant|met|paid|put|read|run|said|seen|sent|set|shed|shown|shut|sold|spent|split|spread|sworn|taught"
    "|thought|thrown|told|torn|understood|won|worn|wound"
)
_PASSIVE: Final = re.compile(
    rf"\b(?:am|is|are|was|were|be|been|being|isn't|aren't|wasn't|weren't)"
    rf"(?:\s+(?:not|not yet|never|always|only|also|then|still|now|already|again|[a-z]+ly)){{0,2}}"
    rf"\s+(?:[a-z]+ed|[a-z]{{3,}}en|{_IRREGULAR})\b(?<!\bneed)(?<!\bthen)(?<!\bopen)(?<!\bwhen)(?<!\beven)(?<!\bindeed)",
    re.IGNORECASE,
)


def is_passive(sentence: str) -> bool:
    """Return whether a sentence has a passive verb, by the heuristic of this module."""
    return _PASSIVE.search(sentence) is not None
