"""Steps made to happen: what the pod and the cluster are after them."""

import pytest

from core.diagnosis.amounts.requirements import AskedOfNode, Source
from core.diagnosis.remedies.remedy import (
    DropRequirement,
    LowerRequest,
    RemovePod,
    SetLabel,
    Step,
    TolerateTaint,
    Uncordon,
)
from core.diagnosis.remedies.supposing import HOSTNAME, changed_pod, copy_of, suppose
from core.mirror.what_if import WhatIfError
from core.objects.node import Node
from core.objects.pod import Taint, Toleration
from tests.builders import expressed, named
from tests.core.decoded import mirror_of, node_of, pod_of
from tests.core.diagnosis.deciding import asking, roomy


def asked(term: int, key: str, operator: str, *values: str) -> DropRequirement:
    return DropRequirement(AskedOfNode(Source.NODE_AFFINITY, term, key, operator, values))


def test_a_pod_has_its_requests_and_tolerations_changed() -> None:
    steps: list[Step] = [LowerRequest("cpu", 1000, 500), TolerateTaint("gpu", "x", "NoSchedule")]
    pod = changed_pod(pod_of(asking(cpu="1500m", memory="1Gi")), steps)
    assert dict(pod.requests) == {"cpu": 500, "memory": 2**30}
    assert frozenset({Toleration("gpu", "Equal", "x", "NoSchedule")}) == pod.tolerations


def test_a_requirement_leaves_its_term_and_no_other() -> None:
    both = {"matchExpressions": [{"key": key, "operator": "Exists"} for key in ("a", "b")]}
    pod = pod_of(asking().node_selector({"a": "1"}).required_node_affinity(both, expressed("b", "Gt", "3")))
    required = pod.node_affinity.required
    assert required is not None
    place = next(at for at, term in enumerate(required.terms) if term.requirements)
    left = changed_pod(pod, [asked(place, "b", "Exists")]).node_affinity
    assert left.selector == pod.node_affinity.selector
    assert left.required is not None
    assert [each.key for each in left.required.terms[place].requirements] == ["a"]
    assert required.terms[1 - place] == left.required.terms[1 - place]


def test_without_the_last_requirement_of_a_term_there_is_no_required_affinity() -> None:
    left = changed_pod(
        pod_of(asking().required_node_affinity(named("In", "n1"))), [asked(0, "metadata.name", "In", "n1")]
    )
    assert (left.node_affinity.required, left.node_affinity.node_names) == (None, None)


def test_without_a_name_a_term_allows_any_node_by_name() -> None:
    term = {**named("In", "n1"), **expressed("disk", "Exists")}
    pod = pod_of(asking().required_node_affinity(term, named("In", "n2")))
    required = pod.node_affinity.required
    assert required is not None
    place = next(at for at, each in enumerate(required.terms) if each.requirements)
    assert pod.node_affinity.node_names == frozenset({"n1", "n2"})
    assert changed_pod(pod, [asked(place, "metadata.name", "In", "n1")]).node_affinity.node_names is None
    assert changed_pod(pod, [asked(place, "disk", "Exists")]).node_affinity.node_names == frozenset({"n1", "n2"})


def test_steps_on_one_node_are_supposed_together() -> None:
    mirror = mirror_of(
        roomy("n1", disk="hdd").unschedulable().taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
    )
    with mirror.suppose() as supposed:
        suppose(
            mirror,
            supposed,
            [SetLabel("n1", "disk", "ssd", "hdd"), Uncordon("n1"), SetLabel("n1", HOSTNAME, None, "n1")],
        )
        node = mirror.nodes.infos["n1"].node
        assert node is not None
        assert (dict(node.labels), node.unschedulable, node.taints) == ({"disk": "ssd"}, False, ())


def test_what_is_not_there_cannot_be_changed() -> None:
    mirror = mirror_of(roomy("n1"))
    for step in (Uncordon("gone"), RemovePod("default/gone", "gone", "n1")):
        with mirror.suppose() as supposed, pytest.raises(WhatIfError, match="gone is not there"):
            suppose(mirror, supposed, [step])


def test_a_copy_has_its_own_name_and_no_trouble() -> None:
    like = node_of(
        roomy("n1", zone="a").taint("gpu", "", "NoSchedule").taint("node.kubernetes.io/not-ready", "", "NoExecute")
    )
    copy = copy_of(like, "n1-copy")
    assert "n1-copy" == copy.name == copy.labels[HOSTNAME]
    assert (Taint("gpu", effect="NoSchedule"),) == copy.taints
    assert copy.allocatable == like.allocatable
    assert copy_of(Node("bare"), "copy").labels == {}
