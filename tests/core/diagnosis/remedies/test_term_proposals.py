"""Remedies that change one rule of the pod: a misspelt label, a spread constraint, an affinity term."""

from collections.abc import Sequence
from typing import Final

import pytest

from core.explaining.pod_steps import (
    ChangeTopologyKey,
    HonorPolicy,
    Kind,
    MatchRevision,
    PreferTerm,
    RequiredRule,
    SelectNamespace,
)
from core.explaining.remedy import AddNode, RemakePod, Remedy
from tests.builders import PodBuilder, expressed, labelled, make_namespace, term
from tests.core.diagnosis.deciding import HOST, ZONE, asking, helps, of_kind, roomy, using

QUEUE: Final = labelled(app="queue")


def texts(remedies: Sequence[Remedy]) -> list[str]:
    return [each.text for each in remedies]


def test_a_misspelt_value_is_corrected_first() -> None:
    found = helps(asking().node_selector({"disktype": "sdd"}), roomy("n1", disktype="hdd"), roomy("n2", disktype="ssd"))
    corrected = "ask for disktype=ssd instead of disktype=sdd in the pod's nodeSelector (then it fits on n2)"
    assert texts(found)[0] == corrected
    assert [each.node for each in found if each.kind is Kind.CORRECT_REQUIREMENTS] == ["n2"]


def test_a_misspelt_key_is_corrected() -> None:
    pod = asking().required_node_affinity(expressed("node-role.kubernetes.io/master", "In", ""))
    found = helps(pod, roomy("n1").label("node-role.kubernetes.io/control-plane", ""))
    assert "ask for node-role.kubernetes.io/control-plane= instead" in texts(found)[0]


def test_a_value_that_some_node_has_is_not_misspelt() -> None:
    full = roomy("n1", cpu="1", disk="sdd"), using("a", "n1", cpu="1")
    assert not of_kind(
        Kind.CORRECT_REQUIREMENTS,
        helps(asking(cpu="1").node_selector({"disk": "sdd"}), *full, roomy("n2", disk="ssd")),
    )


def test_a_node_that_lacks_another_label_too_is_not_meant() -> None:
    pod = asking().node_selector({"disk": "sdd", "team": "red"})
    assert not of_kind(Kind.CORRECT_REQUIREMENTS, helps(pod, roomy("n1", disk="ssd", team="blue")))
    found = helps(pod, roomy("n1", disk="ssd", team="Red"))
    assert len(of_kind(Kind.CORRECT_REQUIREMENTS, found)[0][1]) == 2


def site(name: str, node: str) -> PodBuilder:
    return using(name, node).label("app", "site")


def test_tainted_nodes_are_left_out_of_a_constraint() -> None:
    """zimmertr/Kubernetes-Manifests#498, kubernetes/kops#18535, kubernetes/kubernetes#116118."""
    control = roomy("c1").taint("node-role.kubernetes.io/control-plane", "", "NoSchedule")
    pod = asking().label("app", "site").spread(HOST, labelled(app="site"))
    found = helps(pod, control, roomy("w1"), site("a", "w1"))
    assert found[0].text == f"set nodeTaintsPolicy for {HOST} to Honor (then it fits on w1)"
    assert [("w1", [HonorPolicy(0, HOST, "nodeTaintsPolicy")])] == of_kind(Kind.HONOR_POLICY, found)
    honoured = asking().label("app", "site").spread(HOST, labelled(app="site"), nodeTaintsPolicy="Honor")
    assert not of_kind(Kind.HONOR_POLICY, helps(honoured.requests(cpu="9"), control, roomy("w1"), site("a", "w1")))


def test_nodes_that_the_pod_does_not_select_are_left_out_of_a_constraint() -> None:
    pod = asking().label("app", "site").node_selector({"pool": "web"})
    pod = pod.spread(HOST, labelled(app="site"), nodeAffinityPolicy="Ignore")
    found = helps(pod, roomy("n1"), roomy("w1", pool="web"), site("a", "w1"))
    assert [("w1", [HonorPolicy(0, HOST, "nodeAffinityPolicy")])] == of_kind(Kind.HONOR_POLICY, found)


