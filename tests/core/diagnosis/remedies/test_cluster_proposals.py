"""Remedies about the cluster: a pod that goes, or a node more, also where the volumes of the pod are bound."""

import pytest
from msgspec.structs import replace

from core.diagnosis.remedies.find_remedies import find_remedies
from core.explaining.pod_steps import Kind
from core.explaining.remedy import AddNode, RemovePod
from core.objects.affinity import parse_node_selector
from core.objects.kinds import PodDisruptionBudget
from core.objects.labels import EVERYTHING, NOTHING, parse_selector
from core.objects.volumes import PersistentVolume, PersistentVolumeClaim
from tests.builders import PodBuilder, expressed, labelled, term
from tests.core.decoded import pod_of
from tests.core.diagnosis.deciding import ALL, HOST, ZONE, asking, decision_of, helps, of_kind, roomy, using


def test_a_node_that_the_pod_names_comes_to_be() -> None:
    pod = replace(pod_of(asking()), node_name="n9")
    found = [*find_remedies(decision_of(pod, roomy("n1")), ALL)]
    assert [("n9", [AddNode("n9", "n1", "")])] == of_kind(Kind.ADD_NODE, found)


@pytest.mark.parametrize(
    ("allowed", "disrupted", "expected"),
    [(0, frozenset[str](), ("default/web",)), (1, frozenset[str](), ()), (0, frozenset({"web-0"}), ())],
    ids=["none-allowed", "one-allowed", "counted-already"],
)
def test_a_pod_to_remove_names_the_budgets_that_forbid_its_eviction(
    allowed: int, disrupted: frozenset[str], expected: tuple[str, ...]
) -> None:
    selector = parse_selector({"app": "web"}, [])
    budgets = [
        PodDisruptionBudget("default", "web", selector, allowed, disrupted),
        PodDisruptionBudget("elsewhere", "web", selector),
        PodDisruptionBudget("default", "db", parse_selector({"app": "db"}, [])),
    ]
    running = using("web-0", "n1", cpu="8").label("app", "web")
    found = helps(asking(cpu="4"), roomy("n1"), running, objects=budgets)
    assert [("n1", [RemovePod("default/web-0", "web-0", "n1", expected)])] == of_kind(Kind.REMOVE_POD, found)
    forbidden = ", though default/web forbids its eviction now" if expected else ""
    text = f"remove pod default/web-0, which no owner makes again, from n1{forbidden} (then it fits on n1)"
    assert text in [each.text for each in found]


def test_a_budget_of_all_pods_forbids_an_eviction_though_preemption_ignores_it() -> None:
    budgets = [PodDisruptionBudget("default", "all", EVERYTHING), PodDisruptionBudget("default", "none", NOTHING)]
    found = helps(asking(cpu="4"), roomy("n1"), using("web-0", "n1", cpu="8"), objects=budgets)
    expected = RemovePod("default/web-0", "web-0", "n1", ("default/all",))
    assert of_kind(Kind.REMOVE_POD, found) == [("n1", [expected])]


def test_several_budgets_forbid_an_eviction_whatever_they_allow() -> None:
    selector = parse_selector({"app": "web"}, [])
    budgets = [PodDisruptionBudget("default", name, selector, 1) for name in ("one", "two")]
    running = using("web-0", "n1", cpu="8").label("app", "web")
    found = helps(asking(cpu="4"), roomy("n1"), running, objects=budgets)
    expected = RemovePod("default/web-0", "web-0", "n1", ("default/one", "default/two"))
    assert of_kind(Kind.REMOVE_POD, found) == [("n1", [expected])]


GI = 2**30
DATA = PersistentVolumeClaim(namespace="default", name="data", storage_class="fast", requested=10 * GI, uid="c")
BOUND = replace(DATA, volume="pv", bind_completed=True, phase="Bound")
VOLUME = PersistentVolume(name="pv", storage_class="fast")


def with_claims(*names: str, **requests: str) -> PodBuilder:
    pod = asking(**requests)
    for name in names:
        pod = pod.volume({"name": f"v-{name}", "persistentVolumeClaim": {"claimName": name}})
    return pod


def test_a_node_is_added_where_the_volume_is() -> None:
    in_z = replace(VOLUME, node_affinity=parse_node_selector([([(ZONE, "In", ["z"])], [])]))
    found = helps(with_claims("data"), roomy("n1", zone="a"), objects=[BOUND, in_z])
    step = AddNode("n1-copy", "n1", "z", labels={ZONE: "z"})
    assert [("n1-copy", [step])] == of_kind(Kind.ADD_NODE, found)
    assert found[0].text == "add a node like n1 in zone z"


def test_a_node_of_the_volumes_zone_is_the_pattern() -> None:
    labelled = replace(VOLUME, labels={ZONE: "b"})
    nodes = roomy("n1", zone="a"), roomy("n2", zone="b"), using("full", "n2", cpu="8")
    found = helps(with_claims("data", cpu="4"), *nodes, objects=[BOUND, labelled])
    assert [("n2-copy", [AddNode("n2-copy", "n2", "b")])] == of_kind(Kind.ADD_NODE, found)
    assert [("n2", [RemovePod("default/full", "full", "n2")])] == of_kind(Kind.REMOVE_POD, found)


