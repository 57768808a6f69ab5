"""`GET /cluster`, `/names`, `/samples`, `/pending`, `/units` and `/events`: the page without a question."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
import pytest
from fastapi import FastAPI

from app.admin import cluster_routes
from app.admin.cluster_routes import cluster_router, events_router, pieces_of, units_router
from app.admin.explain_routes import Sample
from app.api_server.credentials import Credentials
from app.api_server.tls import ClusterAccess
from app.explain.explainer import MirrorState
from app.explain.pending import PendingPods
from app.process.json_text import decode, encode
from app.server.connections import RejectReason
from app.server.ports import Port, admin_port
from app.settings.limits import DEFAULTS, Limits
from app.settings.settings import Settings
from app.verbs.admission import ServingState
from app.wiring.main import create_service
from core.diagnosis.cluster_view import ClusterView
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.groups import GroupCondition, SchedulingGroup
from tests.app.asgi import ask
from tests.app.explain.test_pending import cluster, explainer_of
from tests.app.questions import mirror_of
from tests.app.server.conversations import PATIENCE, connected, read_response, request, serving, until
from tests.app.short_pieces import ShortPieces
from tests.builders import Object, make_node, make_pod
from tests.conformance.engine import load
from tests.core.gangs.gang_setting import GangSetting, member

SAMPLES = (Sample("web", msgspec.Raw(b'{"metadata":{"name":"web"}}')),)


@pytest.fixture(scope="module")
def admin() -> FastAPI:
    nodes = [
        make_node("n1").label("example.com/rack", "r1").label("row", "7").allocatable(cpu="4", memory="8Gi", pods=110),
        make_node("n2").label("example.com/rack", "r2").allocatable(cpu="4", memory="8Gi", pods=110),
    ]
    pods = [make_pod("web-0").in_namespace("shop").uid("u").on("n1").obj()]
    service = create_service(
        Settings(admin="127.0.0.1:0"), load([], [each.obj() for each in nodes], pods), None, samples=SAMPLES
    )
    assert service.admin is not None
    return service.admin


def message(app: FastAPI, path: str) -> Object:
    response = ask(app, "GET", path)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    content: Object = response.json()
    return content


def test_the_cluster_is_written_as_its_struct_is(admin: FastAPI) -> None:
    text = ask(admin, "GET", "/cluster").content
    view = msgspec.json.decode(text, type=ClusterView)
    assert view.names == ["n1", "n2"]
    assert [each.resource for each in view.resources] == ["cpu", "memory", "pods"]
    assert view.resources[2].requested == [1, 0]
    assert encode(view) == text


def test_others_have_their_turns_while_the_nodes_are_visited() -> None:
    app, work = FastAPI(), ShortPieces()
    app.include_router(cluster_router(mirror_of(*(make_node(f"n{number}") for number in range(20))), work))
    assert len(message(app, "/cluster")["names"]) == 20
    assert work.gave_way >= 20


def test_racks_are_those_of_the_label_that_is_asked_for(admin: FastAPI) -> None:
    assert message(admin, "/cluster")["racks"] == ["", "r1", "r2"]
    assert message(admin, "/cluster?rack=row")["racks"] == ["", "7"]


@pytest.mark.parametrize(
    ("query", "status", "detail"),
    [
        pytest.param("rack=a%20b", 400, "rack: ", id="no-label-key"),
        pytest.param("rack=example.com/rak", 404, "rack: no node has the label example.com/rak", id="unknown"),
        pytest.param("rack=", 422, None, id="empty"),
        pytest.param("racks=row", 422, None, id="no-such-parameter"),
    ],
)
def test_a_label_of_racks_that_cannot_be_is_refused(
    admin: FastAPI, query: str, status: int, detail: str | None
) -> None:
    response = ask(admin, "GET", f"/cluster?{query}")
    assert status == response.status_code
    if detail is not None:
        assert response.json()["detail"].startswith(detail)
        assert response.json()["field"] == "rack"


def test_names_are_completed(admin: FastAPI) -> None:
    assert message(admin, "/names?text=n&limit=1") == {"nodes": ["n1"], "pods": [], "more": True, "names_hidden": ""}
    assert message(admin, "/names?text=web")["pods"] == [{"pod": "shop/web-0", "node": "n1"}]


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "text=" + "x" * 513, "prefix=a"])
def test_a_search_that_is_too_large_is_refused(admin: FastAPI, query: str) -> None:
    assert ask(admin, "GET", f"/names?{query}").status_code == 422


def test_samples_are_offered_as_manifests(admin: FastAPI) -> None:
    assert message(admin, "/samples") == {"samples": [{"name": "web", "pod": {"metadata": {"name": "web"}}}]}


def test_a_cluster_of_ones_own_has_no_samples() -> None:
    service = create_service(Settings(admin="127.0.0.1:0"), load([], [], []), None)
    assert service.admin is not None
    assert message(service.admin, "/samples") == {"samples": []}


def app_of(setting: GangSetting) -> FastAPI:
    app = FastAPI()
    app.include_router(units_router(lambda: setting.gangs.unit_statuses(setting.now)))
    return app


def test_units_are_asked_for_by_namespace() -> None:
    setting = GangSetting()
    setting.see(member("a"), member("x").in_namespace("def"))
    app = app_of(setting)
    assert [each["unit"] for each in ask(app, "GET", "/units?namespace=def").json()["units"]] == ["def/train"]
    assert ask(app, "GET", "/units?namespace=none").json() == {"units": []}
    assert ask(app, "GET", "/units?namespace=").status_code == 422
    assert ask(app, "GET", "/units?name=shop").status_code == 422


CONDITION: Final = GroupCondition("PodGroupInitiallyScheduled", "False", "Unschedulable", "0/1 nodes", "2026-01-01")


def with_scheduling_group() -> ClusterMirror:
    """Return a mirror with a group of kube-scheduler between two groups of Kindred."""
    upstream = [make_pod(f"m{number}").in_scheduling_group("team") for number in range(2)]
    mirror = mirror_of(make_node("n0"), *(make_pod(name).of_group(name, 2) for name in ("a", "z")), *upstream)
    group = SchedulingGroup(namespace="default", name="team", minimum=3, conditions=(CONDITION,))
    mirror.apply(ClusterEvent("Add", group))
    return mirror


def listed(settings: Settings, credentials: Credentials | None = None) -> list[dict[str, Any]]:
    admin = create_service(settings, with_scheduling_group(), credentials).admin
    assert admin is not None
    found: list[dict[str, Any]] = ask(admin, "GET", "/units").json()["units"]
    return found


def test_groups_of_kube_scheduler_are_in_the_same_list_by_name() -> None:
    credentials = Credentials(ClusterAccess("test", "http://127.0.0.1:1", None), None)
    found = listed(Settings(decide="listed-nodes", admin="127.0.0.1:0"), credentials)
    assert [(each["unit"], each["placed_by"]) for each in found] == [
        ("default/a", "kindred"),
        ("default/team", "kube-scheduler"),
        ("default/z", "kindred"),
    ]
    team = found[1]
    assert (team["status"], team["reason"]) == ("pending", "waits for 1 more member of 3")
    assert [team[name] for name in ("minimum", "members", "pending", "packing")] == [3, 2, 2, None]
    assert team["conditions"] == [
        {
            "type": "PodGroupInitiallyScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/1 nodes",
            "since": "2026-01-01",
        }
    ]


def test_a_service_that_places_nothing_together_lists_the_groups_of_kube_scheduler() -> None:
    assert [each["unit"] for each in listed(Settings(admin="127.0.0.1:0"))] == ["default/team"]


def test_a_podgroup_that_could_not_be_read_yet_is_not_said_to_be_missing() -> None:
    mirror = mirror_of(make_pod("m").in_scheduling_group("team"))
    credentials = Credentials(ClusterAccess("test", "http://127.0.0.1:1", None), None)
    admin = create_service(Settings(admin="127.0.0.1:0"), mirror, credentials).admin
    assert admin is not None
    (unit,) = ask(admin, "GET", "/units").json()["units"]
    assert unit["reason"] == "its minimum is unknown: podgroups.scheduling.k8s.io: not synced"


def admin_of_pending() -> FastAPI:
    mirror = load(
        [],
        [make_node("n1").allocatable(cpu=1, pods=10).obj()],
        [make_pod("large").requests(cpu=2).obj(), make_pod("other").in_namespace("shop").requests(cpu=1).obj()],
    )
    app = create_service(Settings(admin="127.0.0.1:0", listen="127.0.0.1:0"), mirror, None).admin
    assert app is not None
    return app


def test_pending_pods_are_judged_by_every_rule_though_affinity_alone_is_served() -> None:
    message = ask(admin_of_pending(), "GET", "/pending").json()
    assert [(each["pod"], each["class"], each["state"]) for each in message["pods"]] == [
        ("default/large", 0, "unschedulable"),
        ("shop/other", 1, "fits"),
    ]
    reason = message["classes"][0]["reasons"][0]
    assert (reason["reason"], reason["judged_by"]) == ("Insufficient cpu", "kube-scheduler")


def test_pending_pods_are_asked_for_by_namespace() -> None:
    app = admin_of_pending()
    assert [each["pod"] for each in ask(app, "GET", "/pending?namespace=shop").json()["pods"]] == ["shop/other"]
    assert ask(app, "GET", "/pending?namespace=").status_code == 422
    assert ask(app, "GET", "/pending?name=shop").status_code == 422


def test_the_response_is_written_pod_by_pod_as_its_struct_is() -> None:
    pods = [make_pod(f"p{number}").requests(cpu=9) for number in range(20)]
    explainer = explainer_of(cluster(*pods[1:], pods[0].in_scheduling_group("team")))
    judged = asyncio.run(explainer.judge())
    pieces = [*pieces_of(explainer.view(judged))]
    text = b"".join(pieces)
    assert max(each.count(b'"uid":') for each in pieces) == 1
    assert encode(explainer.view(judged).message()) == text
    found = decode(text, PendingPods)
    assert (len(found.pods), len(found.units)) == (20, 1)


GET = request("/events", method="GET")


TICK = 0.01  # seconds


class Source:
    """A mirror's state that a test changes, and how often it was looked at."""

    def __init__(self) -> None:
        self.generation = 1
        self.pending_changes = 4
        self.looks = 0
        self.text = "fresh"

    def __call__(self) -> MirrorState:
        self.looks += 1
        return MirrorState(self.generation, 3, 5, self.text, ())


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_routes, "_TICK", TICK)


