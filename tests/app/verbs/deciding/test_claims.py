"""Pods that an in-tree plugin has to see first."""

import json

import pytest
from msgspec.structs import replace

from app.verbs.decide import InTreeNeeds
from app.verbs.request import VerbOutcome
from app.verbs.scopes import DecideScope
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod, PodClaim, PodResourceClaim
from core.objects.volumes import PersistentVolumeClaim, StorageClass
from tests.app.verbs.deciding.deciding_setting import DecidingSetting
from tests.builders import make_node, make_pod
from tests.core.decoded import node_of

BOUND = PersistentVolumeClaim(namespace="default", name="data", volume="pv", bind_completed=True)
WAITS = PersistentVolumeClaim(namespace="default", name="data", storage_class="late")


def mirror(claim: PersistentVolumeClaim | None = None) -> ClusterMirror:
    made = ClusterMirror()
    made.apply(ClusterEvent("Add", node_of(make_node("n1"))))
    made.apply(ClusterEvent("Add", StorageClass(name="late", volume_binding_mode="WaitForFirstConsumer")))
    if claim is not None:
        made.apply(ClusterEvent("Add", claim))
    return made


def pod(*, scheduler: str = "", claims: bool = False, volume: bool = False) -> Pod:
    volumes = (PodClaim("data"),) if volume else ()
    return Pod(
        "u",
        "default",
        "p",
        scheduler_name=scheduler,
        resource_claims=(PodResourceClaim("c", "c"),) if claims else (),
        volumes=volumes,
    )


@pytest.mark.parametrize(
    ("requested", "claim"),
    [
        pytest.param(pod(), None, id="plain"),
        pytest.param(pod(volume=True), BOUND, id="bound-claim"),
        pytest.param(pod(volume=True), None, id="missing-claim-which-its-filter-refuses"),
    ],
)
def test_who_needs_nothing_is_decided_for(requested: Pod, claim: PersistentVolumeClaim | None) -> None:
    assert InTreeNeeds(mirror(claim)).in_tree_plugin_needed(requested) == ""


@pytest.mark.parametrize(
    ("requested", "need"),
    [
        pytest.param(
            pod(volume=True), "has the unbound claim data, which needs the in-tree plugin VolumeBinding", id="claim"
        ),
        pytest.param(
            pod(claims=True), "has resource claims, which need the in-tree plugin DynamicResources", id="resource-claim"
        ),
    ],
)
def test_who_needs_a_plugin_is_told_which_scheduler_has_it(requested: Pod, need: str) -> None:
    unnamed, named = InTreeNeeds(mirror(WAITS)), InTreeNeeds(mirror(WAITS), "careful")
    remedy = "name a scheduler whose profile keeps that plugin, KINDRED_DECIDE_CLAIMS_SCHEDULER"
    assert unnamed.in_tree_plugin_needed(requested) == f"pod default/p {need}: {remedy}"
    assert named.in_tree_plugin_needed(requested) == f"pod default/p {need}: give it spec.schedulerName: careful"
    assert named.in_tree_plugin_needed(replace(requested, scheduler_name="careful")) == ""


def test_it_is_an_error_that_ends_the_attempt_and_assumes_nothing() -> None:
    setting = DecidingSetting(mirror(WAITS), DecideScope.ANY_NODE)
    requested = make_pod("p").volume({"name": "v", "persistentVolumeClaim": {"claimName": "data"}})
    setting.tell(requested)
    response = setting.ask(requested, ["n1"])
    assert response.outcome is VerbOutcome.REJECTED
    assert "unbound claim data" in json.loads(response.body)["Error"]
    assert (setting.assumed(), setting.counts()) == ({}, {"refused": 1})
