"""The last decisions, so that people can inspect them.

Recording a request must be nearly free, so it stores only references to existing objects. Bodies may have 64 MB, so
only small ones are kept.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Final

import msgspec

from app.verbs.request import RecentPods, Request, VerbOutcome
from core.mirror.cluster import ClusterMirror
from core.releases.release import Release

MAX_DECISIONS: Final = 4096
MAX_BYTES: Final = 16 * 1024 * 1024
"""Bytes of JSON in all decisions. A pod's JSON counts for each of its decisions, although they mostly share it."""
MAX_OF_A_POD: Final = 8
"""Decisions kept for one pod, so that one pod does not take all space. Unreadable requests count as one pod."""
SMALL: Final = 8 * 1024
"""Bytes of the largest body that is kept: some hundred names. A copy takes up to a microsecond."""
_OVERHEAD: Final = 1024  # further bytes that a decision takes


class RecordedDecision(msgspec.Struct, frozen=True, gc=False):
    """One request and its outcome, see Request. Bodies that were not small are empty."""

    id: int
    """From 1, in the order of the responses."""
    time: float
    """Time of the response, in seconds since 1970."""
    generation: int
    """Generation of the mirror at the time of the response."""
    verb: str
    outcome: VerbOutcome
    seconds: float
    waited: float
    pod: str
    """NAMESPACE/NAME"""
    uid: str
    nodes: int
    passed: int
    source: str
    error: str
    stale: str
    pod_sent: bytes
    """The pod's JSON in the scheduler's request. Empty if unknown."""
    request_bytes: int
    request: bytes
    response_bytes: int
    response: bytes
    release: Release

    @property
    def at(self) -> str:
        """Time of the response, RFC 3339."""
        return datetime.fromtimestamp(self.time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    @property
    def pod_hash(self) -> str:
        """Hash of the pod's JSON. Empty if the JSON is unknown."""
        return _hash(self.pod_sent)

    @property
    def arguments_hash(self) -> str:
        """Hash of the whole request. Empty if the request was not kept."""
        return _hash(self.request)

    @property
    def kubernetes(self) -> str:
        """Release of Kubernetes whose rules applied, `1.37`."""
        return str(self.release)


class Decisions:
    """The last decisions, of each pod only the latest few. Call it with each request, before its body is released."""

    def __init__(self, mirror: ClusterMirror, recent_pods: RecentPods, now: Callable[[], float]) -> None:
        """`mirror` has the generation, `recent_pods` has the pods. `now` returns seconds since 1970."""
        self._mirror = mirror
        self._recent_pods = recent_pods
        self._now = now
        self._decisions: OrderedDict[int, RecordedDecision] = OrderedDict()  # number -> decision, the oldest first
        self._of_pod: dict[str, list[int]] = {}  # uid -> numbers, the oldest first
        self._bytes = 0
        self.noted = 0
        """Number of decisions since the start."""

    def __len__(self) -> int:
        return len(self._decisions)

    def __call__(self, request: Request) -> None:
        """Record a request, unless it was a dry run."""
        if request.dry_run:
            return
        self.noted += 1
        response = request.response
        uid, sent, response_body = response.uid, request.body, response.body
        decision = self._decisions[self.noted] = RecordedDecision(
            self.noted,
            self._now(),
            self._mirror.generation,
            request.verb,
            response.outcome,
            request.seconds,
            request.waited,
            response.pod,
            uid,
            response.nodes,
            response.passed,
            response.source,
            response.error,
            request.stale,
            self._recent_pods.json_of(uid),
            request.size,
            bytes(sent) if len(sent) <= SMALL else b"",
            len(response_body),
            response_body if len(response_body) <= SMALL else b"",
            self._mirror.rules.release,
        )
        self._bytes += _weight(decision)
        numbers = self._of_pod.setdefault(uid, [])
        numbers.append(self.noted)
        if len(numbers) > MAX_OF_A_POD:
            self._drop(numbers[0])
        while len(self._decisions) > MAX_DECISIONS or self._bytes > MAX_BYTES:
            self._drop(next(iter(self._decisions)))

    def get(self, number: int) -> RecordedDecision | None:
        """Return a decision. None if it is no longer kept."""
        return self._decisions.get(number)

    def latest(self, pod: str | None = None) -> Iterator[RecordedDecision]:
        """Yield the decisions, or those about one pod by its uid or NAMESPACE/NAME, the latest first."""
        found: Sequence[RecordedDecision]
        if pod is None:
            found = [*self._decisions.values()]
        elif pod in self._of_pod:
            found = [self._decisions[number] for number in self._of_pod[pod]]
        else:
            found = [each for each in self._decisions.values() if each.pod == pod]
        return reversed(found)

    def _drop(self, number: int) -> None:
        """Drop a decision. It must be the oldest of its pod."""
        decision = self._decisions.pop(number)
        self._bytes -= _weight(decision)
        numbers = self._of_pod[decision.uid]
        del numbers[0]
        if not numbers:
            del self._of_pod[decision.uid]


def _weight(decision: RecordedDecision) -> int:
    return _OVERHEAD + len(decision.pod_sent) + len(decision.request) + len(decision.response) + len(decision.error)


def _hash(body: bytes) -> str:
    return blake2b(body, digest_size=16).hexdigest() if body else ""
