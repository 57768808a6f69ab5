"""`filter` that decides: which node, what is assumed, and when nothing is."""

import asyncio
import json
from collections import Counter

import pytest

from app.objects.decode_node import decode_node
from app.settings.settings import Settings
from app.verbs.filter import Patient
from app.verbs.request import Request, VerbOutcome, VerbResponse
from app.verbs.scopes import DecideScope
from app.wiring.main import create_service
from core.events import ClusterEvent
from tests.app.asgi import ask
from tests.app.questions import mirror_of
from tests.app.verbs.deciding.deciding_setting import DecidingSetting, args, node_of, written
from tests.builders import NodeBuilder, PodBuilder, expressed, labelled, make_node, make_pod, named, term
from tests.core.mirror.audit import audit

HOSTNAME = "kubernetes.io/hostname"
NAMES = ["n0", "n1", "n2", "n3"]


def node(name: str) -> NodeBuilder:
    return make_node(name).label(HOSTNAME, name).allocatable(cpu="4", memory="8Gi", pods=10)


def cluster(*pods: PodBuilder, scope: DecideScope = DecideScope.LISTED_NODES) -> DecidingSetting:
    return DecidingSetting(mirror_of(*(node(name) for name in NAMES), *pods), scope)


def loner(name: str) -> PodBuilder:
    return make_pod(name).label("app", "loner").required_anti_affinity(term(HOSTNAME, labelled(app="loner")))


def test_a_decision_is_one_node_and_counts_at_once() -> None:
    setting = cluster()
    nodes = {setting.decide(loner(f"p{number}"), NAMES) for number in range(4)}
    assert nodes == set(NAMES)
    assert setting.assumed() == {f"default/p{number}": node for number, node in enumerate(sorted(nodes))}
    assert setting.decide(loner("p4"), NAMES) == ""
    assert setting.counts() == {"assumed": 4, "no_fit": 1}
    assert audit(setting.mirror) == []


def test_without_the_assumption_two_pods_would_meet() -> None:
    setting = cluster()
    for name in ("p", "q"):
        setting.tell(loner(name))
    assert node_of(setting.ask(loner("p"), NAMES, dry_run=True)) == node_of(
        setting.ask(loner("q"), NAMES, dry_run=True)
    )
    assert (setting.assumed(), setting.counts()) == ({}, {})


@pytest.mark.parametrize("bound", [pytest.param(False, id="assumed"), pytest.param(True, id="bound")])
def test_a_dry_run_about_a_pod_that_counts_already_does_not_meet_the_pod_itself(*, bound: bool) -> None:
    setting = cluster()
    placed = {name: setting.decide(loner(name), NAMES) for name in ("p", "q", "r", "s")}
    if bound:
        setting.tell(loner("s").on(placed["s"]))
    assert node_of(setting.ask(loner("s"), NAMES, dry_run=True)) == placed["s"]
    assert setting.decide(loner("t"), NAMES) == ""
    assert audit(setting.mirror) == []


def test_the_node_with_the_highest_sum_is_taken_whatever_its_place() -> None:
    setting = cluster(*(make_pod(f"busy-{name}").requests(cpu="3").on(name) for name in ("n0", "n1", "n3")))
    assert setting.decide(make_pod("p").requests(cpu="1"), NAMES) == "n2"
    assert setting.decide(make_pod("q").requests(cpu="1"), ["n3", "n2", "n0"]) == "n2"


@pytest.mark.parametrize("scope", DecideScope)
def test_equal_nodes_are_taken_in_turn(scope: DecideScope) -> None:
    setting = cluster(scope=scope)
    setting.tell(make_pod("p"))
    seen = []
    for setting.turn in range(8):
        seen.append(node_of(setting.ask(make_pod("p"), NAMES, dry_run=True)))
    assert sorted(seen) == sorted(NAMES * 2)


def test_a_thousand_ties_are_spread_over_all_equals() -> None:
    setting = cluster()
    service = create_service(Settings(decide="listed-nodes", profile="full"), setting.mirror, None)
    setting.tell(make_pod("p"))
    requested = [ask(service.app, "POST", "/filter", args(make_pod("p"), NAMES)).json() for _ in range(1000)]
    chosen = Counter(name for response in requested for name in response["NodeNames"])
    assert chosen.keys() == set(NAMES)
    assert min(chosen.values()) > 150  # of 250; fewer than 151 come once in 10**13 runs