@asynccontextmanager
async def served(source: Source, state: ServingState, limits: Limits = DEFAULTS) -> AsyncIterator[tuple[Port, int]]:
    app = FastAPI()
    app.include_router(events_router(source, lambda: source.pending_changes, state))
    port = admin_port(Settings(admin="127.0.0.1:0"), app, limits)
    async with serving(port) as (_, number):
        yield port, number


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE):
            await story()

    asyncio.run(bounded())


async def begun(reader: asyncio.StreamReader) -> str:
    """Read the head of a stream, and give its type."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    assert head.startswith("HTTP/1.1 200 ")
    assert "transfer-encoding: chunked" in head.lower()
    return next(line.partition(": ")[2] for line in head.split("\r\n") if line.lower().startswith("content-type"))


async def chunk(reader: asyncio.StreamReader) -> bytes:
    """Read what was sent at once; nothing at the end of the stream."""
    size = int(await reader.readline(), 16)
    text = await reader.readexactly(size)
    await reader.readline()
    return text


async def event(reader: asyncio.StreamReader) -> Any:  # noqa: ANN401  # decoded JSON
    text = await chunk(reader)
    assert text.startswith(b"data: ")
    assert text.endswith(b"\n\n")
    return json.loads(text.removeprefix(b"data: "))


def test_the_state_comes_at_once_and_again_when_it_has_changed() -> None:
    async def story() -> None:
        source = Source()
        async with served(source, ServingState()) as (_, number), connected(number) as (reader, writer):
            writer.write(GET)
            assert await begun(reader) == "text/event-stream; charset=utf-8"
            first = {"generation": 1, "nodes": 3, "pods": 5, "standing": "fresh", "problems": [], "pending_changes": 4}
            assert await event(reader) == first
            looks = source.looks
            await until(lambda: source.looks > looks + 2)
            source.generation = 7
            assert (await event(reader))["generation"] == 7
            source.pending_changes = 5
            assert await event(reader) == {**first, "generation": 7, "pending_changes": 5}

    run(story)


def test_the_state_is_looked_at_once_in_five_ticks_however_often_it_changes() -> None:
    async def story() -> None:
        source = Source()
        async with served(source, ServingState()) as (_, number), connected(number) as (reader, writer):
            writer.write(GET)
            await begun(reader)
            loop = asyncio.get_running_loop()
            looks, started = source.looks, loop.time()
            for generation in range(2, 200):
                source.generation = generation
                await asyncio.sleep(0.001)
            assert source.looks - looks <= 2 + (loop.time() - started) / (5 * TICK)

    run(story)


def test_a_comment_is_sent_where_nothing_changes_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_routes, "_SILENCE", 3)

    async def story() -> None:
        async with served(Source(), ServingState()) as (_, number), connected(number) as (reader, writer):
            writer.write(GET)
            await begun(reader)
            await event(reader)
            assert [await chunk(reader), await chunk(reader)] == [b": nothing has changed\n\n"] * 2

    run(story)


def test_the_streams_end_when_the_process_is_about_to_and_no_other_begins() -> None:
    async def story() -> None:
        state = ServingState()
        async with served(Source(), state) as (_, number), connected(number) as (reader, writer):
            writer.write(GET)
            await begun(reader)
            await event(reader)
            state.draining = True
            assert await chunk(reader) == b""
            writer.write(GET)
            status, _, body = await read_response(reader)
            assert (status, json.loads(body)) == (503, {"detail": "the service is ending"})

    run(story)


def test_a_client_more_than_may_be_is_refused_until_another_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_routes, "MAX_FOLLOWERS", 1)

    async def story() -> None:
        async with served(Source(), ServingState()) as (port, number):
            async with connected(number) as (reader, writer):
                writer.write(GET)
                await begun(reader)
                await event(reader)
                async with connected(number) as (second, asking):
                    asking.write(GET)
                    assert (await read_response(second))[0] == 503
            await until(lambda: not port.connections.connections)
            async with connected(number) as (reader, writer):
                writer.write(GET)
                await begun(reader)

    run(story)


def test_a_client_that_reads_nothing_is_closed() -> None:
    async def story() -> None:
        source = Source()
        source.text = "x" * 1_000_000
        limits = Limits(read_timeout=0.2)
        async with served(source, ServingState(), limits) as (port, number), connected(number) as (_, writer):
            writer.write(GET)
            while not port.connections.rejected[RejectReason.RESPONSE_NOT_READ]:
                source.generation += 1
                await asyncio.sleep(0.05)
            await until(lambda: not port.connections.connections)

    run(story)
