"""What the API server refuses, or drops, of manifests that people have published."""

from typing import Any

import pytest

from app.explain.explain_request import Manifest
from app.explain.valid_pod import FIELDS
from app.objects.decode import DecodeError
from tests.app.explain.test_stored_pod import Objects, container, manifest, pod
from tests.upstream.judges import UPSTREAM

AFFINITY = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}


def workload(kind: str = "Deployment", version: str = "apps/v1", **of: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [container()], **of.pop("pod", {})}}
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": {**template, **of.pop("template", {})}, **of}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def test_the_fields_are_those_of_all_releases() -> None:
    for name, fields in FIELDS.items():
        found = {field for release in UPSTREAM.values() for field in release.fields.get(name, {})}
        assert set(fields) == found, name


@pytest.mark.parametrize(
    ("of", "fields"),
    [
        # Kong/kubernetes-ingress-controller#49, slok/sloth#466
        (workload(pod={"containers": [{**container(), "nodeSelector": {}, "tolerations": []}]}), "containers"),
        # crossplane/oam-kubernetes-runtime#206, kubernetes/website#45111
        (workload(template={"affinity": AFFINITY}), "spec.template.affinity"),
        # apache/rocketmq-operator#142
        (workload(affinity=AFFINITY), "spec.affinity"),
        # getredash/contrib-helm-chart#37
        (workload("Job", "batch/v1", template={"nodeSelector": {"a": "b"}}), "spec.template.nodeSelector"),
        # istio/istio#16919
        (workload(pod={"toleration": []}), "spec.template.spec.toleration"),
        (pod(containers=[], nodeAffinity={}), "spec.nodeAffinity"),
        (pod(containers=[{"name": "c", "resources": {"request": {"cpu": 1}}}]), "spec.containers[0].resources.request"),
        # kubernetes/kubernetes#86523
        (
            pod(
                affinity={
                    "podAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 1, "labelSelector": {}, "podAffinityTerm": {"topologyKey": "zone"}}
                        ]
                    }
                }
            ),
            "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].labelSelector",
        ),
    ],
)
def test_a_field_that_no_pod_has_is_told(of: dict[str, Any], fields: str) -> None:
    (note,) = manifest(of).notes.unknown
    assert fields in note
    assert note.endswith(": there is no such field, so the API server refuses or drops it")


def test_a_queue_of_another_group_may_name_the_scheduler() -> None:
    """Source: volcano-sh/apis pkg/apis/batch/v1alpha1/job.go (JobSpec)."""
    of = workload("Job", "batch.volcano.sh/v1alpha1", schedulerName="volcano")
    assert not manifest(of).notes.unknown
    assert manifest(workload("Job", "batch/v1", schedulerName="volcano")).notes.unknown


def refused(of: dict[str, Any], objects: Objects | None = None) -> str:
    with pytest.raises(DecodeError) as error:
        manifest(of, objects)
    return str(error.value)


SPREAD = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"containers": [container(requests={"cpu": "2"}, limits={"cpu": "1"})]}, "2 is more than its limit 1"),
        ({"containers": [container(limits={"Memory": "1Gi"})]}, "requests.Memory: is none of cpu, memory"),
        # volcano-sh/kthena#576
        (
            {"containers": [container(requests={"huawei.com/ascend-1980": "6"}, limits={"huawei.com/ascend-1980": 8})]},
            "6 is less than its limit 8",
        ),
        # kubernetes/kubernetes#57170
        ({"containers": [container(requests={"nvidia.com/gpu": 1})]}, "limits.nvidia.com/gpu: required for"),
        ({"topologySpreadConstraints": [{**SPREAD, "maxSkew": 0}]}, "[0].maxSkew: 0 is not from 1"),
        ({"topologySpreadConstraints": [{**SPREAD, "minDomains": 0}]}, "minDomains: 0 is not from 1"),
        ({"topologySpreadConstraints": [{**SPREAD, "topologyKey": ""}]}, "topologyKey: required"),
        ({"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "doNotSchedule"}]}, "doNotSchedule is none of"),
        ({"tolerations": [{"key": "a", "operator": "exists"}]}, "exists is none of"),
        ({"tolerations": [{"value": "a"}]}, "without a key it has to be Exists"),
        ({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, "value: Exists has none"),
        ({"tolerations": [{"key": "a", "effect": "noSchedule"}]}, "effect: noSchedule is none of"),
        ({"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 9}]}, "it has to be NoExecute"),
        (
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}}]}}},
            "podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: required",
        ),
        (
            {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"preference": {}}]}}},
            "preferredDuringSchedulingIgnoredDuringExecution[0].weight: 0 is not from 1 to 100",
        ),
    ],
)
def test_a_value_that_no_pod_may_have_is_an_error(spec: dict[str, Any], text: str) -> None:
    said = refused(pod(**spec))
    assert text in said
    assert said.endswith("the API server refuses this pod")


