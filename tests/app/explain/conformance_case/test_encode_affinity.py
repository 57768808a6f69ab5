"""Terms that say unusual things come back as they are; broken ones are refused, or left out where none reads them."""

from typing import Any

import pytest

from app.explain.conformance_case.encode import NotExpressibleError
from app.explain.conformance_case.encode_affinity import without_broken_parts
from app.explain.conformance_case.encode_pod import encode_pod
from core.objects.affinity import NO_AFFINITY
from core.objects.pod import Pod
from tests.app.explain.conformance_case.encoded import again, pod_of

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NEAR = {"key": "app", "operator": "Near", "values": ["x"]}


def pod_with(affinity: object = None, **spec: object) -> Pod:
    return pod_of({"metadata": {"name": "p", "namespace": "shop"}, "spec": {"affinity": affinity, **spec}})


def repelled_by(**term: object) -> object:
    return {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", **term}]}}


def on_nodes(*terms: object) -> object:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def named(operator: str, *names: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [name]} for name in names]}


@pytest.mark.parametrize(
    "affinity",
    [
        pytest.param({}, id="empty"),
        pytest.param(repelled_by(), id="no-selector"),
        pytest.param(repelled_by(labelSelector={}), id="every-pod"),
        pytest.param(repelled_by(namespaceSelector={}), id="every-namespace"),
        pytest.param(repelled_by(namespaces=["", "b", "a"]), id="namespaces"),
        pytest.param(repelled_by(namespaceSelector={}, namespaces=["b"]), id="both"),
        pytest.param(
            repelled_by(
                labelSelector={
                    "matchLabels": {"app": "x"},
                    "matchExpressions": [
                        {"key": "app", "operator": "In", "values": ["y"]},
                        {"key": "app", "operator": "NotIn", "values": ["b", "a", "b"]},
                        {"key": "app", "operator": "Exists"},
                        {"key": "tier", "operator": "DoesNotExist"},
                    ],
                }
            ),
            id="every-operator-and-one-key-twice",
        ),
        pytest.param({"podAffinity": {PREFERRED: [{"weight": 0, "podAffinityTerm": {}}]}}, id="weight-and-key-empty"),
        pytest.param(on_nodes(), id="no-node"),
        pytest.param(on_nodes({}), id="an-empty-term"),
        pytest.param(on_nodes(named("In", "n1")), id="one-node"),
        pytest.param(on_nodes(named("In", "n1", "n2")), id="a-contradiction"),
        pytest.param(on_nodes(named("In", "n1"), {}), id="one-node-or-an-empty-term"),
        pytest.param(on_nodes(named("NotIn", "n1"), named("In", "n2")), id="all-but-one"),
        pytest.param(
            on_nodes({"matchExpressions": [{"key": "cores", "operator": "Lt", "values": ["007"]}], **named("In", "n")}),
            id="a-comparison",
        ),
        pytest.param({"nodeAffinity": {PREFERRED: [{"weight": -3, "preference": named("In", "n1")}]}}, id="preferred"),
    ],
)
def test_a_term_comes_back_as_it_is_understood(affinity: object) -> None:
    pod = pod_with(affinity)
    assert again(pod) == pod


def test_no_term_is_added_where_none_has_to_be() -> None:
    for affinity in (on_nodes(named("NotIn", "n1")), on_nodes(named("In", "n1")), on_nodes()):
        assert encode_pod(pod_with(affinity)) == {
            "metadata": {"name": "p", "namespace": "shop", "uid": "shop/p"},
            "spec": {"affinity": affinity},
        }


@pytest.mark.parametrize(
    "constraint",
    [
        pytest.param({}, id="empty"),
        pytest.param({"minDomains": 0, "nodeAffinityPolicy": "", "nodeTaintsPolicy": ""}, id="empty-values"),
        pytest.param({"labelSelector": {}, "matchLabelKeys": ["b", "a"], "maxSkew": 2}, id="every-pod"),
    ],
)
def test_a_spread_constraint_comes_back_as_it_is_understood(constraint: object) -> None:
    pod = pod_with(topologySpreadConstraints=[constraint])
    assert again(pod) == pod


BROKEN = [
    pytest.param(
        pod_with(repelled_by(labelSelector={"matchExpressions": [NEAR]})),
        f"pod shop/p: spec.affinity.podAntiAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].operator: "
        'a broken term cannot be written again: "Near" is not a valid label selector operator',
        id="pod-affinity",
    ),
    pytest.param(
        pod_with(on_nodes({"matchExpressions": [NEAR]})),
        "pod shop/p: a broken node selector term cannot be written again: nodeSelectorTerms[0].matchExpressions[0]",
        id="required-node-affinity",
    ),
    pytest.param(
        pod_with({"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [NEAR]}}]}}),
        "pod shop/p: a broken node selector term cannot be written again: [0].matchExpressions[0].operator",
        id="preferred-node-affinity",
    ),
    pytest.param(
        pod_with(topologySpreadConstraints=[{"labelSelector": {"matchExpressions": [NEAR]}}]),
        "pod shop/p: a topology spread constraint with a broken selector cannot be written again: ",
        id="spread",
    ),
]


@pytest.mark.parametrize(("pod", "why"), BROKEN)
def test_a_broken_term_of_a_pod_that_is_asked_about_is_refused_with_its_place(pod: Pod, why: str) -> None:
    with pytest.raises(NotExpressibleError) as refused:
        encode_pod(pod)
    assert str(refused.value).startswith(why)


@pytest.mark.parametrize(("pod", "why"), BROKEN)
def test_a_pod_that_exists_is_written_without_what_is_broken(pod: Pod, why: str) -> None:
    assert why
    left = without_broken_parts(pod)
    assert again(left) == left
    assert (left.affinity, left.node_affinity.required, left.node_affinity.preferred) == (NO_AFFINITY, None, ())
    assert left.spread == ()


def test_of_a_pod_that_exists_what_is_not_broken_stays() -> None:
    good = {PREFERRED: [{"weight": 7, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}}]}
    broken = {REQUIRED: [{"topologyKey": "zone", "labelSelector": {"matchExpressions": [NEAR]}}]}
    pod = pod_with({"podAntiAffinity": {**good, **broken}}, nodeSelector={"disk": "ssd"})
    left = without_broken_parts(pod)
    assert left.affinity.preferred_anti_affinity == pod.affinity.preferred_anti_affinity != ()
    assert left.node_affinity == pod.node_affinity
    assert without_broken_parts(left) is left
