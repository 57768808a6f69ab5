"""Pods whose requests are logged in full for a while, at any level of the log.

The lines have level debug, from a logger of their own with that level. No line of a higher level quotes a request.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import msgspec

from app.line_rate import LIMIT, LineLimit
from app.logs import LATE, one_line
from app.objects.limits import Body
from app.telemetry.request_log import question_fields
from app.verbs.observation import Observation

log = logging.getLogger("kindred.debug_pod")

MAX_PODS: Final = 100
MAX_SECONDS: Final = 24 * 3600.0
_SHOWN_BYTES: Final = 8 * 1024
"""Bytes of a body that are logged. kube-scheduler writes the pod first."""
_SUMMED_UP_BYTES: Final = 4 * 1024 * 1024
"""Largest response that is decoded for a summary: 100,000 nodes with reasons, or a few hundred whole Nodes."""
_SHOWN: Final = 20  # reasons, or nodes
_LIMIT: Final = LineLimit(("pod",))


class TooManyPodsError(Exception):
    """The requests of MAX_PODS pods are logged already."""


class DebuggedPods:
    """NAMESPACE/NAME -> the time at which logging ends. Call it with each Observation."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Take a monotonic clock in seconds."""
        self._clock = clock
        self._until: dict[str, float] = {}
        log.setLevel(logging.DEBUG)

    def begin(self, pod: str, seconds: float) -> None:
        """Log a pod's requests from now on for so long, in place of an earlier setting. Raises TooManyPodsError."""
        left = self.left()
        if pod not in left and len(left) >= MAX_PODS:
            raise TooManyPodsError(f"{MAX_PODS} pods are logged already")
        self._until[pod] = self._clock() + seconds

    def end(self, pod: str) -> bool:
        """Stop logging a pod's requests; return whether they were logged."""
        self.left()  # drops the pods whose time is over
        return self._until.pop(pod, None) is not None

    def left(self) -> Mapping[str, float]:
        """Return NAMESPACE/NAME -> seconds until logging ends."""
        now = self._clock()
        self._until = {pod: until for pod, until in self._until.items() if until > now}
        return {pod: until - now for pod, until in self._until.items()}

    def __call__(self, observation: Observation) -> None:
        """Record a request."""
        if not self._until:
            return
        pod = observation.asked.pod
        until = self._until.get(pod)
        if until is None:
            return
        if until <= self._clock():
            del self._until[pod]
        else:
            log.debug(
                "request of a debugged pod",
                extra={"pod": one_line(pod), LIMIT: _LIMIT, LATE: partial(_in_full, observation)},
            )


def _in_full(observation: Observation) -> dict[str, object]:
    return {
        **question_fields(observation, error=True),
        **_summary(observation.verb, observation.response),
        "request": _shown(observation.request),
        "response": _shown(observation.response),
    }


class _FilterResult(msgspec.Struct):
    """The summary of an ExtenderFilterResult."""

    failed: dict[str, str] | None = msgspec.field(name="FailedNodes", default=None)
    unresolvable: dict[str, str] | None = msgspec.field(name="FailedAndUnresolvableNodes", default=None)


class _HostPriority(msgspec.Struct):
    host: str = msgspec.field(name="Host")
    score: int = msgspec.field(name="Score")


def _summary(verb: str, response: bytes) -> dict[str, object]:
    """Return how many nodes failed for which reason, or which nodes have the highest scores."""
    if len(response) > _SUMMED_UP_BYTES:
        return {}
    try:
        if verb == "filter":
            result = msgspec.json.decode(response, type=_FilterResult)
            return {"failed": _reasons(result.failed), "unresolvable": _reasons(result.unresolvable)}
        if verb == "prioritize":
            scores = msgspec.json.decode(response, type=list[_HostPriority])
            best = sorted(scores, key=lambda each: -each.score)[:_SHOWN]
            return {"highest_scores": {each.host: each.score for each in best}}
    except msgspec.DecodeError:
        pass  # a response that is an error alone
    return {}


def _reasons(failed: Mapping[str, str] | None) -> dict[str, int]:
    return dict(Counter((failed or {}).values()).most_common(_SHOWN))


def _shown(body: Body) -> str:
    shown = bytes(body[:_SHOWN_BYTES]).decode(errors="replace")
    return shown if len(body) <= _SHOWN_BYTES else f"{shown}... ({len(body)} bytes)"
