"""Tests of list+watch against the fake API server: what is followed, held to what must be true at every moment.

`Following` runs the real watcher and client on a real port. While it runs, the readiness is held against what the
server itself can testify; in the end, the mirror against a fresh one, fed with the objects that the server has.
"""

import asyncio
import inspect
import itertools
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from types import TracebackType
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, Self

import msgspec

from app.api_server.client import ApiClient
from app.api_server.credentials import Credentials
from app.api_server.tls import ClusterAccess
from app.feeds.freshness import Freshness, ResourceState, SyncStatus
from app.feeds.memory import UNLIMITED, MemoryLimit, MemoryWatch
from app.feeds.objects import MirrorFeed
from app.feeds.retry import Timing
from app.feeds.watcher import Watcher
from app.objects.decode import DecodeError
from app.objects.resources import RESOURCES
from core.events import ClusterEvent, Kind, Object
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.core.mirror.audit import audit
from tests.fake_apiserver import Behaviour, FakeApiServer
from tests.fake_apiserver.faults import LoggedRequest
from tests.fake_apiserver.store import Store

P = ParamSpec("P")

LIMIT: Final = MemoryLimit(100, "the test")
PATIENCE: Final = 30.0  # seconds
QUICK: Final = Timing(
    backoff_first=0.02,
    backoff_longest=0.1,
    gap=0.002,
    shortest_watch=0.25,
    quiet=0.4,
    initial_events=1.5,
    memory=0.1,
    absent=0.1,
    random=lambda: 0.0,
)
READ_TIMEOUT: Final = 1.0
"""More than `shortest_watch`, as it is in service."""
STALE_AFTER: Final = 2.0
BOOKMARKS: Final = 0.05  # seconds between two, so that a quiet watch is followed
_SLACK: Final = 0.3  # seconds that a busy machine may make the follower and the witness differ


class MirrorOnly(MirrorFeed):
    """A feed with its mirror. It lets the garbage collector be, which finds what was not closed."""

    def __init__(self) -> None:
        self.mirror = ClusterMirror()
        super().__init__(self.mirror, time.monotonic, lambda _: None)

    def loading(self) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()


class Counts(NamedTuple):
    """What happened to one resource, each by its kind."""

    requests: Mapping[str, int] = {}
    failures: Mapping[str, int] = {}
    relists: Mapping[str, int] = {}


class Witness:
    """When the server last showed the follower of a resource that it follows, as the server's own log has it."""

    def __init__(self, server: FakeApiServer, state: ResourceState, timing: Timing, begin: float) -> None:
        self._server = server
        self._state = state
        self._timing = timing
        self._lines = 0
        self._lists = 0
        self.rendered_at = begin

    @property
    def _path(self) -> str:
        return self._state.resource.path

    def look(self, now: float) -> None:
        """Look for a line of a watch, a watch that stands, or a list that was completed since the last look."""
        if self._state.absent:
            self.rendered_at = now
        watches = self._server.requests.of(self._path, "watch", "watch-list")
        lines = sum(watch.events for watch in watches)
        stands = any(
            watch.status == 200 and not watch.ended and now - watch.time >= self._timing.shortest_watch
            for watch in watches
        )
        if stands or lines > self._lines:
            self.rendered_at = now
        self._lines = lines
        begun = 0.0
        lists = 0
        for request in self._server.requests.of(self._path, "list", "page"):
            begun = request.time if request.kind == "list" else begun
            if request.status == 200 and request.ended:
                lists += 1
                if lists > self._lists:
                    self.rendered_at = max(self.rendered_at, begun)
        self._lists = lists


