"""What only a wrong fake would show: faults that a client cannot tell from their absence, churn, and the end of churn.

All else of the fake is held by the tests of the reflector, and the reflector by those with a real API server.
"""

import asyncio
import itertools
from collections import Counter

import httpx
import msgspec
import pytest

from tests.fake_apiserver.bench_data import Churn, bench_store
from tests.fake_apiserver.control import Control
from tests.fake_apiserver.faults import Close, Cut, FaultQueue, Gzip, Replay, Stall, StreamAction
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.server import FakeApiServer
from tests.fake_apiserver.store import Event, Store

WATCH = {"watch": "true", "resourceVersion": "1"}
FILLS_SOCKETS = 16_000_000  # more bytes than the sockets of both sides buffer, so that the server must wait


def named(line: str) -> str:
    name: str = msgspec.json.decode(line)["object"]["metadata"]["name"]
    return name


# Faults.


def test_the_first_fault_that_matches_applies_as_often_as_it_says_and_clearing_releases_stalls() -> None:
    faults = FaultQueue()
    stall = Stall()
    faults.add(Close(), "/a", "watch", times=2)
    faults.add(stall, None, "watch", "list")
    always = faults.add(Cut(), times=None)
    assert [faults.of_request("/b", "page"), faults.of_request("/a", "list")] == [Cut(), stall]
    assert [faults.of_request("/a", "watch") for _ in range(3)] == [Close(), Close(), Cut()]
    assert (faults.pending, always.applied) == ((always,), 2)
    faults.clear()
    assert faults.of_request("/a", "watch") is None
    asyncio.run(asyncio.wait_for(stall.wait(), 1))


@pytest.mark.parametrize(
    ("fault", "expected"),
    [(Replay(2), "ababc"), (Stall(seconds=0.05, after=1), "abc"), (Gzip(), "abc"), (Cut(after=2, reset=False), "ab")],
    ids=str,
)
def test_a_fault_takes_effect_where_it_says(fault: StreamAction, expected: str) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(60), FakeApiServer() as server, httpx.AsyncClient(base_url=server.url) as client:
            for name in "abc":
                server.create(PODS.path, {"metadata": {"name": name}})
            server.faults.add(fault, PODS.path, "watch")
            began = asyncio.get_running_loop().time()
            async with client.stream("GET", PODS.path, params=WATCH) as response:
                lines = response.aiter_lines()
                assert "".join([named(await anext(lines)) for _ in expected]) == expected
                if isinstance(fault, Cut):
                    with pytest.raises(httpx.RemoteProtocolError):
                        await anext(lines)
            assert not isinstance(fault, Stall) or asyncio.get_running_loop().time() - began >= 0.05
            assert (response.headers.get("content-encoding") == "gzip") is isinstance(fault, Gzip)

    asyncio.run(scenario())


# Churn.


def churned(steps: int) -> tuple[Store, list[Event]]:
    """Make a small cluster, churn it, and give its events."""
    store = bench_store(10, 100, history=100_000)
    churn = Churn(store, 10, 100)
    for _ in range(steps):
        churn.step()
    events = store.collections[PODS.path].events_from(0)
    assert events is not None
    assert len(events) == churn.done == steps
    return store, events


def action(event: Event) -> str:
    if event.before is None or event.after is None:
        return "create" if event.after else "delete"
    if event.before.node_name != event.after.node_name:
        return "bind"
    labels = [each.object()["metadata"]["labels"] for each in (event.before, event.after)]
    return "relabel" if labels[0] != labels[1] else "status"


def test_pods_live_as_pods_do_and_do_not_become_more_for_ever() -> None:
    store, events = churned(6000)
    assert min(Counter(map(action, events)).values()) > 300
    assert 100 < len(store.objects(PODS.path)) < 100 + 700
    lives: dict[str, list[Event]] = {}
    for event in events:
        stored = event.after or event.before
        assert stored is not None
        lives.setdefault(stored.uid, []).append(event)
    whole = [life for life in lives.values() if life[0].before is None and life[-1].after is None]
    assert len(whole) > 300
    for life in whole:
        assert [action(event) for event in life] == ["create", "bind", "status", "status", "delete"]
        assert [event.after.phase for event in life if event.after] == ["Pending", "Pending", "Running", "Running"]
    for life in lives.values():
        assert all(later.before is earlier.after for earlier, later in itertools.pairwise(life))


def test_bytes_and_fields_agree() -> None:
    store, _ = churned(2000)
    for stored in store.collections[PODS.path].objects.values():
        pod = stored.object()
        metadata = pod["metadata"]
        assert (metadata["resourceVersion"], metadata["uid"]) == (str(stored.version), stored.uid)
        assert (pod["status"]["phase"], pod["spec"].get("nodeName", "")) == (stored.phase, stored.node_name)


# The verbs below /_control/. tests/load uses those of faults.


def test_it_is_quiet_once_churn_has_made_its_events_and_every_client_has_read_them() -> None:
    async def scenario() -> None:
        server = FakeApiServer(store=bench_store(10, 100, history=1000))
        control = Control(server, Churn(server.store, 10, 100))
        server.control = control.handle
        async with asyncio.timeout(60), server, httpx.AsyncClient(base_url=f"{server.url}") as client:
            assert (await client.post("/_control/nonsense", json={})).status_code == 400
            await client.post("/_control/churn", json={"rate": 200, "seconds": 0.5})
            assert (await client.get("/_control/quiet?seconds=0")).status_code == 504
            stats = (await client.get("/_control/quiet?seconds=10")).json()
            assert (stats["quiet"], stats["churn_events"]) == (True, 100)
            async with client.stream("GET", PODS.path, params={**WATCH, "resourceVersion": str(stats["version"])}):
                await server.until_watching(PODS.path)
                server.create(PODS.path, {"metadata": {"name": "a", "annotations": {"long": "x" * FILLS_SOCKETS}}})
                assert (await client.get("/_control/quiet?seconds=0.05")).json()["quiet"] is False
            assert (await client.get("/_control/quiet?seconds=1")).json()["quiet"] is True
            await control.close()

    asyncio.run(scenario())
