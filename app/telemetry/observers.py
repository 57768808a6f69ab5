"""All observers of each request, in their order; an error of one of them does not affect the response."""

import logging
import time
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from app.settings import Settings
from app.telemetry.debugged_pods import DebuggedPods
from app.telemetry.request_log import RequestLog
from app.verbs.observation import Observation

log = logging.getLogger(__name__)

Observer: TypeAlias = Callable[[Observation], object]


class Observers:
    """Calls each observer for each request."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def __call__(self, observation: Observation) -> None:
        """Call all observers."""
        for observer in self._observers:
            try:
                observer(observation)
            except Exception:
                log.exception("request served, but an observer failed")


class Observing(NamedTuple):
    """The observers, and their resources."""

    observe: Observers
    debugged_pods: DebuggedPods


def create_observers(settings: Settings, *others: Observer) -> Observing:
    """Return `others` and the observers that the settings enable."""
    debugged_pods = DebuggedPods(time.monotonic)
    questions = RequestLog(settings.log_questions)
    return Observing(Observers(*others, questions, debugged_pods), debugged_pods)
