"""`preempt` over HTTP, with a fake API server: which nodes and victims kube-scheduler is told."""

import asyncio
from typing import Any

import pytest

from app.settings.settings import Settings
from app.wiring.engine import followed_kinds
from app.wiring.main import create_service
from core.objects.kinds import PodDisruptionBudget
from tests.app.asgi import ask
from tests.app.feeds.following import scenario
from tests.app.questions import shop
from tests.app.verbs.binding.binding_setting import HOSTNAME, N1, N2, PATIENCE, Scheduler, loner, scheduling, until
from tests.builders import labelled, make_pod, term
from tests.core.profile_parts import affinity_profile
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import Close
from tests.fake_apiserver.resources import POD_DISRUPTION_BUDGETS, PODS
from tests.fake_apiserver.store import Object

IMPORTANT = make_pod("p").priority(10).required_anti_affinity(term(HOSTNAME, labelled(app="db")))


def victims(*pods: Object, violations: int = 0) -> Any:  # noqa: ANN401 - JSON
    return {"Pods": [{"UID": pod["metadata"]["uid"]} for pod in pods], "NumPDBViolations": violations}


async def settled(scheduler: Scheduler, *pods: Object) -> None:
    await until(lambda: all(scheduler.mirror.is_mirrored(pod["metadata"]["uid"]) for pod in pods))


async def only_the_budgets_are_missing(scheduler: Scheduler) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            match (await scheduler.readiness())["problems"]:
                case [str(problem)] if problem.startswith("poddisruptionbudgets: not synced (GET "):
                    return
            await asyncio.sleep(0.005)


def budget(allowed: int) -> Object:
    return {
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "db"}}},
        "status": {"disruptionsAllowed": allowed},
    }


@scenario()
async def test_an_offer_is_completed_and_a_node_that_kindred_alone_refused_is_added(server: FakeApiServer) -> None:
    async with scheduling(server, N1, N2, preempt="verb") as scheduler:
        first, second = (scheduler.create(loner(f"db-{node}").on(node)) for node in ("n1", "n2"))
        offered = scheduler.create(make_pod("other").on("n1"))
        pod = scheduler.create(IMPORTANT)
        await settled(scheduler, first, second, offered)
        assert await scheduler.filter(pod, "n2") == []
        response = await scheduler.preempt(pod, {"n1": [offered]})
        assert response == {"NodeNameToMetaVictims": {"n1": victims(first, offered), "n2": victims(second)}}
        assert await scheduler.metric('kindred_request_duration_seconds_count{verb="preempt"}') == 1


@scenario()
async def test_violations_of_the_budgets_that_are_watched_are_counted(server: FakeApiServer) -> None:
    server.create(POD_DISRUPTION_BUDGETS.path, budget(0))
    async with scheduling(server, N1, preempt="verb") as scheduler:
        first = scheduler.create(loner("db").on("n1"))
        other = scheduler.create(make_pod("other").on("n1"))
        await settled(scheduler, first, other)
        pod = scheduler.create(IMPORTANT)
        response = await scheduler.preempt(pod, {"n1": [other]})
        assert response == {"NodeNameToMetaVictims": {"n1": victims(first, other, violations=1)}}
        server.update(POD_DISRUPTION_BUDGETS.path, budget(1))
        await until(lambda: scheduler.mirror.objects(PodDisruptionBudget)["default/db"].disruptions_allowed == 1)
        response = await scheduler.preempt(pod, {"n1": [other]})
        assert response == {"NodeNameToMetaVictims": {"n1": victims(first, other)}}


@scenario()
async def test_the_service_is_not_ready_and_preempts_nobody_before_it_knows_the_budgets(server: FakeApiServer) -> None:
    server.behaviour.forbidden.add(POD_DISRUPTION_BUDGETS.path)
    async with scheduling(server, N1, following=False, preempt="verb") as scheduler:
        following = [asyncio.create_task(start()) for start in scheduler.service.background]
        await only_the_budgets_are_missing(scheduler)
        rule = 'apiGroups: ["policy"], resources: ["poddisruptionbudgets"], verbs: ["list", "watch"]'
        assert (await scheduler.readiness())["resources"]["poddisruptionbudgets"]["missing_rbac_rule"] == rule
        response = await scheduler.preempt(scheduler.create(IMPORTANT), {"n1": []})
        assert response["NodeNameToMetaVictims"] == {}
        assert response["Error"].startswith("the mirror is not synced: poddisruptionbudgets")
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)


@scenario()
async def test_switched_off_budgets_are_not_watched_and_nobody_is_preempted(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        first = scheduler.create(loner("db").on("n1"))
        await settled(scheduler, first)
        response = await scheduler.preempt(scheduler.create(IMPORTANT), {"n1": [first]})
        assert response["NodeNameToMetaVictims"] == {}
        assert "KINDRED_PREEMPT=verb" in response["Error"]
        assert server.requests.of(POD_DISRUPTION_BUDGETS.path) == []
        assert await scheduler.metric('kindred_requests_total{outcome="no_fit",verb="preempt"}') == 1


@pytest.mark.parametrize(("preempt", "watched"), [("off", False), ("verb", True), ("evict", True)])
def test_budgets_are_watched_where_preemption_is_answered(preempt: str, *, watched: bool) -> None:
    kinds = followed_kinds(Settings.model_validate({"preempt": preempt}), affinity_profile())
    assert (PodDisruptionBudget in kinds) == watched
    assert set(affinity_profile().kinds) <= set(kinds)


def test_a_dump_is_enough_for_an_answer() -> None:
    app = create_service(Settings(preempt="verb"), shop(), None).app
    body = b'{"Pod":{"metadata":{"name":"p"}},"NodeNameToMetaVictims":{"a1":{"Pods":[{"UID":"default/web-0"}]}}}'
    response = ask(app, "POST", "/preempt", body).json()
    assert response == {"NodeNameToMetaVictims": {"a1": {"Pods": [{"UID": "default/web-0"}], "NumPDBViolations": 0}}}


@scenario()
async def test_nobody_is_preempted_for_a_pod_that_others_have_bound_before_the_watch_shows_it(
    server: FakeApiServer,
) -> None:
    async with scheduling(server, N1, N2, preempt="verb") as scheduler:
        first = scheduler.create(loner("db").on("n1"))
        await settled(scheduler, first)
        pod = await scheduler.pending(IMPORTANT)
        scheduler.stall_watch()
        server.faults.add(Close(), None, "bind")
        fault = server.faults.add(Close(), None, "get", times=None)
        assert (await scheduler.bind(pod, "n2")).endswith("; whether the pod is bound is not known")
        server.faults.remove(fault)
        server.update(PODS.path, {**pod, "spec": {**pod["spec"], "nodeName": "n3"}})
        assert (await scheduler.preempt(pod, {"n1": [first]}))["NodeNameToMetaVictims"] == {}
