"""The pod of a Deployment: of which ReplicaSet it is, and which pods go before it is made."""

import json
from typing import Any

import pytest

from app.explain.explain_request import Manifest, decode_manifest
from app.objects.decode_pod import decode_pod
from core.events import ClusterEvent
from core.objects.node import Node
from tests.app.explain.test_stored_pod import Objects, at_hand
from tests.builders import make_pod


def replica_set(name: str, image: str, revision: int, **annotations: str) -> dict[str, Any]:
    metadata = {"labels": {"app": "web", "pod-template-hash": name}, "annotations": annotations}
    return {
        "metadata": {
            "name": f"web-{name}",
            "labels": {"pod-template-hash": name},
            "annotations": {"deployment.kubernetes.io/revision": str(revision)},
            "ownerReferences": [{"kind": "Deployment", "name": "web"}],
        },
        "spec": {"template": {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": image}]}}},
    }


def deployed(objects: Objects, **spec: object) -> Manifest:
    """Return the pod of a Deployment that has pods on two nodes already. Its first pod names the revision."""
    hand = at_hand(objects)
    for name in ("n1", "n2"):
        hand.mirror.apply(ClusterEvent("Add", Node(name, {})))
        stored = (
            make_pod(f"web-{name}").label("pod-template-hash", "1a").owned_by("ReplicaSet", "web-1a", "r1").on(name)
        )
        hand.mirror.apply(ClusterEvent("Add", decode_pod(stored.json())))
    term = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["pod-template-hash"]}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "containers": [{"name": "c", "image": "x:2"}],
            "affinity": affinity if spec.pop("names", None) else {},
        },
    }
    of = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": template, **spec}}
    return decode_manifest(json.dumps(of).encode(), hand)


OLD = replica_set("1a", "x:1", 1)


@pytest.mark.parametrize(
    ("spec", "gone"),
    [
        ({}, 0),
        ({"strategy": {"type": "Recreate"}}, 2),
        ({"strategy": {"rollingUpdate": {"maxSurge": 1}}}, 0),
        ({"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}, 1),
        ({"strategy": {"rollingUpdate": {"maxSurge": "0%"}}, "replicas": 2}, 1),
        ({"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "50%"}}, "replicas": 5}, 2),
        ({"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": []}}, "replicas": []}, 1),
    ],
)
def test_a_deployment_without_surge_deletes_pods_before_it_makes_the_next(spec: dict[str, object], gone: int) -> None:
    assert len(deployed({"ReplicaSet": [OLD]}, **spec).replaced) == gone


@pytest.mark.parametrize(
    ("spec", "unknown"),
    [
        ({}, 0),
        ({"names": True}, 1),
        ({"strategy": {"type": "Recreate"}}, 1),
        ({"strategy": {"rollingUpdate": {"maxSurge": 0}}}, 1),
    ],
)
def test_without_replica_sets_it_is_unknown_whether_a_template_is_new(spec: dict[str, object], unknown: int) -> None:
    found = deployed({}, **spec)
    assert (len(found.notes.unknown), found.replaced) == (unknown, ())
    assert not any("new revision" in each for each in found.notes.done)


def test_the_revision_is_the_newest_one_and_a_restart_makes_no_other_template() -> None:
    restarted = replica_set("3c", "x:2", 10, **{"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"})
    annotated = replica_set("4d", "x:2", 11, other="y")
    objects = {"ReplicaSet": [OLD, replica_set("2b", "x:2", 9), restarted, annotated]}
    assert deployed(objects).pod.labels["pod-template-hash"] == "3c"
