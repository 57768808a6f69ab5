"""Applies the measured usage of nodes to the mirror, from the metrics API or another source.

It marks old measurements, and logs each new problem once.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from time import perf_counter
from typing import Annotated, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from app.api_server.client import ApiClient, ApiError, StatusError
from app.api_server.credentials import CredentialsError
from app.objects.decode import MAX_NAME_BYTES, NULL, DecodeError, Unread, Wire, decoding, is_longer, quantity_of
from app.process.logs import one_line
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.mirror.node_values import MAX_AMOUNT, judged, outdated
from core.objects.node import NodeMetrics, Usage
from core.objects.quantity import capped

PATH: Final = "/apis/metrics.k8s.io/v1beta1/nodes"
RBAC_RULE: Final = 'apiGroups: ["metrics.k8s.io"], resources: ["nodes"], verbs: ["get", "list"]'

_REMEDIES: Final[Mapping[int, str]] = {
    HTTPStatus.NOT_FOUND: "no metrics-server is installed",
    HTTPStatus.FORBIDDEN: f"the RBAC rule that is missing: {RBAC_RULE}",
    HTTPStatus.SERVICE_UNAVAILABLE: "metrics-server is not available",
}
REPORTING_INTERVAL: Final = 60
"""A pod that starts less than this number of seconds before the end of a window counts as not measured.

