"""Remedies about ports, node names, spread and the pods to run beside, on clusters made for it."""

import pytest
from msgspec.structs import replace

from core.diagnosis.remedies.remedy import (
    AddNode,
    ChangeHostPort,
    DropNodeName,
    Kind,
    LowerRequest,
    RelaxSpread,
    RemovePod,
    RunPod,
)
from core.diagnosis.remedies.what_would_help import what_would_help
from core.objects.kinds import PodDisruptionBudget
from core.objects.labels import parse_selector
from tests.builders import labelled, make_namespace, make_node, term
from tests.core.decoded import pod_of
from tests.core.diagnosis.deciding import HOST, ZONE, asking, decision_of, roomy, using
from tests.core.diagnosis.remedies.helping import ALL, helps, of_kind


def test_the_next_host_port_is_taken_that_no_pod_has() -> None:
    pods = using("web", "n1").host_port(80), using("other", "n2").host_port(81)
    noisy = roomy("n2").taint("x", "", "NoSchedule")
    found = helps(asking().host_port(80), roomy("n1"), noisy, *pods)
    assert [("n1", [ChangeHostPort(80, "TCP", 82)])] == of_kind(Kind.CHANGE_HOST_PORTS, found)
    assert "use the host port 82/TCP instead of 80 (then it fits on n1)" in [each.text for each in found]


def test_two_ports_of_the_pod_never_become_one() -> None:
    holder = using("web", "n1").host_port(80).host_port(81)
    found = of_kind(Kind.CHANGE_HOST_PORTS, helps(asking().host_port(80).host_port(81), roomy("n1"), holder))
    assert [("n1", [ChangeHostPort(80, "TCP", 82), ChangeHostPort(81, "TCP", 83)])] == found


def test_no_port_is_proposed_beyond_the_last_one() -> None:
    found = helps(asking().host_port(65535), roomy("n1"), using("web", "n1").host_port(65535))
    assert not of_kind(Kind.CHANGE_HOST_PORTS, found)


def test_a_port_is_changed_on_a_node_that_is_also_too_small() -> None:
    found = helps(asking(cpu="9").host_port(80), roomy("n1"), using("web", "n1").host_port(80))
    steps = [ChangeHostPort(80, "TCP", 81), LowerRequest("cpu", 1000, 8000)]
    assert [("n1", steps)] == of_kind(Kind.COMBINED, found)


def test_a_constraint_becomes_a_preference_where_no_node_has_the_topology_key() -> None:
    pod = asking().label("app", "web").spread("rack", labelled(app="web"))
    found = helps(pod, roomy("n1"))
    assert [("n1", [RelaxSpread(0, "rack")])] == of_kind(Kind.RELAX_SPREAD, found)
    assert found[0].text == "set whenUnsatisfiable for rack to ScheduleAnyway (then it fits on n1)"


def test_only_the_constraints_that_fail_become_preferences() -> None:
    pod = asking().label("app", "web").spread("rack", labelled(app="web"))
    found = helps(pod.spread(HOST, labelled(app="web")), roomy("n1"))
    assert [("n1", [RelaxSpread(0, "rack")])] == of_kind(Kind.RELAX_SPREAD, found)


def test_a_node_name_that_does_not_exist_is_dropped_or_comes_to_be() -> None:
    pod = replace(pod_of(asking()), node_name="n9")
    found = [*what_would_help(decision_of(pod, roomy("n1")), ALL)]
    assert [("n1", [DropNodeName("n9")])] == of_kind(Kind.DROP_NODE_NAME, found)
    assert [("n9", [AddNode("n9", "n1", "")])] == of_kind(Kind.ADD_NODE, found)


def test_a_node_that_the_pod_names_has_remedies_of_its_own() -> None:
    pod = replace(pod_of(asking(cpu="9")), node_name="n1")
    found = [*what_would_help(decision_of(pod, roomy("n1"), roomy("n2", cpu="4")), ALL)]
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
    for wanted, namespace in ((named, "shop"), (selected, "crimson")):
        spaces = make_namespace("default"), make_namespace("crimson").label("team", "red")
        ((_, (step,)),) = of_kind(Kind.RUN_POD, helps(asking().required_affinity(wanted), roomy("n1"), *spaces))
        assert isinstance(step, RunPod)
        assert namespace == step.namespace


def test_no_pod_is_run_that_cannot_be() -> None:
    both = {"matchExpressions": [{"key": "x", "operator": each} for each in ("Exists", "DoesNotExist")]}
    for wanted in (term(HOST, both), term(HOST), term(HOST, labelled(app="db"), namespace_selector=labelled(team="x"))):
        assert not of_kind(Kind.RUN_POD, helps(asking().required_affinity(wanted), roomy("n1")))


def test_no_pod_is_run_where_the_topology_key_is_missing() -> None:
    assert not of_kind(Kind.RUN_POD, helps(asking().required_affinity(term("rack", labelled(app="x"))), roomy("n1")))


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
    forbidden = ", whose eviction default/web forbids now" if expected else ""
    assert f"remove pod default/web-0 from n1{forbidden} (then it fits on n1)" in [each.text for each in found]


def test_several_budgets_forbid_an_eviction_whatever_they_allow() -> None:
    selector = parse_selector({"app": "web"}, [])
    budgets = [PodDisruptionBudget("default", name, selector, 1) for name in ("one", "two")]
    running = using("web-0", "n1", cpu="8").label("app", "web")
    found = helps(asking(cpu="4"), roomy("n1"), running, objects=budgets)
    expected = RemovePod("default/web-0", "web-0", "n1", ("default/one", "default/two"))
    assert of_kind(Kind.REMOVE_POD, found) == [("n1", [expected])]