def test_any_node_may_be_one_that_was_not_asked_about() -> None:
    setting = cluster(scope=DecideScope.ANY_NODE)
    pod = make_pod("p").node_selector({HOSTNAME: "n3"})
    setting.tell(pod)
    result = json.loads(setting.ask(pod, ["n0", "n1"]).body)
    assert result["NodeNames"] is None
    assert result["Nodes"] == {"metadata": {}, "items": [{"metadata": {"name": "n3"}}]}
    assert (result["FailedNodes"], result["FailedAndUnresolvableNodes"], result["Error"]) == ({}, {}, "")
    assert setting.assumed() == {"default/p": "n3"}


def test_a_pod_of_a_daemon_set_lands_on_its_node_among_all() -> None:
    setting = cluster(scope=DecideScope.ANY_NODE)
    assert setting.decide(make_pod("p").required_node_affinity(named("In", "n2")), ["n0"]) == "n2"


def test_a_question_about_the_nominated_node_is_about_that_node() -> None:
    setting = cluster(make_pod("busy").requests(cpu="3").on("n1"), scope=DecideScope.ANY_NODE)
    nominated = make_pod("p").requests(cpu="1").nominated("n1")
    setting.tell(nominated)
    assert json.loads(setting.ask(nominated, ["n1"]).body)["NodeNames"] == ["n1"]
    setting.tell(make_pod("q").requests(cpu="2").nominated("n1"))
    result = json.loads(setting.ask(make_pod("q").requests(cpu="2").nominated("n1"), ["n1"]).body)
    assert (result["NodeNames"], result["FailedNodes"]) == ([], {"n1": "Insufficient cpu"})


def test_a_pod_that_comes_again_is_decided_for_anew() -> None:
    setting = cluster()
    first = setting.decide(loner("p"), NAMES)
    assert node_of(setting.ask_again(loner("p"), [first])) == first  # its own assumption does not keep it off
    assert setting.assumed() == {"default/p": first}
    other = next(name for name in NAMES if name != first)
    assert node_of(setting.ask_again(loner("p"), [other])) == other
    assert setting.assumed() == {"default/p": other}
    assert setting.counts() == {"assumed": 1, "replaced": 2}
    assert audit(setting.mirror) == []


def test_a_pod_that_comes_again_and_fits_nowhere_counts_nowhere() -> None:
    setting = cluster()
    setting.decide(make_pod("p"), NAMES)
    changed = make_pod("p").node_selector({"no": "such"})
    setting.tell(changed)
    assert node_of(setting.ask_again(changed, NAMES)) == ""
    assert setting.assumed() == {}


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(lambda setting: setting.tell(make_pod("p").on("n0")), id="bound-there"),
        pytest.param(lambda setting: setting.tell(make_pod("p").on("n3")), id="bound-elsewhere"),
        pytest.param(lambda setting: setting.tell(make_pod("p"), "Delete"), id="deleted"),
        pytest.param(lambda setting: setting.tell(make_pod("p").phase("Failed")), id="failed"),
        pytest.param(lambda setting: setting.mirror.expire(1e6), id="expired"),
    ],
)
def test_how_an_assumption_ends(after: object) -> None:
    setting = cluster()
    assert setting.decide(make_pod("p"), NAMES) == "n0"
    assert callable(after)
    after(setting)
    assert setting.assumed() == {}
    assert audit(setting.mirror) == []


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod("p"), id="of-nobody"),
        pytest.param(make_pod("p").on("n0"), id="bound"),
    ],
)
def test_a_pod_that_nothing_is_to_be_decided_for_gets_an_answer(pod: PodBuilder) -> None:
    setting = cluster()
    if pod.node:
        setting.tell(pod)
        response = setting.ask(make_pod("p"), NAMES)
    else:  # a manifest, which no API server has written
        body = json.dumps({"Pod": pod.obj(), "NodeNames": NAMES}).encode()
        response = setting.extender.filter(Request(body), setting.effects)
    assert node_of(response) in NAMES
    assert setting.assumed() == {}
    assert setting.counts() == {"not_assumed": 1}


