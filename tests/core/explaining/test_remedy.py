"""Steps as instructions, and as JSON."""

import msgspec
import pytest

from core.events import ClusterEvent
from core.explaining.owners import Way
from core.explaining.pod_steps import (
    ChangeTopologyKey,
    CorrectRequirement,
    DropRequirement,
    HonorPolicy,
    Kind,
    LowerRequest,
    MatchRevision,
    PreferTerm,
    RaiseMaxSkew,
    RelaxSpread,
    RequiredRule,
    SelectNamespace,
    TolerateTaint,
)
from core.explaining.remedy import (
    AddNode,
    RemakePod,
    Remedy,
    RemovePod,
    RepairNode,
    RunPod,
    SetLabel,
    Step,
    Uncordon,
    copy_of,
)
from core.explaining.requirements import AskedOfNode, Source
from core.mirror.fork import ForkError
from core.objects.node import HOSTNAME, ZONE, Node
from core.objects.pod import Taint, Toleration
from core.objects.volumes import CSINode
from tests.builders import expressed, named
from tests.core.decoded import mirror_of, node_of, pod_of
from tests.core.diagnosis.deciding import asking, roomy


def drop(operator: str, *values: str, source: Source = Source.NODE_AFFINITY) -> DropRequirement:
    return DropRequirement(AskedOfNode(source, 0, "disk", operator, values))