def test_a_selector_matches_the_labels_of_its_template() -> None:
    of = workload(selector={"matchLabels": {"app": "other"}})
    assert refused(of) == "spec.selector: app=other is no label of the template: the API server refuses this Deployment"


def limited(item: dict[str, Any]) -> Objects:
    return {"LimitRange": [{"metadata": {"name": "l"}, "spec": {"limits": [item]}}]}


def accepted(spec: dict[str, Any], item: dict[str, Any]) -> Manifest:
    return manifest(pod(**spec), limited(item))


TWO = {"containers": [container(requests={"memory": "300Mi"}, limits={"memory": "600Mi"})] * 2}


@pytest.mark.parametrize(
    ("spec", "item", "text"),
    [
        # kubernetes/website content/en/docs/concepts/policy/limit-range.md (limit-range-pod-3), kubernetes#13787
        (TWO, {"type": "Container", "maxLimitRequestRatio": {"memory": "1.5"}}, "limit / request is more than the max"),
        (TWO, {"type": "Pod", "maxLimitRequestRatio": {"memory": "1"}}, "limit / request is more than"),
        (TWO, {"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}}, "cpu: needs a request and a limit for"),
        (TWO, {"type": "Pod", "max": {"memory": "1Gi"}}, "all containers, memory: 1258291200 of limits is more than"),
        (TWO, {"type": "Pod", "min": {"memory": "1Gi"}}, "629145600 of requests is less than the min 1Gi"),
        (TWO, {"type": "Pod", "max": {"cpu": "1"}}, "cpu: needs a limit for the max 1 of LimitRange l"),
        # kubernetes/website#45630, kubernetes/kubernetes#51430
        (
            {"containers": [container(requests={"cpu": "700m"})]},
            {"type": "Container", "default": {"cpu": "500m"}, "max": {"cpu": "1"}},
            "700m is more than the limit 500m that LimitRange l adds",
        ),
    ],
)
def test_a_limit_range_refuses_whole_pods_and_ratios(spec: dict[str, Any], item: dict[str, Any], text: str) -> None:
    assert text in refused(pod(**spec), limited(item))


def test_a_limit_range_counts_a_whole_pod_as_it_is_counted() -> None:
    sidecar = {**container("s", limits={"memory": "300Mi"}), "restartPolicy": "Always"}
    first = container("i", limits={"memory": "1Gi"})  # runs beside no container, but beside the sidecar
    spec = {**TWO, "initContainers": [first, sidecar]}
    assert accepted(spec, {"type": "Pod", "max": {"memory": "1500Mi"}, "maxLimitRequestRatio": {"memory": "2"}})
    assert "1572864000 of limits" in refused(pod(**spec), limited({"type": "Pod", "max": {"memory": "1499Mi"}}))
    own = {**spec, "resources": {"limits": {"memory": "1Gi"}, "requests": {"memory": "1Gi"}}}
    assert accepted(own, {"type": "Pod", "max": {"memory": "1Gi"}})


def test_the_sum_of_cpu_is_of_milli_units() -> None:
    spec = {"containers": [container(limits={"cpu": "0.25"})] * 3}
    assert accepted(spec, {"type": "Pod", "max": {"cpu": "750m"}})
    assert "750m of requests is more than the max 0.7" in refused(
        pod(**spec), limited({"type": "Pod", "max": {"cpu": 0.7}})
    )
