"""The verbs of kube-scheduler's extender as routes, and the app that dispatches to them before FastAPI."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from app.logs import one_line
from app.objects.limits import Body
from app.verbs.bind import Binder
from app.verbs.effects import Effects
from app.verbs.endpoint import Manner, Reception, VerbEndpoint
from app.verbs.filter import Extender
from app.verbs.lookup import PodLookup
from app.verbs.pod_api import binding_result
from app.verbs.preempt import preempt_error
from app.verbs.request import BindingResult, VerbOutcome, VerbResponse
from app.verbs.wire_out import filter_error, prioritize_error
from core.objects.pod import Pod

log = logging.getLogger(__name__)

_LOOKS_AGAIN: Final = (0.01, 0.02, 0.04, 0.08, 0.15, 0.2)
"""Pauses in seconds, in all half of the shortest httpTimeout in manifests/scheduler. A watch lags by milliseconds."""
_LOOKS_BEFORE_ASKING: Final = 1
_OFF: Final = "switched off, so that no pod is bound: set KINDRED_BIND=true, or take bindVerb away"
_BIND_OFF: Final = VerbResponse(
    binding_result(_OFF), outcome=VerbOutcome.NO_FIT, error=_OFF, result=BindingResult.OFF
)  # not logged: every pod of a scheduler would have a line


class Evaluate(Protocol):
    """A verb that responds at once. Without effects it changes no state."""

    def __call__(self, body: Body, *, cached: bool, effects: Effects | None) -> VerbResponse:
        """Respond to the body of a request."""


class Patient:
    """A verb that retries a doubtful response for a moment. The scheduler waits, with all its pods.

    A request with effects for an unknown pod waits until the watch shows the pod. After some milliseconds the pod is
    read from the API server. A dry run gets no effects, is evaluated once, and reads nothing.
    """

    def __init__(
        self, evaluate: Evaluate, unread: Callable[[Pod, str, Effects], VerbResponse], effects: Effects
    ) -> None:
        """`unread` responds for a pod that could not be read, for a reason."""
        self._evaluate = evaluate
        self._unread = unread
        self._effects = effects

    def __call__(self, body: Body, manner: Manner) -> VerbResponse | Awaitable[VerbResponse]:
        """Respond at once, or later."""
        if manner.dry_run:
            return self._evaluate(body, cached=False, effects=None)
        answer = self._evaluate(body, cached=manner.cached, effects=self._effects)
        doubted = answer.doubtful or answer.unknown_pod is not None
        return self._later(body, answer, cached=manner.cached) if doubted else answer

    async def _later(self, body: Body, answer: VerbResponse, *, cached: bool) -> VerbResponse:
        effects = self._effects
        for number, pause in enumerate(_LOOKS_AGAIN):
            await _pause(pause, answer.unknown_pod, effects.lookup)
            answer = self._evaluate(body, cached=cached, effects=effects)
            unknown = answer.unknown_pod
            if unknown is not None and number >= _LOOKS_BEFORE_ASKING:
                problem = await effects.lookup.ask(unknown)
                if problem:
                    return self._unread(unknown, problem, effects)
                answer = self._evaluate(body, cached=cached, effects=effects)
            if not answer.doubtful and answer.unknown_pod is None:
                return answer
        log.info("the watch may be late: %s", one_line(answer.error))
        return answer


async def _pause(seconds: float, unknown_pod: Pod | None, lookup: PodLookup) -> None:
    """Pause so that the watch can catch up. With an unknown pod, the pause ends when the watch shows the pod."""
    if unknown_pod is None:
        await asyncio.sleep(seconds)
    else:
        await lookup.wait(unknown_pod, seconds)


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


class Preempts(Protocol):
    """The endpoint of `preempt`: a PreemptVerb, or its stand-in."""

    def preempt(self, body: Body, *, cached: bool, effects: Effects | None) -> VerbResponse:
        """Respond to ExtenderPreemptionArgs."""

    def unread(self, asked: Pod, problem: str, effects: Effects) -> VerbResponse:
        """Respond for a pod that could not be read from the API server."""

    def preempt_untouched(self, body: Body) -> VerbResponse | None:
        """Respond for a pod that passes untouched, whatever the state of the mirror. None for other or invalid pods."""


def extender_routes(extender: Extender, effects: Effects, reception: Reception) -> list[Route]:
    """Return the routes of the extender verbs."""
    return [
        _route(
            VerbEndpoint(
                "filter",
                Patient(extender.filter, extender.unread, effects),
                reception,
                error=filter_error,
                turned_away=filter_error,
                untouched=lambda body, manner: extender.filter_untouched(body, _of(manner, effects)),
            )
        ),
        _route(
            VerbEndpoint(
                "prioritize",
                lambda body, manner: extender.prioritize(
                    body, cached=manner.cached and not manner.dry_run, effects=_of(manner, effects)
                ),
                reception,
                error=prioritize_error,
                turned_away=_no_priorities,
                untouched=lambda body, manner: extender.prioritize_untouched(body, _of(manner, effects)),
            )
        ),
    ]


def _of(manner: Manner, effects: Effects) -> Effects | None:
    return None if manner.dry_run else effects


def binding_route(binder: Binder | None, reception: Reception) -> Route:
    """Return the route of the verb `bind`, which does not use the cache. None: the verb is off."""
    if binder is None:
        return _route(
            VerbEndpoint(
                "bind",
                lambda *_: _BIND_OFF,
                reception,
                error=binding_result,
                turned_away=binding_result,
                untouched=lambda *_: _BIND_OFF,
            )
        )
    return _route(
        VerbEndpoint(
            "bind",
            lambda body, manner: binder.judge(body) if manner.dry_run else binder.bind(body),
            reception,
            error=binding_result,
            turned_away=binding_result,
            untouched=lambda body, manner: None if manner.dry_run else binder.bind_untouched(body),
        )
    )


def preemption_route(preempter: Preempts, effects: Effects, reception: Reception) -> Route:
    """Return the route of the verb `preempt`, which does not use the cache."""
    return _route(
        VerbEndpoint(
            "preempt",
            Patient(preempter.preempt, preempter.unread, effects),
            reception,
            error=preempt_error,
            turned_away=preempt_error,
            untouched=lambda body, _: preempter.preempt_untouched(body),
        )
    )


def _route(endpoint: VerbEndpoint) -> Route:
    return Route(f"/{endpoint.name}", endpoint, methods=["POST"])


def _no_priorities(_: str) -> bytes:
    """Return an empty HostPriorityList, which adds nothing to any node (schedule_one.go, prioritizeNodes).

    A 0 for every node would have the same effect, but finding the nodes is most of the cost of an ordinary response.
    """
    return b"[]"