Source: scheduler-plugins trimaran (metricsAgentReportingIntervalSeconds), koordinator loadaware
(DefaultNodeMetricReportInterval).
"""


class Measurements(NamedTuple):
    """The measurements of a source, at most one a node, and its problems, one line for each unusable value."""

    metrics: Sequence[NodeMetrics]
    problems: Sequence[str]


class UsageSource(Protocol):
    """One source, which is read at an interval."""

    name: str
    """In logs."""

    async def measurements(self) -> Measurements:
        """Return the measurements of all nodes. Raises ApiError, CredentialsError, DecodeError, TimeoutError."""

    def remedy(self, error: Exception) -> str:  # noqa: ARG002  # for sources that know one
        """Return the remedy for an error, in one line. Empty if none is known."""
        return ""

    async def close(self) -> None:
        """Close the connections that belong to the source."""


class _Metadata(Wire):
    name: str | None = None


class _Amounts(Wire):
    cpu: Annotated[msgspec.Raw, Unread(str)] = NULL
    memory: Annotated[msgspec.Raw, Unread(str)] = NULL


class _Item(Wire):
    metadata: _Metadata | None = None
    timestamp: str | None = None
    usage: _Amounts | None = None


class _List(Wire):
    items: list[msgspec.Raw] | None = None


_list_decoder: Final = msgspec.json.Decoder(_List)
_item_decoder: Final = msgspec.json.Decoder(_Item)


class MetricsApi(UsageSource):
    """One sample per node, over the window of metrics-server (about 15 s). There are no standard deviations.

    An implausible value is left out and reported. Source: k8s.io/metrics pkg/apis/metrics/v1beta1/types.go.
    """

    name = "metrics.k8s.io"

    def __init__(self, client: ApiClient) -> None:
        """`client` is the client of the API server."""
        self._client = client

    async def measurements(self) -> Measurements:
        """List all nodes; see UsageSource."""
        return decode_node_metrics(await self._client.get(PATH, {}))

    def remedy(self, error: Exception) -> str:
        """Return the remedy if the API is not installed, forbidden or not available. Else empty."""
        return _REMEDIES.get(error.code, "") if isinstance(error, StatusError) else ""

    async def close(self) -> None:
        """Close nothing: the watcher closes the client."""


def decode_node_metrics(raw: bytes) -> Measurements:
    """Decode a list. Raises DecodeError if the JSON is not a list of objects."""
    metrics: dict[str, NodeMetrics] = {}
    problems: list[str] = []
    for index, item in enumerate(decoding(_list_decoder.decode, raw).items or ()):
        try:
            found = _decoded(item, problems)
        except DecodeError as error:
            problems.append(str(error.under(f"items[{index}]")))
        else:
            metrics[found.name] = found
    return Measurements([*metrics.values()], problems)


def covered_until(measured_at: float) -> str:
    """Return the latest start of a pod that a measurement covers, as NodeMetrics has it. Raises ValueError."""
    try:
        return datetime.fromtimestamp(int(measured_at) - REPORTING_INTERVAL, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, OSError) as error:
        raise ValueError(f"{measured_at} is not a time") from error


def plausible(amount: float) -> int:
    """Return a measured amount as an integer. Raises ValueError for an amount that no node can use."""
    if not 0 <= amount <= MAX_AMOUNT:  # also rejects NaN
        raise ValueError(f"{amount} cannot be")
    return round(amount)


def _decoded(raw: msgspec.Raw, problems: list[str]) -> NodeMetrics:
    item = decoding(_item_decoder.decode, raw)
    name = item.metadata.name if item.metadata is not None else None
    if not name or is_longer(name, MAX_NAME_BYTES):
        raise DecodeError("metadata.name", "required" if not name else f"longer than {MAX_NAME_BYTES} bytes")
    measured_at = _seconds(item.timestamp or "")
    usage = item.usage or _Amounts()
    return NodeMetrics(
        name=name,
        measured_at=measured_at,
        covers_pods_until=covered_until(measured_at),
        cpu=_amount(name, "cpu", usage.cpu, problems),
        memory=_amount(name, "memory", usage.memory, problems),
    )


def _seconds(text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise DecodeError("timestamp", f"expected a time in the format of RFC 3339, got {text[:40]!r}") from None
    if found.tzinfo is None:
        raise DecodeError("timestamp", f"without a time zone: {text[:40]!r}")
    return int(found.timestamp())


def _amount(name: str, resource: str, raw: msgspec.Raw, problems: list[str]) -> Usage | None:
    """Return the usage of a resource. None if it is absent or implausible."""
    if raw == NULL:
        problems.append(f"node {name}: usage.{resource}: absent")
        return None
    try:
        exact = quantity_of(raw, f"usage.{resource}")
        return Usage(plausible(capped(exact * 1000 if resource == "cpu" else exact)))
    except ValueError as error:  # DecodeError is a ValueError
        text = str(error) if isinstance(error, DecodeError) else f"usage.{resource}: {error}"
        problems.append(f"node {name}: {text}")
        return None


log = logging.getLogger(__name__)

Apply: TypeAlias = Callable[[ClusterEvent], object]
"""Applies one change to the mirror. The result is ignored."""

_TURN: Final = 0.002  # seconds that the event loop is held; 5,000 measurements take 100 ms
_AGED_EVERY: Final = 5.0  # seconds between two checks of the age of held measurements
_MAX_AHEAD: Final = 60  # seconds that the clock of a node may be ahead
_MAX_LISTED: Final = 3  # values that a log line names


class UsageFeed:
    """Reads one source at an interval. After a failure, the present measurements stay, and become older."""

    def __init__(  # noqa: PLR0913  # a source, a mirror and two times
        self,
        source: UsageSource,
        mirror: ClusterMirror,
        apply: Apply,
        clock: Callable[[], float],
        *,
        interval: float,
        max_age: float,
    ) -> None:
        """`clock` returns seconds since 1970. `interval` and `max_age` are seconds."""
        self._source = source
        self._mirror = mirror
        self._apply = apply
        self._clock = clock
        self._interval = interval
        self._max_age = max_age
        self._problem = ""
        self._logged: frozenset[str] = frozenset()
        self._logged_too_old = False

    async def run(self) -> None:
        """Read the source until cancelled, then close it."""
        try:
            while True:
                await self.poll()
                # By the loop's time, so that polls continue if the clock is set back.
                now = asyncio.get_running_loop().time
                until = now() + self._interval
                while (left := until - now()) > 0:
                    await asyncio.sleep(min(left, _AGED_EVERY))
                    await self.age()
        finally:
            await self._source.close()

    async def poll(self) -> None:
        """Read the source once."""
        try:
            async with asyncio.timeout(self._interval):
                found = await self._source.measurements()
        except (ApiError, CredentialsError, DecodeError) as error:
            self._failed(str(error), self._source.remedy(error))
        except TimeoutError:
            self._failed(f"no response within {self._interval:g} s", "")
        else:
            if self._problem:
                log.info("node usage: %s: responds again", self._source.name)
                self._problem = ""
            latest = self._clock() + _MAX_AHEAD
            ahead = [each for each in found.metrics if each.measured_at > latest]
            self._report([*found.problems, *(f"node {each.name}: its clock is ahead" for each in ahead)])
            await self._take([each for each in found.metrics if each.measured_at <= latest])
        await self.age()

    async def age(self) -> None:
        """Mark the measurements that are too old."""
        aged = [*outdated(self._mirror, self._clock(), self._max_age)]
        await self._tell(ClusterEvent("Update", each) for each in aged)
        stored = [each for each in self._mirror.objects(NodeMetrics).values() if each.too_old]
        if stored and not self._logged_too_old:
            text = "node usage: nodes measured more than %g s ago, ignored: %d, %s first"
            log.warning(text, self._max_age, len(stored), one_line(stored[0].name))
        self._logged_too_old = bool(stored)

    def counts(self) -> dict[str, int]:
        """Return the number of known nodes with a usable measurement, with one that is too old, and with none."""
        stored = self._mirror.objects(NodeMetrics)
        found = Counter(
            "too_old" if stored[name].too_old else "measured" for name in self._mirror.nodes.slots & stored.keys()
        )
        return {
            "measured": found["measured"],
            "too_old": found["too_old"],
            "not_measured": len(self._mirror.nodes.slots) - found.total(),
        }

    async def _take(self, metrics: Sequence[NodeMetrics]) -> None:
        """Apply the measurements of known nodes. Delete the measurements of other nodes, to limit the memory."""
        now, slots = self._clock(), self._mirror.nodes.slots
        gone = [each for name, each in self._mirror.objects(NodeMetrics).items() if name not in slots]
        await self._tell(ClusterEvent("Delete", each) for each in gone)
        await self._tell(
            ClusterEvent("Update", judged(each, now, self._max_age)) for each in metrics if each.name in slots
        )

    async def _tell(self, events: Iterable[ClusterEvent]) -> None:
        began = perf_counter()
        for event in events:
            self._apply(event)
            if perf_counter() - began > _TURN:
                await asyncio.sleep(0)
                began = perf_counter()

    def _failed(self, text: str, remedy: str) -> None:
        if text == self._problem:
            return
        self._problem = text
        hint = f" ({remedy})" if remedy else ""
        log.warning("node usage: %s: %s%s; retried every %g s", self._source.name, one_line(text), hint, self._interval)

    def _report(self, problems: Sequence[str]) -> None:
        """Log the problems that the last poll did not have."""
        new = [each for each in problems if each not in self._logged]
        self._logged = frozenset(problems)
        if new:
            rendered = "; ".join(map(one_line, new[:_MAX_LISTED]))
            more = f"; and {len(new) - _MAX_LISTED} more" if len(new) > _MAX_LISTED else ""
            log.warning("node usage: %s: ignored: %s%s", self._source.name, rendered, more)
