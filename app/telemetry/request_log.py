"""The observers of each request, the last of which is a line of the log for failed requests, or for all.

No line above level debug has the contents of a request, except the name and the uid of its pod.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from app.process.logs import LATE, LIMIT, NO_LIMIT, LineLimit, one_line
from app.verbs.request import Request, VerbOutcome

log = logging.getLogger("kindred.questions")

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
PROBLEMS: Final = _IN_OUR_WORDS | {VerbOutcome.BAD_REQUEST, VerbOutcome.REJECTED, VerbOutcome.RETRIED}


def observer(count: Callable[[Request], None], record: Callable[[Request], None] | None) -> Callable[[Request], None]:
    """Return a function that counts, records and logs each request. An error there does not affect the response."""

    def observe(request: Request) -> None:
        try:
            count(request)
            if record is not None:
                record(request)
            log_request(request)
        except Exception:
            logging.getLogger(__name__).exception("request served, but an observer failed")

    return observe


def log_request(request: Request) -> None:
    """Write a line for a failed request, up to a number a second; at level debug one for every request."""
    outcome = request.response.outcome
    level = logging.WARNING if outcome in PROBLEMS else logging.DEBUG
    if log.isEnabledFor(level):
        every = log.isEnabledFor(logging.DEBUG)
        log.log(
            level,
            "request",
            extra={
                "verb": request.verb,
                "outcome": outcome.value,
                LIMIT: NO_LIMIT if every else _LIMIT,
                LATE: partial(question_fields, request, error=every or outcome in _IN_OUR_WORDS),
            },
        )


def question_fields(request: Request, *, error: bool) -> dict[str, object]:
    """Return the data of a request; with `error` also the response's `Error`, which may quote the request."""
    response = request.response
    cache, _, class_hash = response.source.partition(" ")
    fields: dict[str, object] = {
        "verb": request.verb,
        "pod": one_line(response.pod),
        "uid": one_line(response.uid),
        "class": class_hash,
        "cache": cache,
        "outcome": response.outcome.value,
        "duration_ms": round(request.seconds * 1000, 3),
        "waited_ms": round(request.waited * 1000, 3),
        "nodes": response.nodes,
        "passed": response.passed,
        "request_bytes": request.size,
        "response_bytes": len(response.body),
        "stale": one_line(request.stale),
        "error": one_line(response.error) if error else "",
    }
    return {name: value for name, value in fields.items() if value != ""}
