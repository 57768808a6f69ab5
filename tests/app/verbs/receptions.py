"""Receptions for tests of single verbs."""

from collections.abc import Callable

from app.objects.limits import Body
from app.settings import Settings
from app.verbs.admission import Admission
from app.verbs.observation import Observation
from app.verbs.reception import Reception, create_admission
from app.verbs.serving_state import ServingState
from app.verbs.stale_policy import StalePolicy
from app.verbs.verb_endpoint import Answer
from app.watch.freshness import OF_A_DUMP


class Preempting:
    """What answers `preempt` as a test wants it."""

    def __init__(self, verb: Callable[[Body], Answer]) -> None:
        self._verb = verb

    def preempt(self, body: Body) -> Answer:
        return self._verb(body)

    def preempt_untouched(self, _: Body) -> None:
        """No pod passes."""


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
