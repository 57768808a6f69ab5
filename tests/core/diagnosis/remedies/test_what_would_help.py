"""Remedies of each kind, on clusters made for it."""

import dataclasses
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.remedies.find_remedies import find_remedies
from core.explaining.pod_steps import (
    DropRequirement,
    Kind,
    LowerRequest,
    RaiseMaxSkew,
    RelaxSpread,
    TolerateTaint,
)
from core.explaining.remedy import RepairNode, RunPod, SetLabel, Step, Uncordon
from core.explaining.requirements import AskedOfNode, Source
from core.plugins.nodeaffinity.plugin import NodeAffinity
from core.profile import Profile, full_profile, parse_profile
from tests.builders import expressed, labelled, make_namespace, make_node, make_pod, named, term
from tests.core.decoded import mirror_of, pod_of
from tests.core.diagnosis.deciding import ALL, HOST, ZONE, asking, decision_of, helps, of_kind, roomy, using
from tests.core.mirror.audit import audit

GI = 2**30


def test_nothing_helps_a_pod_that_fits() -> None:
    assert not helps(asking(cpu="1"), roomy("n1"))
    assert not helps(asking(cpu="1"))


def test_none_are_looked_for_where_none_are_asked_for() -> None:
    assert not find_remedies(decision_of(asking(cpu="9"), roomy("n1")), 0)


def test_a_request_is_lowered_to_the_most_that_is_free() -> None:
    found = helps(asking(cpu="9500m"), roomy("n1", cpu="4"), roomy("n2"), using("a", "n2", cpu="1"))
    assert [("n2", [LowerRequest("cpu", 2500, 7000)])] == of_kind(Kind.LOWER_REQUESTS, found)
    assert "lower the cpu request by 2500m to 7 (then it fits on n2)" in [each.text for each in found]


def test_requests_that_are_short_together_are_lowered_together() -> None:
    nodes = roomy("n1", cpu="4", memory="8Gi"), roomy("n2", cpu="1", memory="1Gi")
    found = helps(asking(cpu="6", memory="10Gi"), *nodes)
    steps: list[Step] = [LowerRequest("cpu", 2000, 4000), LowerRequest("memory", 2 * GI, 8 * GI)]
    assert [("n1", steps)] == of_kind(Kind.LOWER_REQUESTS, found)


def test_each_resource_that_alone_is_short_somewhere_is_lowered_alone() -> None:
    nodes = roomy("n1", cpu="4"), roomy("n2", memory="8Gi")
    found = helps(asking(cpu="6", memory="10Gi"), *nodes)
    expected = [("n2", [LowerRequest("memory", 2 * GI, 8 * GI)]), ("n1", [LowerRequest("cpu", 2000, 4000)])]
    assert expected == of_kind(Kind.LOWER_REQUESTS, found)


def test_a_request_is_dropped_where_nothing_is_free() -> None:
    found = helps(asking(**{"example.com/gpu": 2}), roomy("n1"))
    assert "drop the example.com/gpu request of 2 (then it fits on n1)" in [each.text for each in found]


def test_a_request_is_lowered_to_what_nominated_pods_leave() -> None:
    waiting = make_pod("other").uid("other").image("i").requests(cpu="3").nominated("n1")
    found = helps(asking(cpu="9"), roomy("n1"), waiting)
    assert [("n1", [LowerRequest("cpu", 4000, 5000)])] == of_kind(Kind.LOWER_REQUESTS, found)


def test_a_request_is_lowered_where_only_a_nominated_pod_is_in_the_way() -> None:
    waiting = make_pod("other").uid("other").image("i").requests(cpu="3").nominated("n1")
    found = helps(asking(cpu="6"), roomy("n1"), waiting)
    assert [("n1", [LowerRequest("cpu", 1000, 5000)])] == of_kind(Kind.LOWER_REQUESTS, found)


def test_no_request_is_lowered_for_a_node_with_too_many_pods() -> None:
    full = make_node("full").allocatable(cpu="1", pods=1)
    found = helps(asking(cpu="2"), full, using("a", "full"))
    assert not of_kind(Kind.LOWER_REQUESTS, found)


