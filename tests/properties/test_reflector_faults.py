"""The law of list+watch: whatever goes wrong in whatever order, once it is over the mirror equals the cluster.

Meanwhile the server is not stormed, and nobody is told that the mirror is fresh when it is not (see `Following`).
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Literal, NamedTuple, Protocol

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from app.feeds.objects import MirrorFeed
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.feeds.following import Following, MirrorOnly, scenario
from tests.app.feeds.small_cluster import NAMESPACES, NODES, PODS, ZONE, seed
from tests.builders import make_namespace, make_node, make_pod
from tests.depth import tries
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver import resources as served
from tests.fake_apiserver.faults import (
    KINDS,
    Action,
    Close,
    CloseOnAccept,
    Cut,
    End,
    Gzip,
    Kind,
    Replay,
    Response,
    SendLine,
    Stall,
    StreamAction,
    StreamError,
    Undecodable,
    refuse,
    reject_token,
)
from tests.fake_apiserver.listing import WatchListMode
from tests.fake_apiserver.statuses import (
    bad_request,
    expired_watch,
    forbidden,
    internal_error,
    not_found,
    too_large_version,
    too_many_requests,
    unavailable,
)

PATHS: Final = (PODS, NODES, NAMESPACES)
STATUSES: Final = (
    expired_watch(1, 2),
    internal_error(),
    unavailable(),
    too_large_version(9, 1, retry_after=0),
    too_many_requests(0),
    bad_request("invalid resource version"),
    forbidden("kindred", "list", served.NODES),
    not_found(),
)
LINES: Final = (
    b"{",
    b"\xff",
    b'{"type":"MOVED","object":{"metadata":{"name":"web","namespace":"shop"}}}',
    b'{"type":"DELETED","object":{"metadata":{}}}',
    b'{"type":"BOOKMARK","object":{"metadata":{}}}',
)
NONSENSE: Final = ((b"{", "application/json"), (b'{"items":[]}', "application/json"), (b"<html>", "text/html"))
MAX_PAUSE_LENGTH: Final = 60  # milliseconds


class InService(MirrorOnly):
    """The feed that the service has."""

    def loading(self) -> AbstractContextManager[None]:
        """Do as the service does."""
        return MirrorFeed.loading(self)


class Step(Protocol):
    """What happens next."""

    async def happen(self, server: FakeApiServer) -> None:
        """Let it happen."""


class Change(NamedTuple):
    """An object is put, deleted, or deleted and made again."""

    act: Literal["put", "delete", "recreate"]
    path: str
    body: dict[str, Any]

    async def happen(self, server: FakeApiServer) -> None:
        """Make the change, where it can be made."""
        metadata = self.body["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace", "")
        if server.store.get(self.path, name, namespace) is None:
            if self.act != "delete":
                server.create(self.path, self.body)
        elif self.act == "put":
            server.update(self.path, self.body)
        else:
            server.delete(self.path, name, namespace)
            if self.act == "recreate":
                server.create(self.path, self.body)


class SwitchOn(NamedTuple):
    """A fault befalls the next requests, or all until the end."""

    action: Action
    path: str | None
    kinds: Sequence[Kind]
    times: int | None

    async def happen(self, server: FakeApiServer) -> None:
        """Switch it on."""
        server.faults.add(self.action, self.path, *self.kinds, times=self.times)


class Disturb(NamedTuple):
    """Something befalls the watches that run."""

    action: StreamAction
    path: str | None

    async def happen(self, server: FakeApiServer) -> None:
        """Let it befall them."""
        server.disturb(self.action, self.path)


class Compact(NamedTuple):
    """The versions of a resource expire; nothing but its watches are told of what came before."""

    path: str

    async def happen(self, server: FakeApiServer) -> None:
        """Forget them."""
        server.end_watches(self.path)
        server.compact(self.path)


class Restart(NamedTuple):
    """The server is away for a while."""

    milliseconds: int
    drop: bool

    async def happen(self, server: FakeApiServer) -> None:
        """Be away."""
        async with server.refusing_connections(drop=self.drop):
            await asyncio.sleep(self.milliseconds / 1000)


class BecomeAnother(NamedTuple):
    """The server is replaced by one of another version, or with other roles."""

    watch_list: WatchListMode
    forbidden: frozenset[str]

    async def happen(self, server: FakeApiServer) -> None:
        """Serve the requests to come so."""
        server.behaviour.watch_list = self.watch_list
        server.behaviour.forbidden.clear()
        server.behaviour.forbidden.update(self.forbidden)


class Pause(NamedTuple):
    """Nothing happens."""

    milliseconds: int

    async def happen(self, _: FakeApiServer) -> None:
        """Wait."""
        await asyncio.sleep(self.milliseconds / 1000)


paths = st.sampled_from(PATHS)
path_or_any = st.sampled_from((*PATHS, None))
lines = st.integers(0, 4)
pauses = st.integers(0, MAX_PAUSE_LENGTH)
statuses = st.sampled_from(STATUSES)
stream_actions: SearchStrategy[StreamAction] = st.one_of(
    st.builds(End, lines),
    st.builds(Cut, lines, st.integers(1, 40), st.booleans()),
    st.builds(Stall, st.none() | st.sampled_from((0.05, 0.5)), lines),
    st.builds(StreamError, statuses, lines),
    st.builds(SendLine, st.sampled_from(LINES), lines),
    st.builds(Replay, lines),
    st.builds(Undecodable),
)
actions: SearchStrategy[Action] = st.one_of(
    stream_actions,
    st.builds(refuse, statuses),
    st.builds(reject_token),
    st.builds(lambda each: Response(200, each[0], {"Content-Type": each[1]}), st.sampled_from(NONSENSE)),
    st.builds(Close, st.booleans(), st.booleans()),
    st.builds(CloseOnAccept, st.booleans()),
    st.builds(Stall, st.none(), before_head=st.just(value=True)),
    st.builds(Gzip),
)
zones = st.sampled_from("abc")
# What `seed` makes is left alone, so that it tells whether a first sync was complete.
objects: SearchStrategy[tuple[str, Any]] = st.one_of(
    st.builds(
        lambda number, node, app, phase, nominated: (
            PODS,
            make_pod(f"p{number}").on(node).label("app", app).phase(phase).nominated(nominated),
        ),
        st.integers(0, 3),
        st.sampled_from(("n1", "n2", "x0", "x1", "", "")),
        st.sampled_from(("web", "db")),
        st.sampled_from(("Running", "Running", "Running", "Succeeded")),
        st.sampled_from(("", "n1", "x0")),
    ),
    st.builds(lambda number, zone: (NODES, make_node(f"x{number}").label(ZONE, zone)), st.integers(0, 1), zones),
    st.builds(
        lambda number, team: (NAMESPACES, make_namespace(f"s{number}").label("team", team)), st.integers(0, 1), zones
    ),
)


def changes() -> SearchStrategy[Step]:
    """Return a change of one object."""
    acts: SearchStrategy[Literal["put", "delete", "recreate"]] = st.sampled_from(("put", "put", "delete", "recreate"))
    return st.builds(lambda act, each: Change(act, each[0], _without_uid(each[1].obj())), acts, objects)


def strikes() -> SearchStrategy[Step]:
    """Return a fault."""
    kinds = st.lists(st.sampled_from(KINDS), max_size=2, unique=True)
    return st.one_of(
        st.builds(SwitchOn, actions, path_or_any, kinds, st.sampled_from((1, 1, 2, None))),
        st.builds(Disturb, stream_actions, path_or_any),
        st.builds(Compact, paths),
        st.builds(Restart, pauses, st.booleans()),
        st.builds(
            BecomeAnother,
            st.sampled_from(("on", "on", "off", "ignored")),
            st.frozensets(paths, max_size=1),
        ),
    )


def _without_uid(body: dict[str, Any]) -> dict[str, Any]:
    body["metadata"].pop("uid", None)
    return body


def touch_all(server: FakeApiServer) -> None:
    """Let every object be told again, so that none stays unknown for having been unreadable once.

    Twice, as of a watch that was disturbed the next line may be yet to become unreadable.
    """
    for path in 2 * PATHS:
        for body in server.objects(path):
            server.update(path, body)


@settings(max_examples=tries(default=15, full=50))  # each takes a few tenths of a second
@given(
    before=st.lists(strikes(), max_size=2),
    steps=st.lists(st.one_of(changes(), changes(), strikes(), st.builds(Pause, pauses)), max_size=25),
)
@scenario()
async def test_the_mirror_equals_the_cluster_once_all_faults_are_over(
    server: FakeApiServer, before: Sequence[Step], steps: Sequence[Step]
) -> None:
    seed(server)
    for step in before:
        await step.happen(server)
    began = time.monotonic()
    async with Following(server, Node, Pod, Namespace, feed=InService()) as following:
        for step in steps:
            await step.happen(server)
        server.faults.clear()
        server.behaviour.forbidden.clear()
        touch_all(server)
        await following.until_equal()
        faults = len(before) + len(steps)
        lasted = time.monotonic() - began
        for kind in (Node, Pod, Namespace):
            # One a wait (`backoff_longest`, without jitter), and for a fault at most four that need not wait: the one
            # that it befalls, with a second login, and a sync by WatchList and by pages behind it.
            assert len(following.requests(kind)) <= 4 * (faults + 1) + 10 * lasted
        await following.until(lambda: not any(state.problem for state in following.states.values()), "well")
