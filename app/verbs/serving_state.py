"""Whether this process takes questions, as its end, its leadership, its health and its verbs see it in common.

With leader election a replica that does not lead decides nothing: every verb is answered with an `Error`, which for
`prioritize` kube-scheduler passes over, and each answer closes its connection. kube-scheduler keeps connections alive,
also to a pod that has left the Service, so without that it would go on to ask the replica that led before. Its `filter`
would break no rule, as `bind` checks all of them again; but it lacks the pods that the leader has assumed, and what
`preempt` has to know of refusals, so that many of its answers would end as conflicts. The price is one attempt of the
pods that are under way when the leader changes. Nor does it bind pods that pass untouched: they would still take room.
"""

import math
from typing import Protocol

from app.watch.memory_watch import UNLIMITED, MemoryWatch


class Leadership(Protocol):
    """What is known of who leads."""

    @property
    def leader(self) -> str:
        """Who holds the Lease, or held it last; empty if nobody is known."""

    def leads(self) -> bool:
        """Whether this replica may decide now."""

    def problem(self) -> str:
        """Return why it may not, one line; empty if it may."""

    def seconds_left(self) -> float:
        """Return the seconds for which no other replica can lead."""

    async def resign(self) -> None:
        """Let another lead; whatever this replica has decided must have ended."""


class Obstacle(Protocol):
    """What keeps a replica from deciding besides the election."""

    def problem(self) -> str:
        """Return why it may not, one line; empty if it may."""


class ServingState:
    """Changed at the start and at the end; read at every question."""

    def __init__(
        self,
        leadership: Leadership | None = None,
        memory: MemoryWatch = UNLIMITED,
        obstacle: Obstacle | None = None,
    ) -> None:
        """Take part in an election, where there is one; no question is answered while there is an `obstacle`."""
        self.leadership = leadership
        """None where there is no leader election: then every replica decides."""
        self.draining = False
        """Whether the process is about to end: it answers still, but is not to be asked."""
        self.memory = memory
        """How near the process is to being killed for its memory."""
        self._obstacle = obstacle

    def may_decide(self) -> bool:
        """Tell whether a decision of this replica counts now."""
        if self._obstacle is not None and self._obstacle.problem():
            return False
        return self.leadership is None or self.leadership.leads()

    def closes_connections(self) -> bool:
        """Tell whether clients are to move on to another replica after their next answer."""
        return self.draining or not self.may_decide()

    def refusal(self) -> str:
        """Return why no question is answered, one line; empty if they are."""
        problem = self.leadership.problem() if self.leadership is not None else ""
        if problem:
            return f"not leading: {problem}"
        return self._obstacle.problem() if self._obstacle is not None else ""

    def problems(self) -> list[str]:
        """Return why this replica is not ready, besides its mirror."""
        problem = self.leadership.problem() if self.leadership is not None else ""
        obstacle = self._obstacle.problem() if self._obstacle is not None else ""
        return [
            each for each in ("draining" if self.draining else "", problem, obstacle, self.memory.problem()) if each
        ]

    def seconds_left(self) -> float:
        """Return the seconds for which no other replica can decide."""
        return self.leadership.seconds_left() if self.leadership is not None else math.inf
