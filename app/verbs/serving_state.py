"""Whether this process accepts requests: the state that shutdown, leader election, probes and verbs share.

With leader election a replica that does not lead decides nothing. Every verb returns an `Error`, which kube-scheduler
ignores for `prioritize`, and each response closes its connection. The reason is that kube-scheduler keeps connections
alive, also to a pod that has left the Service, and would continue to call the previous leader. The `filter` of that
replica would break no rule, because `bind` checks all rules again. But the replica lacks the pods that the leader
assumed and the rejections that `preempt` needs. So many of its decisions would end as conflicts. The cost is one
attempt for each pod in progress when the leader changes. A replica that does not lead does not bind pods that pass
untouched either, because they take capacity.
"""

import math
from typing import Protocol

from app.watch.memory import UNLIMITED, MemoryWatch


class Leadership(Protocol):
    """The known state of the leadership."""

    @property
    def leader(self) -> str:
        """The present or last holder of the Lease. Empty if none is known."""

    def leads(self) -> bool:
        """Whether this replica may decide now."""

    def problem(self) -> str:
        """Return why this replica may not decide, in one line. Empty if it may."""

    def seconds_left(self) -> float:
        """Return the seconds for which no other replica can lead."""

    async def resign(self) -> None:
        """Release the Lease. All bindings of this replica must have ended."""


class Obstacle(Protocol):
    """A reason besides the election that keeps a replica from deciding."""

    def problem(self) -> str:
        """Return why this replica may not decide, in one line. Empty if it may."""


class ServingState:
    """The state. It changes at the start and at the shutdown, and every request reads it."""

    def __init__(
        self,
        leadership: Leadership | None = None,
        memory: MemoryWatch = UNLIMITED,
        obstacle: Obstacle | None = None,
        *,
        names: bool = True,
    ) -> None:
        """`leadership` is None without leader election. No request is evaluated while `obstacle` has a problem.

        `names`: whether a refusal may name another replica, and quote the API server.
        """
        self.leadership = leadership
        """None without leader election: then every replica decides."""
        self.draining = False
        """Whether the shutdown has begun. The process still serves requests, but is not ready."""
        self.memory = memory
        """The memory of the process, compared with its limit."""
        self._obstacle = obstacle
        self._names = names

    def may_decide(self) -> bool:
        """Return whether this replica may decide now."""
        if self._obstacle is not None and self._obstacle.problem():
            return False
        return self.leadership is None or self.leadership.leads()

    def closes_connections(self) -> bool:
        """Return whether clients must move on to another replica after their next response."""
        return self.draining or not self.may_decide()

    def refusal(self) -> str:
        """Return why no request is evaluated, in one line. Empty if requests are evaluated."""
        problem = self.leadership.problem() if self.leadership is not None else ""
        if problem:
            return f"not leading: {problem}" if self._names else "not leading"
        return self._obstacle.problem() if self._obstacle is not None else ""

    def problems(self) -> list[str]:
        """Return the reasons, other than the mirror, why this replica is not ready."""
        problem = self.leadership.problem() if self.leadership is not None else ""
        obstacle = self._obstacle.problem() if self._obstacle is not None else ""
        return [
            each for each in ("draining" if self.draining else "", problem, obstacle, self.memory.problem()) if each
        ]

    def kinds_of_problems(self) -> list[str]:
        """Return the kinds of these problems, without the names and texts of other programs."""
        kinds = {
            "draining": self.draining,
            "not leading": self.leadership is not None and self.leadership.problem(),
            "waiting for earlier decisions": self._obstacle is not None and self._obstacle.problem(),
            "memory": self.memory.is_above(),
        }
        return [kind for kind, exists in kinds.items() if exists]

    def seconds_left(self) -> float:
        """Return the seconds for which no other replica can decide."""
        return self.leadership.seconds_left() if self.leadership is not None else math.inf
