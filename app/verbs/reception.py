"""What stands before and behind every verb: who is let in, when, and who is told how it went."""

import time
from collections.abc import Callable
from typing import NamedTuple

from app.settings import Settings
from app.verbs.admission import Admission
from app.verbs.observation import Observation
from app.verbs.serving_state import ServingState
from app.verbs.stale_policy import StalePolicy


class Reception(NamedTuple):
    """What the verbs of one port share."""

    state: ServingState
    stale_policy: StalePolicy
    admission: Admission
    observe: Callable[[Observation], object]
    """Told of each question, once its answer is there."""
    max_body_bytes: int
    traces: bool = False
    """Whether who observes wants to know of traces."""


def create_admission(settings: Settings) -> Admission:
    """Return the queue that the settings want."""
    return Admission(
        deadline=settings.deadline,
        queue_limit=settings.queue_limit,
        max_bytes=settings.queue_max_bytes,
        clock=time.monotonic,
    )
