"""What questions get while the mirror cannot be trusted."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from app.watch.freshness import Freshness, SyncStatus


class Reserve(NamedTuple):
    """What stands against an ordinary answer: at most one of the two is not empty."""

    refusal: str = ""
    """Why there is no answer."""
    warning: str = ""
    """What is to be known of the answer."""


NO_RESERVE = Reserve()


class StalePolicy:
    """`fail` refuses to answer from a stale mirror, `answer` answers with a warning.

    A mirror that was never complete is refused under both: nothing is known that could make an answer right.
    """

    def __init__(self, freshness: Freshness, policy: Literal["fail", "answer"], count: Callable[[str], None]) -> None:
        """Call `count` with the verb for each question that is asked of a mirror which cannot be trusted."""
        self._freshness = freshness
        self._answers = policy == "answer"
        self._count = count

    def reserve(self, verb: str) -> Reserve:
        """Judge the mirror for one question."""
        standing = self._freshness.status()
        if standing is SyncStatus.FRESH:
            return NO_RESERVE
        self._count(verb)
        problems = "; ".join(self._freshness.problems())
        if standing is SyncStatus.STALE and self._answers:
            return Reserve(warning=problems)
        return Reserve(refusal=f"the mirror is {standing.value}: {problems}")