def test_no_request_is_lowered_below_the_overhead_of_the_runtime_class() -> None:
    pod = dataclasses.replace(asking(cpu="2", memory="1Gi"), spec={"overhead": {"cpu": "500m", "memory": "256Mi"}})
    little, enough = roomy("n1", cpu="400m"), roomy("n2", cpu="600m")
    assert not of_kind(Kind.LOWER_REQUESTS, helps(pod, little))
    assert [("n2", [LowerRequest("cpu", 1900, 600)])] == of_kind(Kind.LOWER_REQUESTS, helps(pod, little, enough))
    both = roomy("n1", cpu="400m", memory="1Gi"), roomy("n2", cpu="500m", memory="300Mi")
    assert not of_kind(Kind.LOWER_REQUESTS, helps(pod, both[0]))
    assert [node for node, _ in of_kind(Kind.LOWER_REQUESTS, helps(pod, *both))] == ["n2"]


def test_the_smallest_set_of_taints_is_tolerated() -> None:
    two = roomy("n1").taint("a", "", "NoSchedule").taint("b", "", "NoSchedule")
    other = roomy("n2").taint("c", "x", "NoExecute")
    more = roomy("n3").taint("c", "x", "NoExecute").taint("a", "", "NoSchedule")
    found = of_kind(Kind.TOLERATE_TAINTS, helps(asking(), two, other, more))
    a_and_b: list[Step] = [TolerateTaint("a", "", "NoSchedule"), TolerateTaint("b", "", "NoSchedule")]
    assert [("n2", [TolerateTaint("c", "x", "NoExecute")]), ("n1", a_and_b)] == found


@pytest.mark.parametrize(
    "key",
    [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/disk-pressure",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cilium.io/agent-not-ready",
        "node.cluster.x-k8s.io/uninitialized",
        "startup-taint.cluster-autoscaler.kubernetes.io/gpu",
        "ignore-taint.cluster-autoscaler.kubernetes.io/gpu",
    ],
)
def test_a_node_that_something_is_wrong_with_is_repaired_and_its_taint_not_tolerated(key: str) -> None:
    unwell = roomy("n1").taint(key, "", "NoSchedule").taint(key, "", "NoExecute")
    found = helps(asking(), unwell)
    assert [("n1", [RepairNode("n1", (key,))])] == of_kind(Kind.REPAIR_NODE, found)
    assert found[0].kind is Kind.REPAIR_NODE
    assert not of_kind(Kind.TOLERATE_TAINTS, found)


def test_a_node_in_trouble_is_uncordoned_too_or_its_other_taint_tolerated() -> None:
    trouble = "node.kubernetes.io/not-ready", "", "NoSchedule"
    tainted, cordoned = roomy("n1").taint("gpu", "", "NoSchedule"), roomy("n2").unschedulable()
    assert "uncordon n2, and repair n2: it is not ready (then it fits on n2)" in [
        each.text for each in helps(asking(), tainted.taint(*trouble), cordoned.taint(*trouble))
    ]
    assert "repair n1: it is not ready, and tolerate the taint gpu:NoSchedule (then it fits on n1)" in [
        each.text for each in helps(asking(), tainted.taint(*trouble))
    ]


@pytest.mark.parametrize(
    "key",
    [
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
        "aws-node-termination-handler/spot-itn",
        "cloud.google.com/impending-node-termination",
    ],
)
def test_a_node_that_is_about_to_go_has_no_remedy(key: str) -> None:
    leaving = roomy("n1").taint(key, "", "NoSchedule")
    assert {Kind.ADD_NODE} == {each.kind for each in helps(asking(), leaving)}


def test_the_taint_of_a_node_that_runs_one_pod_only_is_not_tolerated() -> None:
    """kubernetes-sigs/karpenter#1857: 21 of 24 nodes are of Fargate."""
    fargate = "eks.amazonaws.com/compute-type", "fargate", "NoSchedule"
    assert not of_kind(Kind.TOLERATE_TAINTS, helps(asking(), roomy("n1").taint(*fargate)))


@pytest.mark.parametrize(
    ("taint", "label"),
    [
        ("os", "kubernetes.io/os"),
        ("node.kubernetes.io/os", "kubernetes.io/os"),
        ("kubernetes.io/arch", "kubernetes.io/arch"),
    ],
)
def test_a_platform_is_tolerated_only_by_a_pod_that_asks_for_it(taint: str, label: str) -> None:
    node = roomy("n1").label(label, "other").taint(taint, "other", "NoSchedule")
    assert not of_kind(Kind.TOLERATE_TAINTS, helps(asking(), node))
    assert of_kind(Kind.TOLERATE_TAINTS, helps(asking().node_selector({label: "other"}), node))