class Following:
    """A watcher that follows some resources of a fake API server into a mirror."""

    def __init__(
        self,
        server: FakeApiServer,
        *kinds: Kind,
        timing: Timing = QUICK,
        feed: MirrorOnly | None = None,
        resident: Callable[[], int] | None = None,
    ) -> None:
        """Feed a mirror; `resident` tells the memory that is held, of 100 bytes with the watermark at 90."""
        feed = feed or MirrorOnly()
        self.server = server
        self.mirror = feed.mirror
        self.states = {kind: ResourceState(RESOURCES[kind]) for kind in kinds}
        self.freshness = Freshness(list(self.states.values()), STALE_AFTER, time.monotonic)
        self.seen: set[SyncStatus] = set()
        """How the readiness stood since the last `mark`."""
        self._timing = timing
        self._marked_at = 0.0
        self._complete = False  # whether all that was there was known at the first moment of being fresh
        self._counts_before: dict[Kind, Counts] = {}
        login = Credentials(ClusterAccess(source="test", server=server.url, tls=None), None)
        client = ApiClient(login, read_timeout=READ_TIMEOUT)
        memory = UNLIMITED
        if resident is not None:
            looks = itertools.count()  # a clock by which each look is a new one
            memory = MemoryWatch(LIMIT, 0.9, self.freshness.states, lambda: float(next(looks)), resident=resident)
        self.watcher = Watcher(client, self.freshness.states, feed, timing, memory)
        self.reflectors = dict(zip(kinds, self.watcher.reflectors, strict=True))

    async def __aenter__(self) -> Self:
        self._there_before = {kind: set(self.expected(kind)) for kind in self.states}
        self._following = asyncio.create_task(self.watcher.run())
        self._watching_over = asyncio.create_task(self._watch_over())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        outcomes = await self.stop()
        for outcome in outcomes:
            if isinstance(outcome, Exception) and raised is None:
                raise outcome
        await self.server.until(lambda: self.server.watching() == 0, PATIENCE)  # nothing is left open

    async def stop(self) -> list[BaseException | None]:
        """Follow no longer; return what was raised."""
        self._following.cancel()
        self._watching_over.cancel()
        return list(await asyncio.gather(self._following, self._watching_over, return_exceptions=True))

    # What is there.

    def expected(self, kind: Kind) -> dict[str, Object]:
        """Return the objects of a kind that the server has, that can be read and are to be followed, by full name."""
        resource = RESOURCES[kind]
        found = {}
        for each in self.server.objects(resource.path):
            with suppress(DecodeError):
                decoded = resource.decode(msgspec.json.encode(each))
                if not (isinstance(decoded, Pod) and decoded.terminal):
                    found[decoded.full_name] = decoded
        return found

    def differences(self) -> list[str]:
        """Tell what is known, and what is in the mirror, from what the server has; none if all is well."""
        fresh = ClusterMirror()
        found = []
        for kind, reflector in self.reflectors.items():
            expected = self.expected(kind)
            known = {each.full_name: each for each in reflector.known}
            changed = {name for name in expected | known if expected.get(name) != known.get(name)}
            found += [f"{name}: known {known.get(name)}, is {expected.get(name)}" for name in sorted(changed)]
            for each in expected.values():
                fresh.apply(ClusterEvent("Add", each))
        return found or mirror_differences(fresh, self.mirror)

    # What was asked of the server.

    def requests(self, kind: Kind = Pod) -> list[LoggedRequest]:
        """Return the requests for a resource since the last `mark`."""
        return [request for request in self.server.requests.of(RESOURCES[kind].path) if request.time >= self._marked_at]

    def counts(self, kind: Kind = Pod) -> Counts:
        """Count what happened to a resource since the last `mark`."""
        state, before = self.states[kind], self._counts_before.get(kind, Counts())
        return Counts(
            dict(Counter(request.kind for request in self.requests(kind))),
            dict(state.failures - Counter(before.failures)),
            dict(state.relists - Counter(before.relists)),
        )

    def mark(self) -> None:
        """Count anew from here, and forget how the readiness stood."""
        self._counts_before = {
            kind: Counts({}, dict(state.failures), dict(state.relists)) for kind, state in self.states.items()
        }
        self._marked_at = asyncio.get_running_loop().time()
        self.seen.clear()

    # Waiting.

    async def until(self, condition: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
        """Wait for a condition. Raises AssertionError, at once if what must be true at every moment was not."""
        deadline = time.monotonic() + seconds
        while not condition():
            for task in (self._following, self._watching_over):
                if task.done():
                    await task
            assert time.monotonic() < deadline, f"not {what}: {self._situation()}"
            await asyncio.sleep(0.002)

    async def until_equal(self) -> None:
        """Wait until the mirror is ready and equal to the server, and has been seen to be complete."""
        await self.until(
            lambda: self._complete and self.freshness.status() is SyncStatus.FRESH and not self.differences(),
            "equal to the server",
        )

    async def until_counts(self, expected: Counts, kind: Kind = Pod) -> None:
        """Wait until so much has happened to a resource since the last `mark`, and nothing else."""
        try:
            await self.until(lambda: self.counts(kind) == expected, f"{expected}")
        except AssertionError as error:
            raise AssertionError(f"{self.counts(kind)}, {error}") from None

    async def until_a_line(self, kind: Kind = Pod) -> None:
        """Wait until a watch has told something more, if only a bookmark."""
        events = self.states[kind].events
        before = events.total()
        await self.until(lambda: events.total() > before, "told anything")

    async def until_stale(self, kind: Kind) -> str:
        """Wait until a resource is stale; return its problem. On a machine under load, others may be stale as well."""
        stale = f"{self.states[kind].plural}: stale"
        problems: list[str] = []

        def found() -> bool:
            problems[:] = [each for each in self.freshness.problems() if each.startswith(stale)]
            return bool(problems)

        await self.until(found, stale)
        return problems[0]

    async def stays_quiet(self, seconds: float = 0.12) -> None:
        """Look on for a while in which nothing is asked of the server, and the mirror stays fresh."""
        before, deadline = len(self.server.requests), time.monotonic() + seconds
        while time.monotonic() < deadline:
            await asyncio.sleep(0.01)
            assert len(self.server.requests) == before, self._situation()
            assert self.freshness.status() is SyncStatus.FRESH, self._situation()

    # What must be true at every moment.

    async def _watch_over(self) -> None:
        begin = time.monotonic()
        witnesses = [Witness(self.server, state, self._timing, begin) for state in self.states.values()]
        while True:
            now = time.monotonic()
            for witness in witnesses:
                witness.look(now)
            standing = self.freshness.status()
            self.seen.add(standing)
            if standing is SyncStatus.FRESH:
                ages = [now - witness.rendered_at for witness in witnesses]
                assert max(ages) <= STALE_AFTER + _SLACK, f"fresh, and not followed for {max(ages)} s"
                self._complete = self._complete or self._assert_complete()
            await asyncio.sleep(0.005)

    def _assert_complete(self) -> bool:
        """Check that all that was there in the beginning is known; for the first moment of being fresh."""
        for kind, names in self._there_before.items():
            missing = names & set(self.expected(kind)) - {each.full_name for each in self.reflectors[kind].known}
            # An object that could not be read is passed over, and holds up nothing.
            assert len(missing) <= self.states[kind].decode_errors, f"fresh without {missing}"
        return True

    def _situation(self) -> str:
        requested = [(request.path, request.kind, request.status, request.events) for request in self.server.requests]
        return f"{self.freshness.status()} {self.freshness.problems()} {self.differences()[:3]} {requested[-20:]}"


def mirror_differences(fresh: ClusterMirror, mirror: ClusterMirror) -> list[str]:
    """Tell what two mirrors do not have alike, or what does not stand a recount; none if all is well."""
    parts: Mapping[str, Callable[[ClusterMirror], object]] = {
        "nodes": lambda each: {node.name: (node.labels, node.figures, node.pods) for node in each.dump().nodes},
        "pods of unknown nodes": lambda each: each.dump().pods_of_unknown_nodes,
        "pods": lambda each: {uid: each.get_pod(uid) for uid in each.pods.rows},
        "pending pods": lambda each: {pod.uid: pod for pod in each.pending},
        "nominations": lambda each: {node: set(pods) for node, pods in each.pending.nominated.items()},
        "namespaces": lambda each: dict(each.namespaces),
        "figures": lambda each: each.dump().figures,
        "other objects": lambda each: {
            kind: dict(each.objects(kind)) for kind in RESOURCES if kind not in {Node, Pod, Namespace}
        },
    }
    found = [f"{name}: {part(mirror)}, is {part(fresh)}" for name, part in parts.items() if part(mirror) != part(fresh)]
    return found + audit(mirror)


Scenario = Callable[Concatenate[FakeApiServer, P], Awaitable[None]]


def scenario(**behaviour: Any) -> Callable[[Scenario[P]], Callable[P, None]]:  # noqa: ANN401 - fields of Behaviour
    """Make a test of a coroutine that takes a server, which behaves so (fields of `Behaviour`)."""

    def decorate(test: Scenario[P]) -> Callable[P, None]:
        async def main(*args: P.args, **kwargs: P.kwargs) -> None:
            async with (
                asyncio.timeout(3 * PATIENCE),
                FakeApiServer(Behaviour(**{"bookmark_interval": BOOKMARKS, **behaviour}), store=Store()) as server,
            ):
                await test(server, *args, **kwargs)

        def run(*args: P.args, **kwargs: P.kwargs) -> None:
            asyncio.run(main(*args, **kwargs))

        run.__doc__ = test.__doc__
        signature = inspect.signature(test)
        run.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]  # what pytest reads
        return run

    return decorate


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fail if the block takes longer."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began <= seconds
