"""Receptions, effects and routes for tests of single verbs."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.routing import Route

from app.objects.limits import Body
from app.settings import Settings
from app.verbs.admission import Admission, ServingState
from app.verbs.effects import Effects
from app.verbs.endpoint import Answer, Reception, StalePolicy, VerbEndpoint
from app.verbs.lookup import PodLookup
from app.verbs.preempt import preempt_error
from app.verbs.request import Observation
from app.watch.freshness import OF_A_DUMP
from app.wiring.engine import create_extender
from core.mirror.cluster import ClusterMirror


def effects_over(mirror: ClusterMirror, clock: Callable[[], float] = lambda: 0.0, **parts: Any) -> Effects:  # noqa: ANN401  # the parts of Effects
    """Return the effects of requests over a mirror that follows no cluster."""
    return Effects(mirror, clock, PodLookup(mirror, None, clock), **parts)


class Serving:
    """`filter` and `prioritize` as a service calls them: with effects."""

    def __init__(self, mirror: ClusterMirror) -> None:
        extender, effects = create_extender(Settings(), mirror), effects_over(mirror)
        self.filter = partial(extender.filter, effects=effects)
        self.prioritize = partial(extender.prioritize, effects=effects)


def verb_route(verb: Callable[[Body], Answer], desk: Reception) -> Route:
    """Return the route of a verb that responds as a test wants it, under the name `preempt`."""
    return Route(
        "/preempt",
        VerbEndpoint(
            "preempt",
            lambda body, _: verb(body),
            desk,
            error=preempt_error,
            turned_away=preempt_error,
            untouched=lambda _, __: None,
        ),
        methods=["POST"],
    )


def reception(
    stale_policy: StalePolicy | None = None,
    max_body_bytes: int = 2**20,
    *,
    admission: Admission | None = None,
    observe: Callable[[Observation], object] = lambda _: None,
    state: ServingState | None = None,
) -> Reception:
    """Return one that lets everybody in, unless told otherwise."""
    return Reception(
        state or ServingState(),
        stale_policy or StalePolicy(OF_A_DUMP, lambda _: None),
        admission or Admission(deadline=4.0, queue_limit=100, max_bytes=1 << 30, clock=time.monotonic),
        observe,
        max_body_bytes,
    )