def test_a_node_of_etcd_is_tolerated_after_what_is_smaller() -> None:
    etcd = roomy("n1").taint("node-role.kubernetes.io/etcd", "true", "NoExecute")
    found = helps(asking(cpu="8"), etcd, roomy("n2", cpu="4"))
    assert [each.kind for each in found][:2] == [Kind.LOWER_REQUESTS, Kind.TOLERATE_TAINTS]


def test_a_cordoned_node_is_uncordoned_with_its_taint() -> None:
    cordoned = roomy("n1").unschedulable().taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
    found = helps(asking(), cordoned)
    assert [("n1", [Uncordon("n1")])] == of_kind(Kind.UNCORDON_NODE, found)
    assert found[0].text == "uncordon n1"


def test_a_label_is_added_to_the_nearest_node_or_its_requirement_dropped() -> None:
    pod = asking().node_selector({"disk": "ssd", "team": "red"})
    found = helps(pod, roomy("n1", disk="hdd", team="red"), roomy("n2"))
    assert [("n1", [SetLabel("n1", "disk", "ssd", "hdd")])] == of_kind(Kind.LABEL_NODE, found)
    requested = AskedOfNode(Source.NODE_SELECTOR, None, "disk", "In", ("ssd",))
    assert [("n1", [DropRequirement(requested)])] == of_kind(Kind.DROP_REQUIREMENTS, found)
    assert [each.kind for each in found] == [Kind.DROP_REQUIREMENTS, Kind.LABEL_NODE]


@pytest.mark.parametrize(
    ("operator", "values", "labels", "expected"),
    [
        ("Gt", ["4"], {"cores": "4"}, "5"),
        ("Lt", ["4"], {"cores": "4"}, "3"),
        ("Exists", [], {}, "true"),
        ("DoesNotExist", [], {"cores": "4"}, None),
        ("NotIn", ["4"], {"cores": "4"}, None),
    ],
)
def test_a_label_meets_any_operator(
    operator: str, values: Sequence[str], labels: dict[str, str], expected: str | None
) -> None:
    found = helps(asking().required_node_affinity(expressed("cores", operator, *values)), roomy("n1", **labels))
    assert [("n1", [SetLabel("n1", "cores", expected, labels.get("cores"))])] == of_kind(Kind.LABEL_NODE, found)


def test_no_label_is_proposed_that_would_be_a_lie() -> None:
    found = helps(asking().node_selector({ZONE: "c"}), roomy("n1", zone="a"))
    assert not of_kind(Kind.LABEL_NODE, found)
    assert of_kind(Kind.DROP_REQUIREMENTS, found)


@pytest.mark.parametrize(
    "key",
    [
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "feature.node.kubernetes.io/cpu-cpuid.AVX512F",
        "topology.ebs.csi.aws.com/zone",
        "nvidia.com/gpu.product",
        "karpenter.sh/capacity-type",
        "eks.amazonaws.com/nodegroup",
        "cloud.google.com/gke-accelerator",
        "node-role.kubernetes.io/control-plane",
    ],
)
def test_no_label_is_changed_that_others_set_from_what_the_node_is(key: str) -> None:
    """Kubelet sets its own back: pkg/kubelet/kubelet_node_status.go, updateDefaultLabels."""
    for operator, values, labels in (("In", ["x"], {}), ("In", ["x"], {key: "y"}), ("DoesNotExist", [], {key: "y"})):
        found = helps(asking().required_node_affinity(expressed(key, operator, *values)), roomy("n1", **labels))
        assert not of_kind(Kind.LABEL_NODE, found), (operator, labels)


def test_the_labels_of_people_are_changed() -> None:
    for key in ("disktype", "example.com/team", "node-role.kubernetes.io/infra", "node-restriction.kubernetes.io/x"):
        assert of_kind(Kind.LABEL_NODE, helps(asking().node_selector({key: "x"}), roomy("n1")))


