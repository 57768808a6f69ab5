"""The responses to requests while the mirror is stale."""

from collections.abc import Callable
from typing import Final, NamedTuple

from app.watch.freshness import Freshness, SyncStatus


class Reserve(NamedTuple):
    """The effect of a stale mirror on a response. At most one of the two texts is not empty."""

    refusal: str = ""
    """Why there is no result."""
    warning: str = ""
    """A warning about the response."""


NO_RESERVE = Reserve()
_ANSWERED: Final = "prioritize"


class StalePolicy:
    """A request to a stale mirror is rejected. A score has a warning instead, because it breaks no rule.

    While the mirror has never been complete, all requests are rejected, because no response could be right.
    """

    def __init__(
        self,
        freshness: Freshness,
        count: Callable[[str], None],
        *,
        names: bool = True,
    ) -> None:
        """Call `count` with the verb for each request to a stale mirror.

        `names`: whether the effects may name resources, and quote the API server.
        """
        self._freshness = freshness
        self._count = count
        self._names = names

    def reserve(self, verb: str) -> Reserve:
        """Check the mirror for one request."""
        standing = self._freshness.status()
        if standing is SyncStatus.FRESH:
            return NO_RESERVE
        self._count(verb)
        state = f"the mirror is {standing.value}"
        problems = "; ".join(self._freshness.problems()) if self._names else ""
        if standing is SyncStatus.STALE and verb == _ANSWERED:
            return Reserve(warning=problems or state)
        return Reserve(refusal=f"{state}: {problems}" if problems else state)
