"""Applies the measurements of a source to the mirror, marks old measurements, and logs each new problem once."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Final, Protocol, TypeAlias

from app.api_server.client import ApiError
from app.api_server.credentials import CredentialsError
from app.objects.decode import DecodeError
from app.process.logs import one_line
from app.usage.metrics_api import Measurements
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.mirror.node_values import judged, outdated
from core.objects.node import NodeMetrics

log = logging.getLogger(__name__)

Apply: TypeAlias = Callable[[ClusterEvent], object]
"""Applies one change to the mirror. The result is ignored."""

_SOURCE_ERRORS: Final = (ApiError, CredentialsError, DecodeError)
"""Errors that a source raises when its request fails, or the response cannot be decoded."""
_TURN: Final = 0.002  # seconds that the event loop is held; 5,000 measurements take 100 ms
_AGED_EVERY: Final = 5.0  # seconds between two checks of the age of held measurements
_MAX_AHEAD: Final = 60  # seconds that the clock of a node may be ahead
_SHOWN: Final = 3  # values that a log line names


class UsageSource(Protocol):
    """One source, which is read at an interval."""

    @property
    def name(self) -> str:
        """The name of the source in logs."""

    async def measurements(self) -> Measurements:
        """Return the measurements of all nodes. Raises ApiError, CredentialsError, DecodeError, TimeoutError."""

    def remedy(self, error: Exception) -> str:
        """Return the remedy for an error, in one line. Empty if none is known."""

    async def close(self) -> None:
        """Close the connections that belong to the source."""


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
        self._said: frozenset[str] = frozenset()
        self._said_too_old = False
        self._began = 0.0

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
        except _SOURCE_ERRORS as error:
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
        held = [each for each in self._mirror.objects(NodeMetrics).values() if each.too_old]
        if held and not self._said_too_old:
            text = "node usage: nodes measured more than %g s ago, ignored: %d, %s first"
            log.warning(text, self._max_age, len(held), one_line(held[0].name))
        self._said_too_old = bool(held)

    def counts(self) -> dict[str, int]:
        """Return the number of known nodes with a usable measurement, with one that is too old, and with none."""
        held = self._mirror.objects(NodeMetrics)
        found = Counter(
            "too_old" if held[name].too_old else "measured" for name in self._mirror.nodes.slots & held.keys()
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
        self._began = perf_counter()
        for event in events:
            self._apply(event)
            if perf_counter() - self._began > _TURN:
                await asyncio.sleep(0)
                self._began = perf_counter()

    def _failed(self, text: str, remedy: str) -> None:
        if text == self._problem:
            return
        self._problem = text
        hint = f" ({remedy})" if remedy else ""
        log.warning("node usage: %s: %s%s; retried every %g s", self._source.name, one_line(text), hint, self._interval)

    def _report(self, problems: Sequence[str]) -> None:
        """Log the problems that the last poll did not have."""
        new = [each for each in problems if each not in self._said]
        self._said = frozenset(problems)
        if new:
            shown = "; ".join(map(one_line, new[:_SHOWN]))
            more = f"; and {len(new) - _SHOWN} more" if len(new) > _SHOWN else ""
            log.warning("node usage: %s: ignored: %s%s", self._source.name, shown, more)
