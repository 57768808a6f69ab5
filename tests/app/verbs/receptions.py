"""Endpoints, effects and apps for tests of single verbs."""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

from app.feeds.freshness import OF_A_DUMP, Freshness
from app.objects.decode import Body
from app.settings.settings import Settings
from app.verbs.admission import Admission, ServingState
from app.verbs.effects import Effects
from app.verbs.endpoint import ExtenderApp, Verb, VerbEndpoint
from app.verbs.filter import Extender, filter_verb, prioritize_verb
from app.verbs.pods import PodLookup
from app.verbs.preempt import preempt_error
from app.verbs.request import Request, VerbResponse
from app.wiring.engine import create_extender
from core.mirror.cluster import ClusterMirror

Reception: TypeAlias = Callable[[Verb], VerbEndpoint]


def effects_over(mirror: ClusterMirror, clock: Callable[[], float] = lambda: 0.0, **parts: Any) -> Effects:  # noqa: ANN401  # the parts of Effects
    """Return the effects of requests over a mirror that follows no cluster."""
    return Effects(mirror, clock, PodLookup(mirror, None, clock), **parts)


class Serving:
    """`filter` and `prioritize` as a service calls them: with effects."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self._extender, self._effects = create_extender(Settings(), mirror), effects_over(mirror)

    def filter(self, body: bytes) -> VerbResponse:
        """Return an ExtenderFilterResult."""
        return self._extender.filter(Request(body), self._effects)

    def prioritize(self, body: bytes) -> VerbResponse:
        """Return a HostPriorityList."""
        return self._extender.prioritize(Request(body), self._effects)


def app_with(*endpoints: VerbEndpoint) -> ExtenderApp:
    """Return the app of a scheduler's port with these verbs."""
    app = ExtenderApp()
    app.add_verbs(*endpoints)
    return app


def app_of(verb: Callable[[Body], VerbResponse | Awaitable[VerbResponse]], desk: Reception) -> ExtenderApp:
    """Return one with a verb that responds as a test wants it, under the name `preempt`."""

    def run(request: Request) -> VerbResponse | Awaitable[VerbResponse]:
        return verb(request.body)

    return app_with(desk(Verb("preempt", run, preempt_error, shed=preempt_error, bypassed=lambda _: None)))


def extender_app(extender: Extender, mirror: ClusterMirror, desk: Reception) -> ExtenderApp:
    """Return the app of a scheduler's port with `filter` and `prioritize`, with effects over a mirror."""
    effects = effects_over(mirror)
    return app_with(desk(filter_verb(extender, effects)), desk(prioritize_verb(extender, effects)))


def reception(
    freshness: Freshness = OF_A_DUMP,
    max_body_bytes: int = 2**20,
    *,
    admission: Admission | None = None,
    observe: Callable[[Request], None] = lambda _: None,
    state: ServingState | None = None,
) -> Reception:
    """Return the maker of endpoints that let everybody in, unless told otherwise."""
    return partial(
        VerbEndpoint,
        state=state or ServingState(freshness=freshness),
        admission=admission or Admission(deadline=4.0, queue_limit=100, max_bytes=1 << 30, clock=time.monotonic),
        observe=observe,
        max_body_bytes=max_body_bytes,
    )