def test_whole_nodes_come_back_as_they_came() -> None:
    setting = cluster()
    setting.tell(make_pod("p"))
    items = [node(name).obj() for name in ("n2", "n1")]
    body = json.dumps({"Pod": written(make_pod("p")), "Nodes": {"metadata": {}, "items": items}}).encode()
    result = json.loads(setting.extender.filter(Request(body), setting.effects).body)
    assert result["Nodes"]["items"] == items[:1]
    assert result["NodeNames"] is None
    assert setting.assumed() == {"default/p": "n2"}


def test_a_pod_that_the_watch_has_not_shown_is_to_be_looked_up() -> None:
    setting = cluster()
    response = setting.ask(make_pod("p"), NAMES)
    assert response.outcome is VerbOutcome.RETRIED
    assert response.unknown_pod is not None
    assert json.loads(response.body)["Error"] == "pod default/p is not in the watch yet"
    assert setting.assumed() == {}


def test_a_few_nodes_have_a_reason_each_and_many_have_one_together() -> None:
    setting = cluster()
    setting.tell(make_pod("p").requests(cpu="5"))
    reported = json.loads(setting.ask(make_pod("p").requests(cpu="5"), NAMES).body)
    assert reported["FailedAndUnresolvableNodes"] == dict.fromkeys(NAMES, "Insufficient cpu")
    many = [f"m{number}" for number in range(101)]
    setting = DecidingSetting(mirror_of(*(node(name) for name in many)), DecideScope.ANY_NODE)
    setting.tell(make_pod("p").required_node_affinity(expressed("no", "Exists")))
    reported = json.loads(setting.ask(make_pod("p").required_node_affinity(expressed("no", "Exists")), many[:7]).body)
    reason = "decision of kindred: node(s) didn't match Pod's node affinity/selector"
    assert reported["FailedAndUnresolvableNodes"] == {"m0": reason}
    assert (reported["FailedNodes"], reported["NodeNames"], reported["Error"]) == ({}, [], "")


def test_a_refusal_is_the_same_until_something_changes_and_has_the_first_name_of_each_request() -> None:
    setting, pod = cluster(scope=DecideScope.ANY_NODE), make_pod("p").requests(cpu="9").label("app", "web")
    setting.tell(pod)
    found = []
    for names in (["n0", "n1"], ["n0"], ["n0", "n1"], ["n2", "n0"], ["n0"]):
        found.append(json.loads(setting.ask(pod, names).body)["FailedAndUnresolvableNodes"])
        if len(found) == 3:
            setting.mirror.apply(ClusterEvent("Add", decode_node(node("n4").unschedulable().json())))
    small, cordoned = "Insufficient cpu", "node(s) were unschedulable"
    assert found[:3] == [{"n0": f"decision of kindred: {small}"}] * 3
    assert found[3:] == [{name: f"decision of kindred: {small}, {cordoned}"} for name in ("n2", "n0")]


def test_a_stored_refusal_is_not_for_whole_nodes_and_not_for_a_nominated_pod() -> None:
    setting, pod = cluster(scope=DecideScope.ANY_NODE), make_pod("p").requests(cpu="9")
    setting.tell(pod)
    nodes = {"metadata": {}, "items": [node("n0").obj()]}
    whole = Request(json.dumps({"Pod": written(pod), "Nodes": nodes}).encode())
    for _ in range(2):
        stored = json.loads(setting.ask(pod, NAMES).body)
    found = json.loads(setting.extender.filter(whole, setting.effects).body)
    assert (stored["Nodes"], stored["NodeNames"]) == (found["NodeNames"], found["Nodes"]["items"]) == (None, [])
    setting.tell(pod.nominated("n2"))
    rejected = json.loads(setting.ask(pod.nominated("n2"), NAMES).body)["FailedAndUnresolvableNodes"]
    assert (stored["FailedAndUnresolvableNodes"].keys(), rejected.keys()) == ({"n0"}, {"n2"})


# Nominated pods that are refused.