def test_a_node_cannot_be_given_another_name_or_contradicting_labels() -> None:
    contradicting = {"matchExpressions": [{"key": "x", "operator": each} for each in ("Exists", "DoesNotExist")]}
    for terms in ([named("In", "n9")], [contradicting]):
        assert not of_kind(Kind.LABEL_NODE, helps(asking().required_node_affinity(*terms), roomy("n1")))


@pytest.mark.parametrize("key", ["kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/arch"])
def test_a_platform_on_which_the_containers_do_not_run_stays_required(key: str) -> None:
    found = helps(asking().node_selector({key: "windows"}), roomy("n1", **{key: "linux"}))
    assert not of_kind(Kind.DROP_REQUIREMENTS, found)


def test_the_last_requirement_of_a_term_takes_the_affinity_with_it() -> None:
    found = helps(asking().required_node_affinity(named("In", "n9")), roomy("n1"))
    requested = AskedOfNode(Source.NODE_AFFINITY, 0, "metadata.name", "In", ("n9",))
    assert [("n1", [DropRequirement(requested)])] == of_kind(Kind.DROP_REQUIREMENTS, found)


def test_a_requirement_of_the_scheduler_is_met_by_a_label_and_not_dropped() -> None:
    added = pod_of(asking().node_selector({"team": "red"})).node_affinity
    plugin = NodeAffinity(added_affinity=added)
    full = full_profile()
    filters = tuple(plugin if each.name == plugin.name else each for each in full.filters)
    mirror = mirror_of(roomy("n1"))
    decision = Diagnosis(replace(full, filters=filters), mirror, pod_of(asking()), mirror.batch(["n1"]))
    found = find_remedies(decision, ALL)
    assert [("n1", [SetLabel("n1", "team", "red", None)])] == of_kind(Kind.LABEL_NODE, found)
    assert not of_kind(Kind.DROP_REQUIREMENTS, found)


def test_max_skew_is_raised_to_the_least_skew() -> None:
    nodes = (roomy("n1", zone="a"), roomy("n2", zone="b"), roomy("n3", zone="c").taint("x", "", "NoSchedule"))
    web = [using(f"w{at}", node).label("app", "web") for at, node in enumerate(("n1", "n1", "n1", "n2", "n2"))]
    found = helps(asking().label("app", "web").spread(ZONE, labelled(app="web")), *nodes, *web)
    assert [("n2", [RaiseMaxSkew(0, ZONE, "b", 1, 3)])] == of_kind(Kind.RAISE_MAX_SKEW, found)


def test_constraints_that_fail_together_are_raised_together() -> None:
    pod = asking().label("app", "web")
    pod = pod.spread(ZONE, labelled(app="web")).spread(HOST, labelled(app="web"))
    nodes = (roomy("n1", zone="a"), roomy("n2", zone="b").taint("x", "", "NoSchedule"))
    web = [using(f"w{at}", "n1").label("app", "web") for at in range(2)]
    found = of_kind(Kind.RAISE_MAX_SKEW, helps(pod, *nodes, *web))
    assert [("n1", [RaiseMaxSkew(0, ZONE, "a", 1, 3), RaiseMaxSkew(1, HOST, "n1", 1, 3)])] == found


def test_no_skew_helps_where_the_topology_key_is_missing() -> None:
    pod = asking().label("app", "web").spread("rack", labelled(app="web"))
    assert not of_kind(Kind.RAISE_MAX_SKEW, helps(pod, roomy("n1")))
    one_has_it = roomy("n2", rack="r").taint("x", "", "NoSchedule")
    assert not of_kind(Kind.RAISE_MAX_SKEW, helps(pod, roomy("n1"), one_has_it))


def test_a_node_that_several_plugins_refuse_takes_several_steps() -> None:
    near = roomy("n1", cpu="4", disk="hdd").taint("gpu", "", "NoSchedule")
    far = roomy("n2", cpu="1").taint("a", "", "NoSchedule").taint("b", "", "NoSchedule")
    found = helps(asking(cpu="6").node_selector({"disk": "ssd"}), near, far)
    requested = AskedOfNode(Source.NODE_SELECTOR, None, "disk", "In", ("ssd",))
    steps: list[Step] = [
        TolerateTaint("gpu", "", "NoSchedule"),
        DropRequirement(requested),
        LowerRequest("cpu", 2000, 4000),
    ]
    assert [("n1", steps)] == of_kind(Kind.COMBINED, found)
    assert found[0].text == (
        "tolerate the taint gpu:NoSchedule, and drop disk=ssd from the pod's nodeSelector, and lower the cpu request "
        "by 2 to 4 (then it fits on n1)"
    )


