"""What probes and people ask."""

import asyncio
import platform
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families

from app import __version__
from app.admin.health_routes import health_router, metrics_router
from app.api_server.elector import Elector
from app.feeds.freshness import Freshness, ResourceState
from app.feeds.memory import MemoryLimit, MemoryWatch, memory_limit
from app.feeds.release import ReleaseTracker
from app.objects.resources import RESOURCES
from app.process.long_work import LongWork
from app.settings.limits import Limits
from app.settings.settings import Settings
from app.telemetry.metrics import Metrics
from app.verbs.admission import ServingState, Takeover
from app.wiring.main import create_service
from core.events import ClusterEvent, Kind
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.asgi import ask
from tests.app.questions import mirror_of
from tests.builders import make_namespace, make_node, make_pod


def response(mirror: ClusterMirror, path: str) -> object:
    response = ask(create_service(Settings(), mirror, None).app, "GET", path)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    return response.json()


def test_livez_is_ok_even_over_an_empty_mirror() -> None:
    assert response(ClusterMirror(), "/livez") == "ok"


def test_version_says_which_program_which_python_and_which_kubernetes() -> None:
    reported = response(ClusterMirror(), "/version")
    kubernetes = {"release": "1.34", "source": "default", "exact": False, "told": "", "ignored_gates": []}
    assert reported == {"version": __version__, "python": platform.python_version(), "kubernetes": kubernetes}
    fixed = Settings(kubernetes="1.36")
    reported = ask(create_service(fixed, ClusterMirror(), None).app, "GET", "/version").json()["kubernetes"]
    assert reported == {"release": "1.36", "source": "setting", "exact": True, "told": "1.36", "ignored_gates": []}


def test_readyz_counts_nodes_namespaces_and_the_pods_that_occupy_a_node() -> None:
    mirror = mirror_of(
        make_namespace("shop"),
        make_node("n1"),
        make_node("n2"),
        make_pod("placed").on("n1"),
        make_pod("terminating").on("n1").terminating(),
        make_pod("early").on("late"),
        make_pod("pending"),
        make_pod("done").on("n1").phase("Succeeded"),
    )
    stored = {"generation": mirror.generation, "nodes": 2, "pods": 3, "pending": 1, "namespaces": 1}
    assert {"ready": True, **stored, "leader": None, "problems": [], "resources": {}} == response(mirror, "/readyz")


class Following(Elector):
    """The leadership of a replica that does not lead."""

    leader = "kindred-1_uuid"

    def __init__(self) -> None:
        pass

    def leads(self) -> bool:
        return False

    def problem(self) -> str:
        return "another replica leads: kindred-1"

    def seconds_left(self) -> float:
        return 0.0

    async def resign(self, *, landed: bool = True) -> None:  # noqa: ARG002  # it is part of the interface
        raise AssertionError("it has nothing to give up")


class Waiting(Takeover):
    """Earlier decisions have not settled."""

    def __init__(self) -> None:
        pass

    def problem(self) -> str:
        return "waiting for earlier decisions to settle"


class FollowedCluster:
    """Readiness over three resources whose states, and whose time, the test sets."""

    def __init__(self, *, names: bool = True) -> None:
        self.now = 100.0
        kinds: tuple[Kind, ...] = (Node, Pod, Namespace)
        self.states = {kind: ResourceState(RESOURCES[kind]) for kind in kinds}
        freshness = Freshness(list(self.states.values()), 10.0, lambda: self.now)
        self.state = ServingState()
        self.app = FastAPI()
        release = ReleaseTracker(Settings(), ClusterMirror())
        self.app.include_router(health_router(ClusterMirror(), freshness, self.state, release, names=names))

    def sync(self, *kinds: Kind) -> None:
        """Let the mirror have all objects of the kinds now."""
        for kind in kinds:
            self.states[kind].synced = True
            self.states[kind].followed_at = self.now

    def readyz(self) -> tuple[int, dict[str, Any]]:
        response = ask(self.app, "GET", "/readyz")
        return response.status_code, response.json()


