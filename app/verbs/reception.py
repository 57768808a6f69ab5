"""The steps before and after every verb: access, the queue, and the observers."""

import time
from collections.abc import Callable
from typing import NamedTuple

from app.settings import Settings
from app.verbs.admission import Admission
from app.verbs.observation import Observation
from app.verbs.serving_state import ServingState
from app.verbs.stale_policy import StalePolicy


class Reception(NamedTuple):
    """The parts that the verbs of one port share."""

    state: ServingState
    stale_policy: StalePolicy
    admission: Admission
    observe: Callable[[Observation], object]
    """Called for each request, after its response was made."""
    max_body_bytes: int


def create_admission(settings: Settings, max_bytes: int) -> Admission:
    """Return the queue with the limits of the settings. `max_bytes`: of all bodies together."""
    return Admission(
        deadline=settings.deadline,
        queue_limit=settings.queue_limit,
        max_bytes=max_bytes,
        clock=time.monotonic,
    )
