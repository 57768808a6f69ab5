"""All observers of each request, in their order; an error of one of them does not affect the response."""

import logging
from collections.abc import Callable
from typing import TypeAlias

from app.verbs.request import Observation

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
