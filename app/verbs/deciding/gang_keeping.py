"""Which pods are placed with their gang, and the end of reservations between requests."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from app.verbs.deciding.claims import InTreeNeeds
from app.verbs.deciding.scopes import DecideScopes
from core.gangs.gangs import Gangs
from core.objects.pod import Pod

log = logging.getLogger(__name__)
_REVIEW_EVERY: Final = 1.0  # seconds


def is_decided_for(scopes: DecideScopes, needs: InTreeNeeds) -> Callable[[Pod], bool]:
    """Return the check whether a pending member can be decided for, as far as the pod itself goes."""

    def decided_for(pod: Pod) -> bool:
        scope = scopes.of(pod)
        return scope is not None and not pod.in_group and not needs.problem(pod, scope)

    return decided_for


async def keep_gangs(gangs: Gangs, clock: Callable[[], float], refusal: Callable[[], str]) -> None:
    """Release reservations that are too old, and all of them while nothing may be decided, until cancelled.

    Wrong annotations about packing are logged, each once for a group.

    Another replica that decides does not have these reservations. This one begins anew when it leads again.
    """
    while True:
        await asyncio.sleep(_REVIEW_EVERY)
        if refusal():
            gangs.end()
        else:
            gangs.review(clock())
        for unit, problem in gangs.take_packing_problems().items():
            log.warning("group %s is placed as spread: %s", unit, problem)