def test_pods_of_other_revisions_are_not_counted() -> None:
    """pytorch/ci-infra#984, kubernetes/kubernetes#98215."""
    pod = asking().label("app", "site").label("pod-template-hash", "2").spread(HOST, labelled(app="site"))
    old = [site(f"old-{at}", "n1").label("pod-template-hash", "1") for at in range(2)]
    found = helps(pod, roomy("n1"), roomy("n2", cpu="0"), *old, using("full", "n2"))
    taken = [("n1", [MatchRevision(0, HOST, "pod-template-hash")])]
    assert taken == of_kind(Kind.MATCH_REVISION, helps(pod.requests(cpu="1"), roomy("n1"), roomy("n2", cpu="0"), *old))
    assert not of_kind(Kind.MATCH_REVISION, found)  # it fits on n2


def test_the_namespace_is_selected_in_which_pods_match() -> None:
    web = term(ZONE, labelled(app="database"))
    nodes = roomy("n1", zone="a"), roomy("n2", zone="b", cpu="1")
    data = [using(f"db-{at}", "n1").in_namespace("data").label("app", "database") for at in range(2)]
    spaces = [make_namespace(name) for name in ("default", "data", "test")]
    other = using("db", "n2").in_namespace("test").label("app", "database")
    found = helps(asking(cpu="2").required_affinity(web), *nodes, *data, other, *spaces)
    assert [("n1", [SelectNamespace(0, ZONE, "data", 2)])] == of_kind(Kind.SELECT_NAMESPACE, found)
    assert found[0].kind is Kind.SELECT_NAMESPACE


def test_a_selector_that_misspells_the_pod_itself_is_corrected() -> None:
    """The first pod of a group may be anywhere: interpodaffinity/filtering.go (satisfyPodAffinity)."""
    pod = asking().label("app", "ingress-nginx").required_affinity(term(ZONE, labelled(app="ingres-nginx")))
    (first, *_) = helps(pod, roomy("n1", zone="a"))
    assert first.text.startswith("select app=ingress-nginx instead of app=ingres-nginx in the required pod affinity")


def test_a_misspelt_selector_of_pods_is_corrected() -> None:
    db = using("db", "n1").label("app", "database")
    found = helps(asking().required_affinity(term(ZONE, labelled(app="databse"))), roomy("n1", zone="a"), db)
    stated = f"select app=database instead of app=databse in the required pod affinity by {ZONE} (then it fits on n1)"
    assert texts(found)[0] == stated
    other = using("other", "n1").label("app", "databse").in_namespace("elsewhere")
    found = helps(asking().required_affinity(term(ZONE, labelled(app="databse"))), roomy("n1", zone="a"), db, other)
    assert found[0].kind is Kind.SELECT_NAMESPACE


def test_affinity_by_hostname_is_met_by_the_zone() -> None:
    full = roomy("n1", zone="a", cpu="1"), roomy("n2", zone="a")
    cache = using("cache", "n1", cpu="1").label("app", "cache")
    found = helps(asking(cpu="1").required_affinity(term(HOST, labelled(app="cache"))), *full, cache)
    step = ChangeTopologyKey(RequiredRule.AFFINITY, 0, HOST, ZONE)
    assert [("n2", [step])] == of_kind(Kind.CHANGE_TOPOLOGY_KEY, found)
    assert [("n2", [PreferTerm(RequiredRule.AFFINITY, 0, HOST)])] == of_kind(Kind.PREFER_TERMS, found)


def test_a_renamed_topology_key_is_changed_to_its_new_name() -> None:
    pod = asking().label("app", "a").spread("failure-domain.beta.kubernetes.io/zone", labelled(app="a"))
    found = helps(pod, roomy("n1", zone="a"))
    assert texts(found)[0].startswith(
        f"set topologyKey of the topology spread constraint from failure-domain.beta.kubernetes.io/zone to {ZONE}"
    )


@pytest.mark.parametrize("key", ["zone", "kubernetes.io/zone", "kubernetes.io/zones"])
def test_a_topology_key_with_a_wrong_prefix_is_the_one_of_that_name(key: str) -> None:
    nodes = roomy("n1", zone="a").label(HOST, "n1"), roomy("n2", zone="b").label(HOST, "n2")
    spread = helps(asking().label("app", "a").spread(key, labelled(app="a")), *nodes)
    (_, steps), *_ = of_kind(Kind.CHANGE_TOPOLOGY_KEY, spread)
    assert steps == [ChangeTopologyKey(RequiredRule.SPREAD, 0, key, ZONE)]
    next_to = asking().required_affinity(term(key, labelled(app="b")))
    (_, steps), *_ = of_kind(Kind.CHANGE_TOPOLOGY_KEY, helps(next_to, *nodes, using("b", "n1").label("app", "b")))
    assert steps == [ChangeTopologyKey(RequiredRule.AFFINITY, 0, key, ZONE)]
    assert not of_kind(Kind.ADD_NODE, spread)