def test_a_step_is_left_out_if_the_pod_then_fits_on_another_node() -> None:
    """With x tolerated, n3 counts (nodeTaintsPolicy), there are minDomains domains, and n2 has the fewest pods."""
    pod = asking(cpu="1").label("app", "web")
    pod = pod.spread(ZONE, labelled(app="web"), minDomains=2, nodeTaintsPolicy="Honor")
    nodes = (
        roomy("n1", zone="c").taint("x", "", "NoSchedule").taint("y", "", "NoSchedule"),
        roomy("n2", zone="b"),
        roomy("n3", zone="a", cpu="0").taint("x", "", "NoSchedule"),
    )
    web = [using(f"w{at}", node).label("app", "web") for at, node in enumerate(("n2", "n2", "n3", "n3"))]
    found = of_kind(Kind.TOLERATE_TAINTS, helps(pod, *nodes, *web))
    assert [("n2", [TolerateTaint("x", "", "NoSchedule")])] == found


def test_no_remedy_has_more_than_eight_steps() -> None:
    many = asking().node_selector({f"key-{number}": "1" for number in range(9)})
    assert not of_kind(Kind.DROP_REQUIREMENTS, helps(many, roomy("n1")))
    assert not of_kind(Kind.COMBINED, helps(many, roomy("n1").taint("x", "", "NoSchedule")))


def test_remedies_are_in_the_order_of_how_little_they_change() -> None:
    cordoned = roomy("n1").unschedulable()
    found = helps(asking(cpu="8"), cordoned, roomy("n2"), using("a", "n2", cpu="100m"))
    kinds = [Kind.LOWER_REQUESTS, Kind.UNCORDON_NODE, Kind.REMOVE_POD, Kind.ADD_NODE]
    assert kinds == [each.kind for each in found]
    assert found[:2] == [
        *find_remedies(decision_of(asking(cpu="8"), cordoned, roomy("n2"), using("a", "n2", cpu="100m")), 2)
    ]


def test_nothing_is_left_of_what_was_supposed() -> None:
    decision = decision_of(asking(cpu="9").node_selector({"disk": "ssd"}), roomy("n1"), using("a", "n1", cpu="1"))
    before = decision.mirror.dump(), decision.mirror.generation
    find_remedies(decision, ALL)
    assert before == (decision.mirror.dump(), decision.mirror.generation)
    assert not audit(decision.mirror)


def test_a_search_ends_when_no_trials_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.diagnosis.remedies.find_remedies.MAX_TRIALS", 1)
    found = helps(asking(cpu="9"), roomy("n1"), using("a", "n1", cpu="1"))
    assert [each.kind for each in found] == [Kind.LOWER_REQUESTS]


def test_a_pod_that_takes_too_much_work_has_few_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.diagnosis.remedies.find_remedies.MAX_UNITS", 1)
    many = [term(HOST, labelled(app=f"app-{number}")) for number in range(200)]
    pod = asking(cpu="9").required_anti_affinity(*many)
    assert len(helps(pod, roomy("n1"), using("a", "n1", cpu="1"))) <= 1


def test_a_profile_of_one_plugin_has_its_remedies() -> None:
    profile: Profile = parse_profile("TaintToleration")
    mirror = mirror_of(roomy("n1").taint("x", "", "NoSchedule").unschedulable())
    decision = Diagnosis(profile, mirror, pod_of(asking()), mirror.batch(["n1"]))
    found = find_remedies(decision, ALL)
    assert [("n1", [TolerateTaint("x", "", "NoSchedule")])] == of_kind(Kind.TOLERATE_TAINTS, found)


def test_a_constraint_becomes_a_preference_where_no_node_has_the_topology_key() -> None:
    pod = asking().label("app", "web").spread("rack", labelled(app="web"))
    found = helps(pod, roomy("n1"))
    assert [("n1", [RelaxSpread(0, "rack")])] == of_kind(Kind.RELAX_SPREAD, found)
    assert found[1].text == "set whenUnsatisfiable for rack to ScheduleAnyway (then it fits on n1)"


