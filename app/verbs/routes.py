"""The verbs of kube-scheduler's extender as routes, and the app that dispatches to them before FastAPI."""

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from app.logs import one_line
from app.objects.limits import Body
from app.verbs.binding.binder import Binder
from app.verbs.binding.binding_args import binding_result
from app.verbs.extender import Extender
from app.verbs.extender_results import filter_error, prioritize_error
from app.verbs.observation import VerbResponse
from app.verbs.preempt import preempt_error
from app.verbs.reception import Reception
from app.verbs.verb_endpoint import Manner, VerbEndpoint
from core.objects.pod import Pod

log = logging.getLogger(__name__)

_LOOKS_AGAIN: Final = (0.01, 0.02, 0.04, 0.08, 0.15, 0.2)
"""Pauses in seconds, in all half of the shortest httpTimeout in manifests/scheduler. A watch lags by milliseconds."""
_LOOKS_BEFORE_ASKING: Final = 1


class PatientFilter:
    """`filter` that retries a doubtful response for a moment. The scheduler waits, with all its pods.

    A decision for an unknown pod waits until the watch shows the pod. After some milliseconds the pod is looked up.
    """

    def __init__(self, extender: Extender) -> None:
        self._extender = extender

    def __call__(self, body: Body, manner: Manner) -> VerbResponse | Awaitable[VerbResponse]:
        """Respond at once, or later."""
        answer = self._filter(body, manner)
        return self._later(body, manner, answer) if answer.doubtful or answer.unknown_pod is not None else answer

    def _filter(self, body: Body, manner: Manner) -> VerbResponse:
        return self._extender.filter(body, cached=manner.cached, dry_run=manner.dry_run)

    async def _later(self, body: Body, manner: Manner, answer: VerbResponse) -> VerbResponse:
        for number, pause in enumerate(_LOOKS_AGAIN):
            await self._pause(pause, answer.unknown_pod)
            answer = self._filter(body, manner)
            if answer.unknown_pod is not None and number >= _LOOKS_BEFORE_ASKING:
                problem = await self._looked_up(answer.unknown_pod)
                answer = problem or self._filter(body, manner)
            if not answer.doubtful and answer.unknown_pod is None:
                return answer
        log.info("filter: the watch may be late: %s", one_line(answer.error))
        return answer

    async def _pause(self, seconds: float, unknown_pod: Pod | None) -> None:
        """Pause so that the watch can catch up. With an unknown pod, the pause ends when the watch shows the pod."""
        decider = self._extender.decider
        if decider is None or unknown_pod is None:
            await asyncio.sleep(seconds)
        else:
            await decider.wait_for(unknown_pod, seconds)

    async def _looked_up(self, pod: Pod) -> VerbResponse | None:
        decider = self._extender.decider
        return await decider.look_up(pod) if decider is not None else None


class ExtenderApp(FastAPI):
    """The app of the scheduler's port. It dispatches to the verbs before FastAPI's own middleware and routing.

    With a scheduler at 500 nodes, middleware and routing took 8 % of Kindred's time for a pod that is filtered, scored
    and bound. `VerbEndpoint` replaces them: it limits bodies, and responds after every error.
    """

    verbs: Mapping[str, VerbEndpoint] = MappingProxyType({})
    """Path -> the endpoint for a POST there."""

    def add_verbs(self, *routes: Route) -> None:
        """Serve routes of verbs. FastAPI serves the other methods of these paths."""
        self.verbs = {route.path: route.app for route in routes if isinstance(route.app, VerbEndpoint)}
        self.router.routes.extend(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI)."""
        if scope["type"] == "http" and scope["method"] == "POST":
            verb = self.verbs.get(scope["path"])
            if verb is not None:
                await verb(scope, receive, send)
                return
        await super().__call__(scope, receive, send)


def extender_routes(extender: Extender, reception: Reception) -> list[Route]:
    """Return the routes of the extender verbs."""
    return [
        _route(
            VerbEndpoint(
                "filter",
                PatientFilter(extender),
                reception,
                error=filter_error,
                turned_away=filter_error,
                untouched=extender.filter_untouched,
            )
        ),
        _route(
            VerbEndpoint(
                "prioritize",
                lambda body, manner: extender.prioritize(body, cached=manner.cached),
                reception,
                error=prioritize_error,
                turned_away=_no_priorities,
                untouched=extender.prioritize_untouched,
            )
        ),
    ]


def binding_route(binder: Binder, reception: Reception) -> Route:
    """Return the route of the verb `bind`, which does not use the cache."""
    return _route(
        VerbEndpoint(
            "bind",
            lambda body, manner: binder.bind(body, dry_run=manner.dry_run),
            reception,
            error=binding_result,
            turned_away=binding_result,
            untouched=binder.bind_untouched,
        )
    )


class Preempts(Protocol):
    """The endpoint of `preempt`: a PreemptVerb, or its stand-in."""

    def preempt(self, body: Body) -> VerbResponse | Awaitable[VerbResponse]:
        """Respond to ExtenderPreemptionArgs."""

    def preempt_untouched(self, body: Body) -> VerbResponse | None:
        """Respond for a pod that passes untouched, whatever the state of the mirror. None for other or invalid pods."""


def preemption_route(preempter: Preempts, reception: Reception) -> Route:
    """Return the route of the verb `preempt`."""
    return _route(
        VerbEndpoint(
            "preempt",
            lambda body, _: preempter.preempt(body),
            reception,
            error=preempt_error,
            turned_away=preempt_error,
            untouched=preempter.preempt_untouched,
        )
    )


def _route(endpoint: VerbEndpoint) -> Route:
    return Route(f"/{endpoint.name}", endpoint, methods=["POST"])


def _no_priorities(_: str) -> bytes:
    """Return an empty HostPriorityList, which adds nothing to any node (schedule_one.go, prioritizeNodes).

    A 0 for every node would have the same effect, but finding the nodes is most of the cost of an ordinary response.
    """
    return b"[]"
