"""The mark on a replica's own pod: what is written, and what a failure says."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from app.api_server import lease_api
from app.api_server.client import ApiClient
from app.api_server.credentials import Credentials
from app.api_server.lease_api import MARK_RULE, OwnPod
from app.api_server.tls import ClusterAccess
from tests.app.feeds.following import scenario
from tests.builders import make_pod
from tests.fake_apiserver import FakeApiServer, Stall, refuse
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.single_objects import status_path
from tests.fake_apiserver.statuses import forbidden, unavailable

PATH = status_path("kindred-0", "ours")


@asynccontextmanager
async def own_pod(server: FakeApiServer) -> AsyncIterator[OwnPod]:
    client = ApiClient(Credentials(ClusterAccess(source="test", server=server.url, tls=None), None))
    yield OwnPod(client, "ours", "kindred-0")
    await client.close()


def start_pod(server: FakeApiServer) -> None:
    pod = make_pod("kindred-0").in_namespace("ours").on("n1").obj()
    ready = {"type": "Ready", "status": "True"}
    server.create(PODS.path, {**pod, "status": {"phase": "Running", "conditions": [ready]}})


def stored(server: FakeApiServer) -> dict[str, Any]:
    (pod,) = server.objects(PODS.path)
    return pod


@scenario()
async def test_each_mark_is_a_new_version_of_the_pod_and_changes_one_condition(server: FakeApiServer) -> None:
    start_pod(server)
    async with own_pod(server) as pod:
        for _ in range(2):
            before = stored(server)["metadata"]["resourceVersion"]
            version = await pod.mark()
            assert version == stored(server)["metadata"]["resourceVersion"] != before
    ready, mark = stored(server)["status"]["conditions"]
    assert (ready["type"], mark["type"], mark["status"]) == ("Ready", "kindred.dev/TookOver", "True")
    bodies = [json.loads(request.body) for request in server.requests.of(PATH, "patch")]
    assert bodies[0] != bodies[1], "an unchanged object would not be written"


@scenario()
async def test_a_temporary_failure_is_tried_again_once(server: FakeApiServer, caplog: pytest.LogCaptureFixture) -> None:
    start_pod(server)
    async with own_pod(server) as pod:
        server.faults.add(refuse(unavailable()), PATH, times=1)
        assert await pod.mark()
        assert caplog.messages == []
        fault = server.faults.add(refuse(unavailable()), PATH, times=None)
        assert await pod.mark() == ""
        assert fault.applied == 2
    assert caplog.messages[0].startswith("pod ours/kindred-0 is not marked, so the pods are listed instead: PATCH ")


@scenario()
async def test_a_missing_rule_is_told(server: FakeApiServer, caplog: pytest.LogCaptureFixture) -> None:
    start_pod(server)
    async with own_pod(server) as pod:
        fault = server.faults.add(refuse(forbidden("eve", "patch", PODS)), PATH, times=None)
        assert await pod.mark() == ""
        assert fault.applied == 1
    assert caplog.messages[0].endswith(f"; the RBAC rule that is needed: {MARK_RULE}")


@scenario()
async def test_a_pod_that_is_gone_has_no_mark(server: FakeApiServer, caplog: pytest.LogCaptureFixture) -> None:
    async with own_pod(server) as pod:
        assert await pod.mark() == ""
    assert "404 NotFound" in caplog.messages[0]
    assert len(server.requests.of(PATH)) == 1


def test_a_server_that_does_not_respond_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lease_api, "_MARK_TIMEOUT", 0.1)

    async def story() -> None:
        async with FakeApiServer() as server, own_pod(server) as pod:
            start_pod(server)
            server.faults.add(Stall(before_head=True), PATH, times=None)
            assert await pod.mark() == ""

    asyncio.run(story())
    assert caplog.messages == [
        "pod ours/kindred-0 is not marked, so the pods are listed instead: no response within 0.1 s"
    ]