def test_a_refusal_of_the_nominated_node_is_told_though_the_watch_may_be_late_with_the_victims() -> None:
    setting = cluster(*(make_pod(f"low-{name}").requests(cpu="3").on(name) for name in NAMES))
    pod = make_pod("p").priority(10).requests(cpu="3").nominated("n1")
    setting.tell(pod)
    for names in (["n1"], NAMES):
        response = setting.ask(pod, names)
        assert response.retryable, "it is looked at again for a moment"
        reported = json.loads(response.body)
        assert reported["Error"] == ""
        assert reported["FailedNodes"] == dict.fromkeys(names, "Insufficient cpu")


@pytest.mark.parametrize(
    ("leaves_after", "expected"), [(9, {"no_fit": 1}), (2, {"assumed": 1}), (0, {})], ids=["stays", "ends", "given-up"]
)
def test_a_doubted_refusal_counts_once_however_often_it_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, leaves_after: int, expected: dict[str, int]
) -> None:
    monkeypatch.setattr("app.verbs.filter._RETRY_DELAYS", (0.0,) * 4)
    victim = make_pod("low").requests(cpu="3").on("n1")
    setting = DecidingSetting(mirror_of(node("n1"), victim))
    pod = make_pod("p").priority(10).requests(cpu="3").nominated("n1")
    setting.tell(pod)
    looks = iter(range(9))

    def has_left() -> bool:
        if next(looks) == leaves_after - 1:
            setting.tell(victim, "Delete")
        return not leaves_after

    async def requested() -> None:
        response = Patient(setting.extender.filter, setting.extender.unread, setting.effects)(
            Request(args(pod, ["n1"]), has_left=has_left)
        )
        assert not isinstance(response, VerbResponse)
        await response

    asyncio.run(requested())
    assert setting.counts() == expected


@pytest.mark.parametrize(
    ("cpu", "resolvable"), [pytest.param("3", True, id="resolvable"), pytest.param("5", False, id="unresolvable")]
)
def test_a_refusal_on_many_nodes_at_once_is_told_for_the_nominated_one(cpu: str, *, resolvable: bool) -> None:
    many = [f"m{number}" for number in range(101)]
    low = (make_pod(f"low-{name}").requests(cpu="3").on(name) for name in many)
    large = node("large").allocatable(cpu="8", memory="8Gi", pods=10)
    busy = make_pod("busy").requests(cpu="8").on("large")
    setting = DecidingSetting(mirror_of(*map(node, many), *low, large, busy), DecideScope.ANY_NODE)
    pod = make_pod("p").priority(10).requests(cpu=cpu).nominated("m9")
    setting.tell(pod)
    reported = json.loads(setting.ask(pod, many[:7]).body)
    failed, others = ("FailedNodes", "FailedAndUnresolvableNodes")[:: 1 if resolvable else -1]
    assert reported[failed].keys() == {"m9"}
    assert reported[failed]["m9"].startswith("decision of kindred: ")
    assert reported[others] == {}


@pytest.mark.parametrize("nominated", ["", "n1"])
@pytest.mark.parametrize("scope", DecideScope)
def test_where_kube_scheduler_is_not_asked_for_victims_it_looks_for_none_and_keeps_the_nomination(
    nominated: str, scope: DecideScope
) -> None:
    low = (make_pod(f"low-{name}").requests(cpu="3").on(name) for name in NAMES)
    setting = DecidingSetting(mirror_of(*map(node, NAMES), *low), scope, preempt_verb_enabled=False)
    pod = make_pod("p").priority(10).requests(cpu="3")
    pod = pod.nominated(nominated) if nominated else pod
    setting.tell(pod)
    reported = json.loads(setting.ask(pod, NAMES).body)
    assert reported["FailedNodes"].keys() == ({nominated} if nominated else set())
    assert reported["FailedAndUnresolvableNodes"].keys() <= set(NAMES) - {nominated}
    reasons = [*reported["FailedNodes"].values(), *reported["FailedAndUnresolvableNodes"].values()]
    if scope is DecideScope.LISTED_NODES:
        assert reasons == ["Insufficient cpu"] * 4
    else:
        assert reasons == ["decision of kindred: Insufficient cpu"]
