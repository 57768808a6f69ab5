"""Pods that the settings name pass untouched, whatever the verb and the mirror, and so do Kindred's own."""

import json

import pytest

from app.objects.decode_pod import decode_pod
from app.settings.settings import Settings
from app.verbs.filter import create_bypass
from app.wiring.main import create_service
from core.mirror.cluster import ClusterMirror
from tests.app.asgi import ask
from tests.app.feeds.following import scenario
from tests.app.questions import NEAR_WEB, by_name, by_object, shop
from tests.app.verbs.binding.binding_setting import N1, loner, scheduling
from tests.builders import PodBuilder, make_node, make_pod
from tests.fake_apiserver import FakeApiServer

FAR = make_pod("p").required_affinity(NEAR_WEB)
OWN = {"app.kubernetes.io/name": "kindred"}


def passes(pod: PodBuilder, **settings: object) -> bool:
    return create_bypass(Settings.model_validate(settings)).covers(decode_pod(pod.json()))


def test_nobody_passes_where_nothing_is_set() -> None:
    assert not passes(make_pod("p"))


def test_pods_of_a_namespace_pass() -> None:
    assert passes(make_pod("p").in_namespace("kube-system"), bypass_namespaces=("a", "kube-system"))
    assert not passes(make_pod("p").in_namespace("kube-public"), bypass_namespaces=("a", "kube-system"))


def test_pods_of_a_scheduler_pass() -> None:
    pod = make_pod("p").obj()
    pod["spec"]["schedulerName"] = "batch"
    covers = create_bypass(Settings(bypass_schedulers=("batch",))).covers
    assert covers(decode_pod(json.dumps(pod).encode()))
    assert not covers(decode_pod(make_pod("p").json()))


def test_our_own_pods_pass_in_our_own_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    own = make_pod("kindred-1").in_namespace("infra").label(*next(iter(OWN.items())))
    assert not passes(own), "outside of a cluster there is no own namespace"
    monkeypatch.setenv("POD_NAMESPACE", "infra")
    assert passes(own)
    assert not passes(make_pod("other").in_namespace("infra"))
    monkeypatch.setenv("POD_NAMESPACE", "other")
    assert not passes(own)


def test_filter_passes_all_nodes_on_and_prioritize_gives_each_0() -> None:
    service = create_service(Settings(bypass_namespaces=("default",)), shop(), None).app
    question = by_name(FAR, "a1", "c1", "unknown")
    filtered = json.loads(ask(service, "POST", "/filter", question).content)
    assert filtered["NodeNames"] == ["a1", "c1", "unknown"]
    assert not filtered["FailedNodes"]
    assert not filtered["FailedAndUnresolvableNodes"]
    assert json.loads(ask(service, "POST", "/prioritize", question).content) == [
        {"Host": name, "Score": 0} for name in ("a1", "c1", "unknown")
    ]
    objects = by_object(FAR, make_node("c1"), make_node("new"))
    passed = json.loads(ask(service, "POST", "/filter", objects).content)["Nodes"]["items"]
    assert [node["metadata"]["name"] for node in passed] == ["c1", "new"]


def test_a_pod_that_does_not_pass_is_judged() -> None:
    service = create_service(Settings(bypass_namespaces=("other",)), shop(), None).app
    assert json.loads(ask(service, "POST", "/filter", by_name(FAR, "a1", "c1")).content)["NodeNames"] == ["a1"]


def test_preempt_leaves_the_offers_with_victims_to_a_pod_that_passes() -> None:
    settings = Settings(bypass_namespaces=("default",), preempt="verb")
    service = create_service(settings, shop(), None).app
    offers = {"c1": {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}}
    without_victims = {"a1": {"Pods": [], "NumPDBViolations": 0}, "b1": None}
    body = json.dumps({"Pod": FAR.obj(), "NodeNameToMetaVictims": {**offers, **without_victims}}).encode()
    assert json.loads(ask(service, "POST", "/preempt", body).content) == {"NodeNameToMetaVictims": offers}


def test_a_pod_that_passes_does_so_over_a_mirror_that_knows_nothing() -> None:
    service = create_service(Settings(bypass_namespaces=("default",)), ClusterMirror(), None).app
    assert json.loads(ask(service, "POST", "/filter", by_name(FAR, "x")).content)["NodeNames"] == ["x"]


@scenario()
async def test_a_pod_that_passes_is_bound_where_no_other_of_its_kind_would_be(server: FakeApiServer) -> None:
    async with scheduling(server, N1, bypass_namespaces=["default"]) as scheduler:
        first, second = (scheduler.create(loner(name)) for name in ("first", "second"))
        assert [await scheduler.decide(pod, "n1") for pod in (first, second)] == ["", ""]
        assert [scheduler.node_of(pod) for pod in (first, second)] == ["n1", "n1"]


@scenario()
async def test_a_pod_that_passes_is_bound_though_the_mirror_was_never_complete(server: FakeApiServer) -> None:
    async with scheduling(server, N1, following=False, bypass_schedulers=["web"]) as scheduler:
        web, other = scheduler.create(make_pod("web").scheduler("web")), scheduler.create(loner("other"))
        assert await scheduler.decide(web, "n1") == ""
        assert scheduler.node_of(web) == "n1"
        release = "release of Kubernetes: not known yet (no response to GET /version)"
        lacks = [release, *(f"{resource}: not synced" for resource in ("nodes", "pods", "namespaces"))]
        assert await scheduler.bind(other, "n1") == f"the mirror is not synced: {'; '.join(lacks)}"
