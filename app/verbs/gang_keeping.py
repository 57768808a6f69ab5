"""Which pods are placed with their gang, and the tasks that release places between requests."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from app.verbs.decide import InTreeNeeds
from app.verbs.effects import Effects
from app.verbs.scopes import DecideScopes
from core.gangs.gangs import Gangs
from core.objects.pod import Pod

log = logging.getLogger(__name__)
_REVIEW_EVERY: Final = 1.0  # seconds


def is_decided_for(scopes: DecideScopes, needs: InTreeNeeds) -> Callable[[Pod], bool]:
    """Return a check whether Kindred can decide for a pending member. The check reads only the pod itself."""

    def decided_for(pod: Pod) -> bool:
        return scopes.of(pod.scheduler_name) is not None and not pod.in_scheduling_group and not needs.problem(pod)

    return decided_for


async def keep_gangs(gangs: Gangs, clock: Callable[[], float], refusal: Callable[[], str]) -> None:
    """Release reservations that are too old, until cancelled. While no decision is allowed, release all of them.

    Invalid annotations about packing are logged once per group.

    Another replica that decides does not have these reservations. When this replica leads again, it starts with none.
    """
    while True:
        await asyncio.sleep(_REVIEW_EVERY)
        if refusal():
            gangs.end()
        else:
            gangs.review(clock())
        for unit, problem in gangs.take_packing_problems().items():
            log.warning("group %s is placed as spread: %s", unit, problem)


async def keep_cycles(effects: Effects) -> None:
    """End cycles of scheduling groups that had no request for a while, until cancelled."""
    while True:
        await asyncio.sleep(_REVIEW_EVERY)
        effects.review_cycles()
