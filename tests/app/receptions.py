"""Receptions for tests of single verbs."""

from collections.abc import Awaitable, Callable

from app.admission import Admission
from app.limits import Body
from app.observation import Answer, Observation
from app.routes.reception import Reception, create_admission
from app.routes.verb_endpoint import Verb
from app.serving_state import ServingState
from app.settings import Settings
from app.stale_policy import StalePolicy
from app.watch.freshness import OF_A_DUMP


class Preempting:
    """What answers `preempt` as a test wants it."""

    def __init__(self, verb: Verb) -> None:
        self._verb = verb

    def preempt(self, body: Body, *, cached: bool) -> Answer | Awaitable[Answer]:
        return self._verb(body, cached=cached)

    def passes_untouched(self, _: Body) -> bool:
        return False


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
        stale_policy or StalePolicy(OF_A_DUMP, "fail", lambda _: None),
        admission or create_admission(Settings()),
        observe,
        max_body_bytes,
    )