def test_no_constraint_becomes_a_preference_that_the_api_server_refuses() -> None:
    """pkg/apis/core/validation/validation.go: ValidateSpreadConstraintNotRepeat, validateMinDomains."""
    web = labelled(app="web")
    pod = asking().label("app", "web").spread(ZONE, web)
    twice = pod.spread(ZONE, web, when="ScheduleAnyway")
    placed = using("a", "n1").label("app", "web")
    nodes = roomy("n1", zone="a"), roomy("n2", zone="b", cpu="1").unschedulable().taint("x", "", "NoSchedule")
    assert not of_kind(Kind.RELAX_SPREAD, helps(twice, *nodes, placed))
    several = asking().label("app", "web").spread(ZONE, web, minDomains=3)
    found = helps(several, *nodes, placed)
    assert [("n1", [RelaxSpread(0, ZONE, drops_min_domains=True)])] == of_kind(Kind.RELAX_SPREAD, found)
    text = f"set whenUnsatisfiable for {ZONE} to ScheduleAnyway, and drop its minDomains (then it fits on n1)"
    assert text in [each.text for each in found]


def test_only_the_constraints_that_fail_become_preferences() -> None:
    pod = asking().label("app", "web").spread("rack", labelled(app="web"))
    found = helps(pod.spread(HOST, labelled(app="web")), roomy("n1"))
    assert [("n1", [RelaxSpread(0, "rack")])] == of_kind(Kind.RELAX_SPREAD, found)


def test_a_node_that_the_pod_names_has_remedies_of_its_own() -> None:
    pod = replace(pod_of(asking(cpu="9")), node_name="n1")
    found = [*find_remedies(decision_of(pod, roomy("n1"), roomy("n2", cpu="4")), ALL)]
    assert [("n1", [LowerRequest("cpu", 1000, 8000)])] == of_kind(Kind.LOWER_REQUESTS, found)


def test_a_pod_is_run_that_all_required_terms_select() -> None:
    tiers = {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}
    pod = asking().required_affinity(term(ZONE, labelled(app="db")), term(HOST, tiers))
    found = of_kind(Kind.RUN_POD, helps(pod, roomy("n1", zone="a"), make_node("bare").allocatable(cpu=8, pods=10)))
    step = RunPod("default", {"app": "db", "tier": "true"}, "n1", {ZONE: "a", HOST: "n1"})
    assert [("n1", [step])] == found
    assert step.text == f"run a pod with app=db,tier=true in namespace default where {HOST}=n1 and {ZONE}=a"


def test_each_domain_is_proposed_once() -> None:
    nodes = [roomy(f"n{at}", zone=zone) for at, zone in enumerate("aab")]
    found = of_kind(Kind.RUN_POD, helps(asking().required_affinity(term(ZONE, labelled(app="db"))), *nodes))
    assert [step.domains for _, (step,) in found if isinstance(step, RunPod)] == [{ZONE: "a"}, {ZONE: "b"}]


def test_the_pod_runs_in_a_namespace_that_the_terms_speak_of() -> None:
    named = term(HOST, labelled(app="db"), namespaces=["shop"])
    selected = term(HOST, labelled(app="db"), namespace_selector=labelled(team="red"))
    for required, namespace in ((named, "shop"), (selected, "crimson")):
        spaces = make_namespace("default"), make_namespace("crimson").label("team", "red")
        ((_, (step,)),) = of_kind(Kind.RUN_POD, helps(asking().required_affinity(required), roomy("n1"), *spaces))
        assert isinstance(step, RunPod)
        assert namespace == step.namespace


def test_no_pod_is_run_that_cannot_be() -> None:
    both = {"matchExpressions": [{"key": "x", "operator": each} for each in ("Exists", "DoesNotExist")]}
    for required in (
        term(HOST, both),
        term(HOST),
        term(HOST, labelled(app="db"), namespace_selector=labelled(team="x")),
    ):
        assert not of_kind(Kind.RUN_POD, helps(asking().required_affinity(required), roomy("n1")))


def test_no_pod_is_run_where_the_topology_key_is_missing() -> None:
    assert not of_kind(Kind.RUN_POD, helps(asking().required_affinity(term("rack", labelled(app="x"))), roomy("n1")))