def test_readyz_is_false_until_every_resource_is_synced() -> None:
    cluster = FollowedCluster()
    cluster.sync(Node, Namespace)
    code, body = cluster.readyz()
    assert (code, body["ready"], body["problems"]) == (503, False, ["pods: not synced"])
    assert body["resources"]["pods"]["seconds_since_last_byte"] is None
    cluster.sync(Pod)
    code, body = cluster.readyz()
    assert (code, body["ready"], body["problems"]) == (200, True, [])
    assert [each["synced"] for each in body["resources"].values()] == [True, True, True]


def test_readyz_is_false_again_when_one_resource_is_stale() -> None:
    cluster = FollowedCluster()
    cluster.sync(Node, Pod, Namespace)
    cluster.now += 10
    assert cluster.readyz()[0] == 200
    cluster.sync(Node, Namespace)
    cluster.now += 0.5
    cluster.states[Pod].problem = "Connection refused"
    code, body = cluster.readyz()
    assert (code, body["problems"]) == (503, ["pods: stale for 10 s (Connection refused)"])
    expected = {
        "synced": True,
        "serves": True,
        "absent": False,
        "seconds_since_last_byte": 10.5,
        "problem": "Connection refused",
    }
    assert body["resources"]["pods"] == {**expected, "missing_rbac_rule": None}
    assert body["resources"]["nodes"]["seconds_since_last_byte"] == 0.5


def test_readyz_is_false_while_the_process_ends() -> None:
    cluster = FollowedCluster()
    cluster.sync(Node, Pod, Namespace)
    cluster.state.draining = True
    code, body = cluster.readyz()
    assert (code, body["ready"], body["problems"]) == (503, False, ["draining"])


def test_readyz_is_false_while_another_replica_leads() -> None:
    cluster = FollowedCluster()
    cluster.sync(Node, Pod, Namespace)
    cluster.state.leadership = Following()
    code, body = cluster.readyz()
    assert (code, body["leader"], body["problems"]) == (503, "kindred-1_uuid", ["another replica leads: kindred-1"])


def test_readyz_names_the_rbac_rule_that_is_missing() -> None:
    cluster = FollowedCluster()
    cluster.sync(Node, Namespace)
    cluster.states[Pod].forbidden, cluster.states[Pod].problem = True, "403 Forbidden"
    rule = 'apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"]'
    _, body = cluster.readyz()
    assert body["problems"] == [f"pods: not synced (403 Forbidden); the RBAC rule that is missing: {rule}"]
    assert body["resources"]["pods"]["missing_rbac_rule"] == rule
    assert body["resources"]["nodes"]["missing_rbac_rule"] is None


def test_without_names_readyz_has_the_kinds_of_problems_and_sums() -> None:
    cluster = FollowedCluster(names=False)
    cluster.states[Pod].forbidden, cluster.states[Pod].problem = True, "403 at https://10.0.0.1"
    cluster.state.leadership, cluster.state.draining = Following(), True
    sums = {"generation": 0, "nodes": 0, "pods": 0, "pending": 0, "namespaces": 0}
    problems = ["draining", "not leading", "the mirror is not synced"]
    assert cluster.readyz() == (
        503,
        {"ready": False, **sums, "leader": None, "problems": problems, "resources": {}},
    )
    cluster.sync(Node, Pod, Namespace)
    cluster.now += 10.5
    assert cluster.readyz()[1]["problems"] == ["draining", "not leading", "the mirror is stale"]
    cluster.sync(Node, Pod, Namespace)
    cluster.state.leadership, cluster.state.draining = None, False
    assert cluster.readyz() == (200, {"ready": True, **sums, "leader": None, "problems": [], "resources": {}})


def test_every_problem_has_a_kind() -> None:
    limit = MemoryLimit(1000, "the limit of the cgroup")
    full = MemoryWatch(limit, 0.9, [], lambda: 0.0, resident=lambda: 950)
    state = ServingState(Following(), full, Waiting())
    state.draining = True
    assert len(state.problems()) == len(state.kinds_of_problems()) == 4
    assert state.kinds_of_problems() == ["draining", "not leading", "waiting for earlier decisions", "memory"]
    assert (state.rejection(), ServingState(Following(), names=False).rejection()) == (
        "not leading: another replica leads: kindred-1",
        "not leading",
    )


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/version"])
def test_probes_only_read(path: str) -> None:
    assert ask(create_service(Settings(), ClusterMirror(), None).app, "POST", path).status_code == 405


