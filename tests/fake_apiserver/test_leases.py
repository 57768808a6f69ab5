"""Leases: who may replace one, and what is refused."""

from typing import Any

import httpx
import pytest

from tests.fake_apiserver.asking import served
from tests.fake_apiserver.faults import Stall
from tests.fake_apiserver.leases import lease_path, leases_path
from tests.fake_apiserver.server import FakeApiServer

NEW = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "kindred"}}
LEASE = lease_path("kindred", "ours")


async def create(client: httpx.AsyncClient, holder: str) -> httpx.Response:
    body = {**NEW, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15}}
    return await client.post(leases_path("ours"), json=body)


async def replace(client: httpx.AsyncClient, lease: Any, **spec: object) -> httpx.Response:  # noqa: ANN401 - JSON
    return await client.put(LEASE, json={**lease, "spec": {**lease["spec"], **spec}}, timeout=0.2)


@served()
async def test_a_lease_is_made_and_read(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    assert (await client.get(LEASE)).json()["reason"] == "NotFound"
    made = await create(client, "a")
    assert (made.status_code, made.json()["kind"]) == (201, "Lease")
    assert made.json()["metadata"]["namespace"] == "ours"
    read = await client.get(LEASE)
    assert (read.status_code, read.json()) == (200, made.json())
    assert [request.kind for request in server.requests] == ["get", "create", "get"]


@served()
async def test_it_is_not_made_twice(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    await create(client, "a")
    assert (await create(client, "b")).json()["reason"] == "AlreadyExists"
    assert server.requests.of(LEASE) == []


@served()
async def test_of_two_who_have_read_the_same_version_one_replaces_it(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    lease = (await create(client, "a")).json()
    replaced = await replace(client, lease, holderIdentity="b")
    assert (replaced.status_code, replaced.json()["spec"]["holderIdentity"]) == (200, "b")
    assert replaced.json()["metadata"]["uid"] == lease["metadata"]["uid"]
    refused = await replace(client, lease, holderIdentity="c")
    assert (refused.status_code, refused.json()["reason"]) == (409, "Conflict")
    assert (await client.get(LEASE)).json() == replaced.json()
    assert [request.kind for request in server.requests.of(LEASE)] == ["update", "update", "get"]


@served()
async def test_a_lease_without_a_holder_is_valid_but_one_of_no_duration_is_not(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    lease = (await create(client, "a")).json()
    assert (await replace(client, lease, holderIdentity="", leaseDurationSeconds=0)).status_code == 422
    assert (await replace(client, lease, holderIdentity="", leaseDurationSeconds=1)).status_code == 200
    assert (await client.delete(LEASE)).status_code == 405
    assert len(server.requests) == 4


@served()
async def test_a_renewal_whose_answer_is_late_is_done(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    lease = (await create(client, "a")).json()
    server.faults.add(Stall(), LEASE, "update")
    with pytest.raises(httpx.TimeoutException):
        await replace(client, lease, renewTime="2026-01-01T00:00:00.000000Z")
    assert (await client.get(LEASE)).json()["spec"]["renewTime"] == "2026-01-01T00:00:00.000000Z"
