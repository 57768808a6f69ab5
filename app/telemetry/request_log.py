"""A line of the log for failed requests, or for all.

No line above level debug has the contents of a request, except the name and the uid of its pod.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from app.line_rate import LIMIT, NO_LIMIT, LineLimit
from app.logs import LATE, one_line
from app.verbs.request import Observation, VerbOutcome

# All observers of each request, in their order; an error of one of them does not affect the response.

log = logging.getLogger("kindred.questions")

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
                logging.getLogger(__name__).exception("request served, but an observer failed")


PROBLEMS: Final = frozenset(
    {
        VerbOutcome.BAD_REQUEST,
        VerbOutcome.TOO_MUCH_WORK,
        VerbOutcome.REFUSED,
        VerbOutcome.DOUBTED,
        VerbOutcome.STALE,
        VerbOutcome.SHED,
        VerbOutcome.NOT_LEADING,
        VerbOutcome.FAILED,
        VerbOutcome.INTERNAL_ERROR,
    }
)
_LIMIT: Final = LineLimit(("verb", "outcome"))
_IN_OUR_WORDS: Final = frozenset(
    {
        VerbOutcome.TOO_MUCH_WORK,
        VerbOutcome.STALE,
        VerbOutcome.SHED,
        VerbOutcome.NOT_LEADING,
        VerbOutcome.FAILED,
        VerbOutcome.INTERNAL_ERROR,
    }
)
"""Outcomes with an error that quotes no request: the text is Kindred's own or the API server's."""


class RequestLog:
    """A line for each failed request, up to a number a second; at level debug one for every request."""

    def __call__(self, observation: Observation) -> None:
        """Record a request."""
        if observation.outcome in PROBLEMS:
            self._write(logging.WARNING, observation)
        else:
            self._write(logging.DEBUG, observation)

    def _write(self, level: int, observation: Observation) -> None:
        if log.isEnabledFor(level):
            error = observation.outcome in _IN_OUR_WORDS or log.isEnabledFor(logging.DEBUG)
            log.log(
                level,
                "request",
                extra={
                    "verb": observation.verb,
                    "outcome": observation.outcome.value,
                    LIMIT: NO_LIMIT if log.isEnabledFor(logging.DEBUG) else _LIMIT,
                    LATE: partial(question_fields, observation, error=error),
                },
            )


def question_fields(observation: Observation, *, error: bool) -> dict[str, object]:
    """Return the data of a request; with `error` also the response's `Error`, which may quote the request."""
    asked = observation.asked
    cache, _, class_hash = observation.source.partition(" ")
    fields: dict[str, object] = {
        "verb": observation.verb,
        "pod": one_line(asked.pod),
        "uid": one_line(asked.uid),
        "class": class_hash,
        "cache": cache,
        "outcome": observation.outcome.value,
        "duration_ms": round(observation.seconds * 1000, 3),
        "waited_ms": round(observation.waited * 1000, 3),
        "nodes": asked.nodes,
        "passed": asked.passed,
        "request_bytes": observation.request_bytes,
        "response_bytes": observation.response_bytes,
        "stale": one_line(observation.stale),
        "error": one_line(observation.error) if error else "",
    }
    return {name: value for name, value in fields.items() if value != ""}