def test_above_the_memory_watermark_it_is_not_ready_and_says_which_kind_takes_most() -> None:
    pods = ResourceState(RESOURCES[Pod])
    pods.synced, pods.followed_at, pods.objects, pods.read_objects, pods.read_bytes = True, 1.0, 7, 1, 2048
    stored = [950]
    clock = iter(range(1000))
    memory = MemoryWatch(
        MemoryLimit(1000, "the limit of the cgroup"), 0.9, [pods], lambda: next(clock), resident=lambda: stored[0]
    )
    state = ServingState(memory=memory)
    app = FastAPI()
    release = ReleaseTracker(Settings(), ClusterMirror())
    app.include_router(health_router(ClusterMirror(), Freshness([pods], 180.0, lambda: 1.0), state, release))
    reported = ask(app, "GET", "/readyz")
    assert reported.status_code == 503
    (problem,) = reported.json()["problems"]
    assert problem.startswith("memory: 950 B in use, above the watermark of 900 B (the limit of the cgroup: 1000 B); ")
    assert problem.endswith("; pods: 7 objects, 14 KiB on the wire")
    assert ask(app, "GET", "/livez").status_code == 200
    stored[0] = 800
    assert ask(app, "GET", "/readyz").status_code == 200


def test_a_service_watches_the_memory_that_its_cgroup_allows() -> None:
    memory = create_service(Settings(), ClusterMirror(), None, limits=Limits(memory_watermark=0.5)).state.memory
    assert memory.limit == memory_limit()
    assert memory.mark == memory.limit.bytes // 2


def served(nodes: int) -> FastAPI:
    mirror = ClusterMirror()
    for number in range(nodes):
        mirror.apply(ClusterEvent("Add", Node(f"n{number}")))
    app = FastAPI()
    app.include_router(metrics_router(Metrics(mirror, lambda: 0.0), LongWork()))
    return app


def test_a_scrape_is_the_text_format_whatever_is_asked_for() -> None:
    app = served(2)
    for accept in ("", "application/openmetrics-text; version=1.0.0", "text/plain;version=1.0.0;escaping=allow-utf-8"):
        response = ask(app, "GET", "/metrics", headers={"accept": accept})
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert int(response.headers["content-length"]) == len(response.content)
        found = {family.name: family for family in text_string_to_metric_families(response.text)}
        assert found["kindred_mirror_nodes"].samples[0].value == 2


class CountedMetrics(Metrics):
    """Metrics that note when each text was begun."""

    def __init__(self) -> None:
        super().__init__(ClusterMirror(), lambda: 0.0)
        self.began: list[float] = []

    def pieces(self) -> Iterator[bytes]:
        self.began.append(time.perf_counter())
        yield b"text %d" % len(self.began)


def test_scrapes_that_wait_get_one_text_that_is_begun_after_all_of_them() -> None:
    metrics, app = CountedMetrics(), FastAPI()
    app.include_router(metrics_router(metrics, LongWork()))

    async def crowds() -> list[set[str]]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            found = []
            for clients in (1, 8, 8):
                responses = await asyncio.gather(*(client.get("/metrics") for _ in range(clients)))
                found.append({response.text for response in responses})
            return found

    assert asyncio.run(crowds()) == [{"text 1"}, {"text 2"}, {"text 3"}]
    assert all(later - earlier >= 0.045 for earlier, later in pairwise(metrics.began))  # a timer may be early


def test_a_scrape_that_failed_leaves_no_text_for_the_next() -> None:
    metrics, app = CountedMetrics(), FastAPI()
    app.include_router(metrics_router(metrics, LongWork()))

    def fail() -> Iterator[bytes]:
        metrics.began.append(time.perf_counter())
        raise ZeroDivisionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "pieces", fail)
        with pytest.raises(ZeroDivisionError):
            ask(app, "GET", "/metrics")
    assert ask(app, "GET", "/metrics").text == "text 2"
