"""Churn: a stream of events that makes sense, at the rate that was asked for."""

import asyncio
import itertools
from collections import Counter

import pytest

from tests.fake_apiserver.bench_data import bench_store
from tests.fake_apiserver.churn import Churn
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.store import Store
from tests.fake_apiserver.stored import Event


def churned(steps: int, seed: int = 1) -> tuple[Store, list[Event]]:
    """Make a small cluster, churn it, and give its events."""
    store = bench_store(10, 100, history=100_000)
    churn = Churn(store, 10, 100, seed)
    for _ in range(steps):
        churn.step()
    assert churn.done == steps
    events = store.collections[PODS.path].events_from(0)
    assert events is not None
    return store, events


def action(event: Event) -> str:
    if event.before is None or event.after is None:
        return "create" if event.after else "delete"
    if event.before.node_name != event.after.node_name:
        return "bind"
    labels = [each.object()["metadata"]["labels"] for each in (event.before, event.after)]
    return "relabel" if labels[0] != labels[1] else "status"


def test_every_step_is_one_event() -> None:
    store, events = churned(1000)
    assert len(events) == 1000
    assert [event.version for event in events] == list(range(store.version - 999, store.version + 1))


def test_all_that_happens_to_pods_happens() -> None:
    _, events = churned(6000)
    counts = Counter(action(event) for event in events)
    assert counts.keys() == {"create", "bind", "relabel", "status", "delete"}
    assert min(counts.values()) > 300


def test_the_cluster_does_not_grow_for_ever() -> None:
    store, _ = churned(6000)
    assert 100 < len(store.objects(PODS.path)) < 100 + 700


def test_pods_live_as_pods_do() -> None:
    _, events = churned(6000)
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
        for earlier, later in itertools.pairwise(life):
            assert later.before is earlier.after


def test_bytes_and_fields_agree() -> None:
    store, _ = churned(2000)
    for stored in store.collections[PODS.path].objects.values():
        pod = stored.object()
        metadata = pod["metadata"]
        assert (metadata["resourceVersion"], metadata["uid"]) == (str(stored.version), stored.uid)
        assert (pod["status"]["phase"], pod["spec"].get("nodeName", "")) == (stored.phase, stored.node_name)


def test_a_seed_makes_the_same_events_and_another_others() -> None:
    def lines(seed: int) -> list[bytes]:
        return [event.after.rest if event.after else b"" for event in churned(500, seed)[1]]

    assert lines(1) == lines(1) != lines(2)


@pytest.mark.parametrize("rate", [200, 2000])
def test_a_time_of_churn_makes_as_many_events_as_the_rate_says(rate: int) -> None:
    churn = Churn(bench_store(10, 100, history=1000), 10, 100)
    asyncio.run(churn.run(rate, seconds=0.5))
    assert churn.done == rate * 0.5


def test_events_are_spread_over_the_time_and_what_is_late_is_made_up_for() -> None:
    async def scenario() -> list[int]:
        churn = Churn(bench_store(10, 100, history=1000), 10, 100)
        loop = asyncio.get_running_loop()
        running = asyncio.create_task(churn.run(1000))
        counted = []
        for _ in range(2):
            await asyncio.sleep(0.1)
            counted.append(churn.done)
        blocked_until = loop.time() + 0.3
        while loop.time() < blocked_until:
            pass
        counted.append(churn.done)
        await asyncio.sleep(0.05)
        counted.append(churn.done)
        running.cancel()
        return counted

    first, second, blocked, caught_up = asyncio.run(scenario())
    assert 0 < first < second == blocked
    assert caught_up - blocked >= 300