STEPS: list[tuple[Step, str]] = [
    (LowerRequest("cpu", 4300, 3200), "lower the cpu request by 4300m to 3200m"),
    (LowerRequest("memory", 2**30, 0), "set the memory request of 1Gi to 0"),  # dropped, it is its limit again
    (LowerRequest("example.com/gpu", 2, 0), "drop the example.com/gpu request of 2"),
    (TolerateTaint("gpu", "a100", "NoSchedule"), "tolerate the taint gpu=a100:NoSchedule"),
    (drop("In", "ssd", source=Source.NODE_SELECTOR), "drop disk=ssd from the pod's nodeSelector"),
    (drop("In", "hdd", "ssd"), "drop disk in (hdd, ssd) from the pod's required node affinity"),
    (drop("NotIn", "hdd"), "drop disk notin (hdd) from the pod's required node affinity"),
    (drop("Exists"), "drop disk from the pod's required node affinity"),
    (drop("DoesNotExist"), "drop !disk from the pod's required node affinity"),
    (drop("Gt", "4"), "drop disk > 4 from the pod's required node affinity"),
    (drop("Lt", "4"), "drop disk < 4 from the pod's required node affinity"),
    (SetLabel("n1", "disk", "ssd", None), "label n1 disk=ssd"),
    (SetLabel("n1", "disk", "ssd", "hdd"), "label n1 disk=ssd instead of hdd"),
    (SetLabel("n1", "disk", None, "hdd"), "take the label disk=hdd from n1"),
    (Uncordon("n1"), "uncordon n1"),
    (RaiseMaxSkew(0, "zone", "a", 1, 3), "raise maxSkew for zone from 1 to 3"),
    (RemovePod("shop/web-0", "u", "n1"), "remove pod shop/web-0, which no owner makes again, from n1"),
    (
        RemovePod("shop/web-0", "u", "n1", ["shop/web", "shop/all"]),
        (
            "remove pod shop/web-0, which no owner makes again, from n1, though shop/web and shop/all forbid its "
            "eviction now"
        ),
    ),
    (
        RemovePod("shop/web-1-x", "u", "n1", (), Way.SCALED_DOWN, "shop/web", "Deployment"),
        (
            "scale Deployment shop/web to 0, which an operator or autoscaler may undo, so that its pod shop/web-1-x "
            "leaves n1"
        ),
    ),
    (
        RemovePod("shop/web-1-x", "u", "n1", (), Way.SCALED_DOWN, "shop/web", "Deployment", siblings=1),
        (
            "annotate pod shop/web-1-x controller.kubernetes.io/pod-deletion-cost=-2147483648, and scale Deployment "
            "shop/web down by one, which an operator or autoscaler may undo, so that its pod shop/web-1-x leaves n1"
        ),
    ),
    (
        RemovePod("shop/db-1", "u", "n1", (), Way.SCALED_DOWN, "shop/db", "StatefulSet", siblings=1),
        (
            "scale StatefulSet shop/db down by one, which an operator or autoscaler may undo, so that its pod "
            "shop/db-1 leaves n1"
        ),
    ),
    (
        RemovePod(
            "shop/web-1-x", "u", "n1", (), Way.ROLLED_OVER, "shop/web", "Deployment", siblings=2, max_unavailable=3
        ),
        (
            "annotate pod shop/web-1-x controller.kubernetes.io/pod-deletion-cost=-2147483648, and set maxSurge of "
            "Deployment shop/web to 0 and its maxUnavailable to 3, so that its old pod shop/web-1-x leaves n1 first"
        ),
    ),
    (
        RemovePod("shop/web-1-x", "u", "n1", (), Way.ROLLED_OVER, "shop/web", "Deployment", max_unavailable=1),
        (
            "set maxSurge of Deployment shop/web to 0 and its maxUnavailable to 1, so that its old pod shop/web-1-x "
            "leaves n1 first"
        ),
    ),
    (
        RemovePod("dev/test-x", "u", "n1", (), Way.OWNER_ENDS, "dev/test", "Job"),
        "end or suspend Job dev/test, so that its pod dev/test-x leaves n1",
    ),
    (
        RemovePod("dev/test-x", "u", "n1", (), Way.TERMINATES, "dev/test", "Job"),
        "wait until pod dev/test-x, which is being deleted, has left n1",
    ),
    (RepairNode("n1", ["node.kubernetes.io/not-ready"]), "repair n1: it is not ready"),
    (
        RepairNode("n1", ["node.kubernetes.io/unreachable", "ebs.csi.aws.com/agent-not-ready"]),
        "repair n1: it does not answer and has the taint ebs.csi.aws.com/agent-not-ready",
    ),
    (
        CorrectRequirement(AskedOfNode(Source.NODE_SELECTOR, None, "disk", "In", ("sdd",)), "disk", "ssd"),
        "ask for disk=ssd instead of disk=sdd in the pod's nodeSelector",
    ),
    (
        CorrectRequirement(AskedOfNode(Source.NODE_AFFINITY, 0, "disk", "In", ("sdd",)), "disk", "ssd"),
        "ask for disk=ssd instead of disk=sdd in the pod's required node affinity",
    ),
    (HonorPolicy(0, "zone", "nodeTaintsPolicy"), "set nodeTaintsPolicy for zone to Honor"),
    (
        MatchRevision(0, "zone", "pod-template-hash"),
        "add pod-template-hash to matchLabelKeys for zone, so that pods of other revisions do not count",
    ),
    (
        SelectNamespace(0, "zone", "data", 1),
        ("add namespace data to the required pod affinity by zone, which does not select it: 1 pod matches there"),
    ),
    (
        ChangeTopologyKey(RequiredRule.ANTI_AFFINITY, 0, "zone", "host"),
        "set topologyKey of the required pod anti-affinity from zone to host",
    ),
    (
        ChangeTopologyKey(RequiredRule.SPREAD, 0, "zone", "host"),
        "set topologyKey of the topology spread constraint from zone to host",
    ),
    (PreferTerm(RequiredRule.AFFINITY, 0, "zone"), "turn the required pod affinity by zone into a preferred one"),
    (
        RemakePod("data/queue-0", "u", "n1", "data/queue", "StatefulSet"),
        "delete pod data/queue-0, which StatefulSet data/queue makes again like that",
    ),
    (AddNode("n1-copy", "n1", "", new_domains=(ZONE, "rack")), "add a node like n1 in a new zone and with a new rack"),
    (RelaxSpread(0, "zone"), "set whenUnsatisfiable for zone to ScheduleAnyway"),
    (RunPod("shop", {"a": "1", "b": ""}, "n1", {"zone": "a"}), "run a pod with a=1,b= in namespace shop where zone=a"),
    (RunPod("shop", {}, "n1", {"zone": "a"}), "run a pod in namespace shop where zone=a"),
    (AddNode("n7", "n1", "a", labels={"disk": "ssd"}), "add a node like n1 named n7 with disk=ssd in zone a"),
    (AddNode("n1-copy", "n1", ""), "add a node like n1"),
    (AddNode("n1-copy", "n1", "a", ["b", "c"]), "add a node like n1 in zone a, or in b or c"),
]


@pytest.mark.parametrize(("step", "text"), STEPS, ids=[text for _, text in STEPS])
def test_a_step_is_an_instruction(step: Step, text: str) -> None:
    assert text == step.text


def test_every_step_survives_json() -> None:
    remedy = Remedy(Kind.COMBINED, "n1", tuple(step for step, _ in STEPS), "much")
    assert msgspec.json.encode(remedy) == msgspec.json.encode(
        msgspec.json.decode(msgspec.json.encode(remedy), type=Remedy)
    )


