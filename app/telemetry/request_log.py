"""A line of the log for failed requests, or for all.

No line above level debug has the contents of a request, except the name and the uid of its pod.
"""

import logging
from collections.abc import Callable
from typing import Final, Literal

from app.line_rate import Later, LineRate
from app.logs import one_line
from app.verbs.observation import Observation, VerbOutcome

log = logging.getLogger("kindred.questions")

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
MAX_LINES: Final = 10
"""Lines a second for each verb and outcome."""
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
    """`problems` has a line for each failed request, up to a number a second; `all` one for every request."""

    def __init__(self, which: Literal["problems", "all"], clock: Callable[[], float], later: Later) -> None:
        """Take a clock in seconds. `later` schedules a call."""
        self._all = which == "all"
        self._rate = LineRate[tuple[str, VerbOutcome]](MAX_LINES, clock, later, _tell_left_out)

    def __call__(self, observation: Observation) -> None:
        """Record a request."""
        outcome = observation.outcome
        if outcome in PROBLEMS:
            if self._all or self._rate.allows((observation.verb, outcome)):
                _write(logging.WARNING, observation)
        elif self._all:
            _write(logging.INFO, observation)


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


def _write(level: int, observation: Observation) -> None:
    if log.isEnabledFor(level):
        error = observation.outcome in _IN_OUR_WORDS or log.isEnabledFor(logging.DEBUG)
        log.log(level, "request", extra=question_fields(observation, error=error))


def _tell_left_out(key: tuple[str, VerbOutcome], lines: int) -> None:
    verb, outcome = key
    log.warning("requests not logged", extra={"verb": verb, "outcome": outcome.value, "left_out": lines})