def queue(name: str, node: str, *, kind: str = "StatefulSet") -> PodBuilder:
    pod = using(name, node) if node else asking()
    pod = pod.label("app", "queue").required_anti_affinity(term(ZONE, QUEUE))
    if kind == "ReplicaSet":
        return pod.label("pod-template-hash", "1").owned_by(kind, "queue-1", "q")
    return pod.owned_by(kind, "queue", "q")


def test_anti_affinity_of_one_owner_is_narrowed_and_a_sibling_made_again() -> None:
    """kubernetes/kubernetes#66533: more replicas than zones."""
    nodes = roomy("n1", zone="a"), roomy("n2", zone="a")
    found = helps(queue("", ""), *nodes, queue("queue-0", "n2"))
    again = RemakePod("default/queue-0", "queue-0", "n2", "default/queue", "StatefulSet")
    step = ChangeTopologyKey(RequiredRule.ANTI_AFFINITY, 0, ZONE, HOST)
    assert [("n1", [step, again])] == of_kind(Kind.CHANGE_TOPOLOGY_KEY, found)
    assert [("n1", [PreferTerm(RequiredRule.ANTI_AFFINITY, 0, ZONE), again])] == of_kind(Kind.PREFER_TERMS, found)


def test_a_sibling_that_does_not_fit_on_its_node_again_is_left_alone() -> None:
    """It would go to the place that it leaves to the pending pod."""
    nodes = roomy("n1", zone="a"), roomy("n2", zone="a").taint("x", "", "NoSchedule")
    found = helps(queue("", ""), *nodes, queue("queue-0", "n2"))
    assert not [step for each in found for step in each.steps if isinstance(step, RemakePod)]


def test_the_sibling_of_a_deployment_leaves_in_a_rolling_update() -> None:
    """zalando/postgres-operator#1600: its old ReplicaSet would make the old pod again."""
    nodes = roomy("n1", zone="a"), roomy("n2", zone="a")
    found = helps(queue("", "", kind="ReplicaSet"), *nodes, queue("queue-x", "n2", kind="ReplicaSet"))
    old = RemakePod("default/queue-x", "queue-x", "n2", "default/queue", "Deployment", 2)
    assert [ChangeTopologyKey(RequiredRule.ANTI_AFFINITY, 0, ZONE, HOST), old] in [[*each.steps] for each in found]
    text = "let its old pod default/queue-x go first (maxSurge 0 and maxUnavailable 2 of Deployment default/queue)"
    assert old.text == text


def test_anti_affinity_against_others_needs_no_sibling() -> None:
    db = using("db", "n2").label("app", "db")
    pod = asking().required_anti_affinity(term(ZONE, labelled(app="db")))
    found = helps(pod, roomy("n1", zone="a"), roomy("n2", zone="a", cpu="0"), db)
    step = ChangeTopologyKey(RequiredRule.ANTI_AFFINITY, 0, ZONE, HOST)
    assert [("n1", [step])] == of_kind(Kind.CHANGE_TOPOLOGY_KEY, found)


def test_pods_of_others_that_repel_are_not_made_again() -> None:
    foreign = using("x", "n1").required_anti_affinity(term(ZONE, labelled(app="queue"))).label("app", "queue")
    found = helps(queue("", ""), roomy("n1", zone="a"), foreign)
    assert not [step for each in found for step in each.steps if isinstance(step, RemakePod)]


def test_a_node_in_a_new_zone_is_added_where_all_zones_are_taken() -> None:
    pods = [queue(f"queue-{at}", f"n{at}") for at in range(2)]
    found = helps(queue("", ""), roomy("n0", zone="a"), roomy("n1", zone="b"), *pods)
    assert [AddNode("n0-copy", "n0", "", new_domains=(ZONE,))] in [steps for _, steps in of_kind(Kind.ADD_NODE, found)]
    assert "add a node like n0 in a new zone" in texts(found)