def test_a_node_is_added_in_the_zone_that_the_pod_asks_for() -> None:
    """koti.dev/posts/node-affinity-issue: all nodes are in us-east-1b."""
    for pod in (
        asking().node_selector({ZONE: "us-east-1a"}),
        asking().required_node_affinity(expressed(ZONE, "In", "us-east-1a")),
    ):
        found = helps(pod, roomy("n1", zone="us-east-1b"))
        step = AddNode("n1-copy", "n1", "us-east-1a", labels={ZONE: "us-east-1a"})
        assert [("n1-copy", [step])] == of_kind(Kind.ADD_NODE, found)


def test_no_node_brings_a_local_volume_back() -> None:
    local = replace(VOLUME, node_affinity=parse_node_selector([([(HOST, "In", ["n7"])], [])]))
    found = helps(with_claims("data"), roomy("n1"), objects=[BOUND, local])
    assert not of_kind(Kind.ADD_NODE, found)


def test_a_claim_that_is_missing_or_unbound_has_no_remedy() -> None:
    assert not helps(with_claims("missing"), roomy("n1"))
    assert not helps(with_claims("data"), roomy("n1"), objects=[replace(DATA, storage_class="gone")])


def test_the_smallest_pod_that_leaves_enough_is_removed() -> None:
    running = (using("small", "n1", cpu="1"), using("middle", "n1", cpu="3"), using("large", "n1", cpu="4"))
    found = of_kind(Kind.REMOVE_POD, helps(asking(cpu="2500m"), roomy("n1"), *running))
    assert [("n1", [RemovePod("default/middle", "middle", "n1")])] == found


def test_the_holder_of_a_host_port_is_removed() -> None:
    found = helps(asking().host_port(80), roomy("n1"), using("a", "n1"), using("web", "n1").host_port(80))
    assert [("n1", [RemovePod("default/web", "web", "n1")])] == of_kind(Kind.REMOVE_POD, found)


def test_two_holders_of_the_ports_are_more_than_one_pod() -> None:
    pods = using("web", "n1").host_port(80), using("dns", "n1").host_port(53)
    assert not of_kind(Kind.REMOVE_POD, helps(asking().host_port(80).host_port(53), roomy("n1"), *pods))


def test_a_pod_is_removed_that_repels_from_another_node_of_the_zone() -> None:
    repelling = using("db", "n2").label("app", "db")
    pod = asking().required_anti_affinity(term(ZONE, labelled(app="db")))
    nodes = (roomy("n1", zone="a"), roomy("n2", zone="a").taint("x", "", "NoSchedule"))
    assert [("n1", [RemovePod("default/db", "db", "n2")])] == of_kind(Kind.REMOVE_POD, helps(pod, *nodes, repelling))


def test_no_pod_is_removed_where_several_repel_or_one_is_missing() -> None:
    repelling = [using(f"db{at}", "n1").label("app", "db") for at in range(2)]
    repelled = asking().required_anti_affinity(term(HOST, labelled(app="db")))
    lonely = asking().required_affinity(term(HOST, labelled(app="web")))
    for pod in (repelled, lonely):
        assert not of_kind(Kind.REMOVE_POD, helps(pod, roomy("n1"), *repelling))


def test_a_pod_is_removed_that_makes_the_skew() -> None:
    nodes = (roomy("n1", zone="a"), roomy("n2", zone="b").taint("x", "", "NoSchedule"))
    running = using("web", "n1").label("app", "web"), using("other", "n1").label("app", "db")
    found = helps(asking().label("app", "web").spread(ZONE, labelled(app="web")), *nodes, *running)
    assert [("n1", [RemovePod("default/web", "web", "n1")])] == of_kind(Kind.REMOVE_POD, found)


def test_the_user_of_a_claim_of_one_pod_is_removed() -> None:
    claim = PersistentVolumeClaim(
        namespace="default",
        name="data",
        volume="pv",
        bind_completed=True,
        access_modes=frozenset({"ReadWriteOncePod"}),
    )
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    user = using("user", "n1").volume(volume)
    nodes = (roomy("n1"), roomy("n2"))
    decision = decision_of(asking().volume(volume), *nodes, user, objects=[claim, PersistentVolume(name="pv")])
    found = of_kind(Kind.REMOVE_POD, find_remedies(decision, ALL))
    assert [RemovePod("default/user", "user", "n1")] in [steps for _, steps in found]


def test_the_user_of_a_disk_is_removed() -> None:
    disk = {"name": "v", "gcePersistentDisk": {"pdName": "disk"}}
    found = helps(asking().volume(disk), roomy("n1"), using("user", "n1").volume(disk))
    assert [("n1", [RemovePod("default/user", "user", "n1")])] == of_kind(Kind.REMOVE_POD, found)


def test_one_more_node_is_like_the_smallest_kind_that_is_large_enough() -> None:
    nodes = [roomy(f"n{at}", cpu=cpu, zone=zone) for at, (cpu, zone) in enumerate((("2", "a"), ("4", "b"), ("4", "a")))]
    pods = [using(f"p{at}", f"n{at}", cpu="2") for at in range(3)]
    found = of_kind(Kind.ADD_NODE, helps(asking(cpu="3"), *nodes, *pods))
    assert [("n2-copy", [AddNode("n2-copy", "n2", "a", ("b",))])] == found


def test_a_copy_has_neither_the_taints_of_a_sick_node_nor_a_name_that_is_taken() -> None:
    sick = roomy("n1").taint("node.kubernetes.io/not-ready", "", "NoExecute").unschedulable()
    found = of_kind(Kind.ADD_NODE, helps(asking(cpu="1"), sick, roomy("n1-copy", cpu="0")))
    assert ("n1-copy-2", [AddNode("n1-copy-2", "n1", "")]) in found
