"""Events: what is stored, and what is refused as the API server refuses it."""

from typing import Any, Final

import httpx
import pytest

from tests.fake_apiserver.asking import served
from tests.fake_apiserver.events import events_path
from tests.fake_apiserver.resources import EVENTS
from tests.fake_apiserver.server import FakeApiServer

EVENT: Final[dict[str, Any]] = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "web.17a"},
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "mine",
    "reportingInstance": "mine-host",
    "action": "Preempting",
    "reason": "Preempted",
    "regarding": {"kind": "Pod", "namespace": "ours", "name": "web"},
    "type": "Normal",
}


async def create(client: httpx.AsyncClient, event: object = EVENT) -> httpx.Response:
    return await client.post(events_path("ours"), json=event)


@served()
async def test_an_event_is_stored_in_its_namespace(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    response = await create(client)
    assert (response.status_code, response.json()["metadata"]["namespace"]) == (201, "ours")
    stored = server.store.get(EVENTS.path, "web.17a", "ours")
    assert stored is not None
    assert stored["reason"] == "Preempted"
    assert [request.kind for request in server.requests] == ["create"]


@served()
async def test_it_is_not_created_twice(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    await create(client)
    assert (await create(client)).json()["reason"] == "AlreadyExists"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"metadata": {"name": "Web"}}, "metadata.name"),
        ({"metadata": {"name": "w" * 254}}, "metadata.name"),
        ({"regarding": {"namespace": "theirs"}}, "involvedObject.namespace"),
        ({"eventTime": "2026-01-01T00:00:00Z"}, "eventTime"),
        ({"reportingController": ""}, "reportingController"),
        ({"reportingInstance": "i" * 129}, "reportingInstance"),
        ({"action": ""}, "action"),
        ({"reason": ""}, "reason"),
        ({"type": "Odd"}, "type"),
        ({"note": "n" * 1025}, "message"),
    ],
)
@served()
async def test_an_event_that_the_api_server_would_refuse_is_refused(
    server: FakeApiServer, client: httpx.AsyncClient, change: dict[str, object], field: str
) -> None:
    response = await create(client, {**EVENT, **change})
    assert response.status_code == 422
    assert f"is invalid: {field}: " in response.json()["message"]
    assert len(server.requests) == 1
