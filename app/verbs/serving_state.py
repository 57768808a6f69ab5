"""Whether this process accepts requests: the state that its end, its leadership, its health and its verbs share.

With leader election a replica that does not lead decides nothing. Every verb gets an `Error`, which kube-scheduler
ignores for `prioritize`, and each response closes its connection. kube-scheduler keeps connections alive, also to a pod
that has left the Service. Without that it would continue to call the previous leader. Its `filter` would break no rule,
because `bind` checks all of them again. But it lacks the pods that the leader has assumed, and the rejections that
`preempt` needs, so many of its decisions would end as conflicts. The price is one attempt of the pods that are under
way when the leader changes. Nor does it bind pods that pass untouched: they would still take room.
"""

import math
from typing import Protocol

from app.watch.memory_watch import UNLIMITED, MemoryWatch


class Leadership(Protocol):
    """The known state of the leadership."""

    @property
    def leader(self) -> str:
        """The present or last holder of the Lease; empty if none is known."""

    def leads(self) -> bool:
        """Whether this replica may decide now."""

    def problem(self) -> str:
        """Return why it may not, one line; empty if it may."""

    def seconds_left(self) -> float:
        """Return the seconds for which no other replica can lead."""

    async def resign(self) -> None:
        """Let another lead; whatever this replica has decided must have ended."""


class Obstacle(Protocol):
    """A reason besides the election that keeps a replica from deciding."""

    def problem(self) -> str:
        """Return why it may not, one line; empty if it may."""


class ServingState:
    """Changed at the start and at the end; read in every request."""

    def __init__(
        self,
        leadership: Leadership | None = None,
        memory: MemoryWatch = UNLIMITED,
        obstacle: Obstacle | None = None,
    ) -> None:
        """Take part in an election, if there is one; no request is evaluated while there is an `obstacle`."""
        self.leadership = leadership
        """None where there is no leader election: then every replica decides."""
        self.draining = False
        """Whether the process is about to end: it answers still, but is not to be asked."""
        self.memory = memory
        """How near the process is to being killed for its memory."""
        self._obstacle = obstacle

    def may_decide(self) -> bool:
        """Return whether a decision of this replica counts now."""
        if self._obstacle is not None and self._obstacle.problem():
            return False
        return self.leadership is None or self.leadership.leads()

    def closes_connections(self) -> bool:
        """Return whether clients must move on to another replica after their next response."""
        return self.draining or not self.may_decide()

    def refusal(self) -> str:
        """Return why no request is evaluated, in one line; empty if requests are."""
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
