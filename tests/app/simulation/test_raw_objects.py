"""What drains and removals have to know of pods and budgets beside what the mirror has."""

import json
from collections import Counter
from typing import Any

import pytest

from app.explain.stored_pod import Json, read_json
from app.objects.decode_node import decode_pod_disruption_budget
from app.objects.decode_pod import decode_pod
from app.simulation.comes_again import ClusterFacts
from app.simulation.raw_objects import RawObjects
from app.simulation.replicas import Replicas
from core.simulation.facts import BudgetFacts, PodFacts
from tests.app.simulation.test_comes_again import at_hand, deployment, replica_set, template
from tests.builders import make_pod

Object = dict[str, Any]


def test_the_facts_of_pods() -> None:
    pod = make_pod("p").annotated("cluster-autoscaler.kubernetes.io/safe-to-evict", "false").phase("Pending").obj()
    pod["spec"] = {**pod.get("spec", {}), "volumes": [{"name": "a", "emptyDir": {}}]}
    protected = make_pod("q").annotated("karpenter.sh/do-not-disrupt", "true").phase("Running").obj()
    protected["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    raw = RawObjects()
    for each in (pod, protected, {"metadata": {"name": 3}}):
        raw.take("Pod", json.dumps(each).encode())
    assert raw.of_pod(decode_pod(json.dumps(pod).encode())) == PodFacts(
        local_data=True, is_ready=False, has_started=False, safe_to_evict=False, node_data=True
    )
    found = raw.of_pod(decode_pod(json.dumps(protected).encode()))
    assert found == PodFacts(is_ready=False, do_not_disrupt=True)
    assert raw.of_pod(decode_pod(make_pod("unknown").json())) == PodFacts()


@pytest.mark.parametrize(
    ("volume", "safe", "local", "node"),
    [
        ({"emptyDir": {}}, "", True, True),
        ({"emptyDir": {"medium": ""}}, "", True, True),
        ({"emptyDir": {"medium": "Memory"}}, "", True, False),
        ({"emptyDir": {}}, "b,a", True, False),
        ({"emptyDir": {}}, "b, a", True, True),
        ({"hostPath": {"path": "/x"}}, "", False, True),
        ({"hostPath": {"path": "/x"}}, "a", False, False),
        ({"emptyDir": None, "hostPath": None, "configMap": {"name": "x"}}, "", False, False),
    ],
)
def test_the_volumes_whose_data_stays_on_the_node(volume: Object, safe: str, *, local: bool, node: bool) -> None:
    """In Cluster Autoscaler's utils/drain/drain.go, HasBlockingLocalStorage; kubectl counts any emptyDir."""
    named = make_pod("p").annotated("cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes", safe)
    pod = named.annotated("cluster-autoscaler.kubernetes.io/safe-to-evict", "True").phase("Running").obj()
    pod["spec"] = {**pod.get("spec", {}), "volumes": [{"name": "a", **volume}]}
    raw = RawObjects()
    raw.take("Pod", json.dumps(pod).encode())
    assert raw.of_pod(decode_pod(json.dumps(pod).encode())) == PodFacts(local_data=local, node_data=node)


def failing(reason: str) -> Object:
    return {"type": "DisruptionAllowed", "status": "False", "reason": reason}


@pytest.mark.parametrize(
    ("spec", "status", "facts"),
    [
        ({}, {"currentHealthy": 3, "desiredHealthy": 3}, BudgetFacts()),
        ({}, {"currentHealthy": 1, "desiredHealthy": 3}, BudgetFacts(lacks=2)),
        ({}, {"currentHealthy": 3, "desiredHealthy": 0}, BudgetFacts(wants_any=False)),
        ({}, {}, BudgetFacts(wants_any=False)),
        (
            {"unhealthyPodEvictionPolicy": "AlwaysAllow"},
            {},
            BudgetFacts(wants_any=False, always_allows_unhealthy=True),
        ),
        ({"unhealthyPodEvictionPolicy": "IfHealthyBudget"}, {}, BudgetFacts(wants_any=False)),
        ({}, {"desiredHealthy": 1, "conditions": [failing("SyncFailed")]}, BudgetFacts(lacks=1, sync_failed=True)),
        ({}, {"desiredHealthy": 1, "conditions": [failing("InsufficientPods")]}, BudgetFacts(lacks=1)),
    ],
)
def test_the_facts_of_budgets(spec: Object, status: Object, facts: BudgetFacts) -> None:
    budget = {"metadata": {"name": "b", "namespace": "shop"}, "spec": spec, "status": status}
    raw = RawObjects()
    raw.take("PodDisruptionBudget", json.dumps(budget).encode())
    assert raw.of_budget(decode_pod_disruption_budget(json.dumps(budget).encode())) == facts


def test_the_templates_of_a_question_share_the_objects_that_each_of_them_looks_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There are more than stay decoded. A question has up to 100 templates, and a cluster 20,000 ReplicaSets."""
    decoded = Counter[str]()

    def reading(text: bytes) -> Json:
        found = read_json(text)
        decoded[found["metadata"]["name"]] += 1
        return found

    monkeypatch.setattr("app.simulation.raw_objects.read_json", reading)
    others = [replica_set(str(number), number, template("1")) for number in range(300)]
    mirror, raw = at_hand(deployment(), *others)
    replicas = Replicas(mirror, raw, ClusterFacts(mirror, raw))
    for _ in range(2):
        assert replicas.named("deploy/web").of == "Deployment default/web"
    assert {decoded[each["metadata"]["name"]] for each in others} == {1}