def requested(term: int, key: str, operator: str, *values: str) -> DropRequirement:
    return DropRequirement(AskedOfNode(Source.NODE_AFFINITY, term, key, operator, values))


def test_a_pod_has_its_requests_and_tolerations_changed() -> None:
    pod = LowerRequest("cpu", 1000, 500).changed(pod_of(asking(cpu="1500m", memory="1Gi")))
    pod = TolerateTaint("gpu", "x", "NoSchedule").changed(pod)
    assert dict(pod.requests) == {"cpu": 500, "memory": 2**30}
    assert frozenset({Toleration("gpu", "Equal", "x", "NoSchedule")}) == pod.tolerations


def test_a_requirement_leaves_its_term_and_no_other() -> None:
    both = {"matchExpressions": [{"key": key, "operator": "Exists"} for key in ("a", "b")]}
    pod = pod_of(asking().node_selector({"a": "1"}).required_node_affinity(both, expressed("b", "Gt", "3")))
    required = pod.node_affinity.required
    assert required is not None
    place = next(at for at, term in enumerate(required.terms) if term.requirements)
    left = requested(place, "b", "Exists").changed(pod).node_affinity
    assert left.selector == pod.node_affinity.selector
    assert left.required is not None
    assert [each.key for each in left.required.terms[place].requirements] == ["a"]
    assert required.terms[1 - place] == left.required.terms[1 - place]


def test_without_the_last_requirement_of_a_term_there_is_no_required_affinity() -> None:
    left = requested(0, "metadata.name", "In", "n1").changed(pod_of(asking().required_node_affinity(named("In", "n1"))))
    assert (left.node_affinity.required, left.node_affinity.node_names) == (None, None)


def test_without_a_name_a_term_allows_any_node_by_name() -> None:
    term = {**named("In", "n1"), **expressed("disk", "Exists")}
    pod = pod_of(asking().required_node_affinity(term, named("In", "n2")))
    required = pod.node_affinity.required
    assert required is not None
    place = next(at for at, each in enumerate(required.terms) if each.requirements)
    assert pod.node_affinity.node_names == frozenset({"n1", "n2"})
    assert requested(place, "metadata.name", "In", "n1").changed(pod).node_affinity.node_names is None
    assert requested(place, "disk", "Exists").changed(pod).node_affinity.node_names == frozenset({"n1", "n2"})


def test_steps_on_one_node_are_supposed_together() -> None:
    mirror = mirror_of(
        roomy("n1", disk="hdd").unschedulable().taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
    )
    with mirror.fork() as forked:
        for step in (SetLabel("n1", "disk", "ssd", "hdd"), Uncordon("n1"), SetLabel("n1", HOSTNAME, None, "n1")):
            step.apply(mirror, forked)
        node = mirror.nodes.infos["n1"].node
        assert node is not None
        assert (dict(node.labels), node.unschedulable, node.taints) == ({"disk": "ssd"}, False, ())


def test_what_is_not_there_cannot_be_changed() -> None:
    mirror = mirror_of(roomy("n1"))
    for step in (Uncordon("gone"), RemovePod("default/gone", "gone", "n1")):
        with mirror.fork() as forked, pytest.raises(ForkError, match="gone is not there"):
            step.apply(mirror, forked)


def test_a_copy_attaches_as_many_volumes() -> None:
    mirror = mirror_of(roomy("n1"))
    mirror.apply(ClusterEvent("Add", CSINode(name="n1", volume_limits={"driver": 3})))
    with mirror.fork() as forked:
        AddNode("n1-copy", "n1", "").apply(mirror, forked)
        assert mirror.objects(CSINode)["n1-copy"].volume_limits == {"driver": 3}
    assert [*mirror.objects(CSINode)] == ["n1"]


def test_a_copy_has_its_own_name_and_no_trouble() -> None:
    like = node_of(
        roomy("n1", zone="a").taint("gpu", "", "NoSchedule").taint("node.kubernetes.io/not-ready", "", "NoExecute")
    )
    copy = copy_of(like, "n1-copy")
    assert "n1-copy" == copy.name == copy.labels[HOSTNAME]
    assert (Taint("gpu", effect="NoSchedule"),) == copy.taints
    assert copy.allocatable == like.allocatable
    new = Taint("node.cloudprovider.kubernetes.io/uninitialized", "true", "NoSchedule")
    assert copy_of(Node("new", taints=(new,)), "copy").taints == (new,)
    assert copy_of(Node("bare"), "copy").labels == {}
