"""The last decisions, so that people can look at one after it was made, and ask again.

Recording a request must be nearly free: it stores only references to existing objects. Bodies may be
64 MB, so that only small ones are kept.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Final, NamedTuple

from app.verbs.observation import Asked, Observation, VerbOutcome
from app.verbs.recent_pods import RecentPods
from core.mirror.cluster import ClusterMirror

MAX_DECISIONS: Final = 4096
MAX_BYTES: Final = 16 * 1024 * 1024
"""Of JSON. A pod's is counted for each of its decisions, though these mostly share it."""
MAX_OF_A_POD: Final = 8
"""Decisions about one pod, or about none, as of requests that could not be read: so that it does not fill all."""
SMALL: Final = 8 * 1024
"""Bytes of the largest body that is kept: some hundred names. To copy one takes up to a microsecond."""
_OVERHEAD: Final = 1024  # bytes that a decision takes besides


class RecordedDecision(NamedTuple):
    """One request and its outcome; see Observation. Bodies are empty where they were not small."""

    number: int
    """From 1, in the order of the responses."""
    at: float
    """Time of day when it was answered, in seconds since 1970."""
    generation: int
    """Of the mirror, when it was answered."""
    verb: str
    outcome: VerbOutcome
    seconds: float
    waited: float
    asked: Asked
    source: str
    error: str
    stale: str
    pod: bytes
    """As the scheduler sent it; empty where that is not known."""
    request_bytes: int
    request: bytes
    response_bytes: int
    response: bytes
    release: str
    """Of Kubernetes, as whose it was answered, `1.37`; empty of a decision that was saved before it was recorded."""

    @property
    def answered_at(self) -> str:
        """When it was answered, RFC 3339."""
        return datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    @property
    def pod_hash(self) -> str:
        """Hash of the pod's JSON; empty where it is not known."""
        return _hash(self.pod)

    @property
    def arguments_hash(self) -> str:
        """Hash of the whole request; empty where it was not kept."""
        return _hash(self.request)


class Decisions:
    """The last decisions, the latest few of each pod; call it with each Observation."""

    def __init__(self, mirror: ClusterMirror, recent_pods: RecentPods, now: Callable[[], float]) -> None:
        """Take where generations and pods are from, and the time of day in seconds since 1970."""
        self._mirror = mirror
        self._recent_pods = recent_pods
        self._now = now
        self._decisions: OrderedDict[int, RecordedDecision] = OrderedDict()  # number -> decision, the oldest first
        self._of_pod: dict[str, list[int]] = {}  # uid -> numbers, the oldest first
        self._bytes = 0
        self.noted = 0
        """How many there were since the start."""

    def __len__(self) -> int:
        return len(self._decisions)

    def __call__(self, observation: Observation) -> None:
        """Record a request."""
        self.noted += 1
        (
            verb,
            outcome,
            seconds,
            waited,
            request_bytes,
            response_bytes,
            asked,
            source,
            error,
            stale,
            _,
            sent,
            answer,
            _,
        ) = observation
        uid = asked.uid
        decision = self._decisions[self.noted] = RecordedDecision(
            self.noted,
            self._now(),
            self._mirror.generation,
            verb,
            outcome,
            seconds,
            waited,
            asked,
            source,
            error,
            stale,
            self._recent_pods.json_of(uid),
            request_bytes,
            bytes(sent) if len(sent) <= SMALL else b"",
            response_bytes,
            answer if len(answer) <= SMALL else b"",
            str(self._mirror.rules.release),
        )
        self._bytes += _weight(decision)
        numbers = self._of_pod.get(uid)
        if numbers is None:
            self._of_pod[uid] = [self.noted]
        else:
            numbers.append(self.noted)
            if len(numbers) > MAX_OF_A_POD:
                self._drop(numbers[0])
        while len(self._decisions) > MAX_DECISIONS or self._bytes > MAX_BYTES:
            self._drop(next(iter(self._decisions)))

    def get(self, number: int) -> RecordedDecision | None:
        """Return a decision, if it is still kept."""
        return self._decisions.get(number)

    def latest(self, pod: str | None = None) -> Iterator[RecordedDecision]:
        """Yield the decisions, or those about one pod by its uid or NAMESPACE/NAME, the latest first."""
        found: Sequence[RecordedDecision]
        if pod is None:
            found = [*self._decisions.values()]
        elif pod in self._of_pod:
            found = [self._decisions[number] for number in self._of_pod[pod]]
        else:
            found = [each for each in self._decisions.values() if each.asked.pod == pod]
        return reversed(found)

    def _drop(self, number: int) -> None:
        """Drop a decision, which is the oldest of its pod."""
        decision = self._decisions.pop(number)
        self._bytes -= _weight(decision)
        numbers = self._of_pod[decision.asked.uid]
        del numbers[0]
        if not numbers:
            del self._of_pod[decision.asked.uid]


def _weight(decision: RecordedDecision) -> int:
    return _OVERHEAD + len(decision.pod) + len(decision.request) + len(decision.response) + len(decision.error)


def _hash(body: bytes) -> str:
    return blake2b(body, digest_size=16).hexdigest() if body else ""
