"""`filter` for members of a gang: their places, what is answered while they wait, and what stays as for other pods."""

import asyncio
import gc
import json
import weakref

import pytest

from app.objects.decode_pod import decode_pod
from app.verbs.request import Request, VerbOutcome
from app.verbs.scopes import DecideScope
from core.gangs.unit import SchedulingStatus
from core.objects.groups import GroupKey
from tests.app.verbs.deciding.deciding_setting import DecidingSetting, args, node_of, written
from tests.builders import PodBuilder, labelled, make_pod, term
from tests.core.decoded import mirror_of
from tests.core.gangs.gang_setting import ZONE, member, node
from tests.core.mirror.audit import audit

NAMES = ["n0", "n1"]
A, B, C = (member(name, 3) for name in "abc")
WAITS = "group default/train: waits for 2 more members of 3"


def cluster(*pods: PodBuilder, scope: DecideScope = DecideScope.ANY_NODE, cpu: int = 2) -> DecidingSetting:
    return DecidingSetting(mirror_of(*(node(name, cpu) for name in NAMES), *pods), scope, gangs=True)


def rejections(setting: DecidingSetting, pod: PodBuilder) -> dict[str, str]:
    response = setting.ask(pod, NAMES)
    result = json.loads(response.body)
    assert (result["Error"], result["NodeNames"], result["FailedNodes"]) == ("", [], {})
    assert response.outcome is VerbOutcome.NO_FIT
    failed: dict[str, str] = result["FailedAndUnresolvableNodes"]
    return failed


@pytest.mark.parametrize("scope", DecideScope)
@pytest.mark.parametrize("cached", [True, False])
def test_all_members_get_the_places_that_were_reserved_at_the_first_request(
    scope: DecideScope, *, cached: bool
) -> None:
    mirror = mirror_of(*(node(name) for name in NAMES))
    setting = DecidingSetting(mirror, scope, gangs=True, cached=cached)
    for pod in (A, B, C):
        setting.tell(pod)
    assert node_of(setting.ask(A, NAMES)) in NAMES
    reserved = setting.assumed()
    assert reserved.keys() == {"default/a", "default/b", "default/c"}
    assert [node_of(setting.ask(pod, NAMES)) for pod in (B, C)] == [reserved["default/b"], reserved["default/c"]]
    assert setting.counts() == {"assumed": 3}
    assert {each.deadline is None for each in mirror.assumed.values()} == {False}
    assert audit(mirror) == []


@pytest.mark.parametrize("scope", DecideScope)
def test_while_members_are_missing_one_entry_tells_of_all_nodes_and_no_eviction_helps(scope: DecideScope) -> None:
    setting = cluster(scope=scope)
    setting.tell(A)
    assert rejections(setting, A) == {"n0": f"decision of kindred: {WAITS}"}
    assert setting.counts() == {"gang_waits": 1}
    assert setting.assumed() == {}


def test_other_pods_are_judged_beside_reservations() -> None:
    setting = cluster(cpu=2)
    for pod in (A, B, C):
        setting.tell(pod)
    setting.ask(A, NAMES)
    assert setting.decide(make_pod("large").requests(cpu=2), NAMES) == ""
    assert setting.decide(make_pod("small").requests(cpu=1), NAMES) in NAMES


def test_a_pod_that_has_left_its_group_before_the_watch_shows_it_is_an_ordinary_one() -> None:
    setting, pair = cluster(), [member(name, 2) for name in "ab"]
    for pod in pair:
        setting.tell(pod)
    setting.ask(pair[0], NAMES)
    left = written(make_pod("b").requests(cpu=1))
    left["metadata"]["resourceVersion"] = "8"
    setting.pods.live["default/b"] = decode_pod(json.dumps(left).encode())
    request = Request(json.dumps({"Pod": left, "Nodes": None, "NodeNames": NAMES}).encode())
    response = setting.extender.filter(request, setting.effects)
    assert response.unknown_pod is not None
    assert asyncio.run(setting.effects.lookup.ask(response.unknown_pod)) == ""
    place = node_of(setting.extender.filter(request, setting.effects))
    assert setting.assumed()["default/b"] == place
    setting.tell_object(left)
    setting.decide(make_pod("other"), NAMES)
    assert setting.assumed()["default/b"] == place
    assert audit(setting.mirror) == []


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_the_place_of_a_member_that_others_have_bound_does_not_end_with_the_reservations(*, is_elsewhere: bool) -> None:
    """A GET has shown it, and the watch is late."""
    setting = cluster(cpu=9)
    for pod in (A, B, C):
        setting.tell(pod)
    setting.ask(A, NAMES)
    place = setting.assumed()["default/b"]
    place = next(name for name in NAMES if name != place) if is_elsewhere else place
    sent, live = (decode_pod(json.dumps(written(pod)).encode()) for pod in (B, B.on(place)))
    setting.pods.live["default/b"] = live
    assert asyncio.run(setting.effects.lookup.ask(sent)) == ""
    setting.now = 3600.0
    setting.decide(make_pod("other"), NAMES)
    assert setting.assumed().keys() == {"default/a", "default/b", "default/other"}
    assert setting.assumed()["default/b"] == place


def test_a_member_that_comes_again_is_replaced_alone() -> None:
    setting = cluster()
    for pod in (A, B, C):
        setting.tell(pod)
    for pod in (A, B, C):
        assert node_of(setting.ask(pod, NAMES)) in NAMES
    assert node_of(setting.ask_again(A, NAMES)) in NAMES
    assert setting.counts() == {"assumed": 3, "replaced": 1}


def test_a_dry_run_is_answered_for_the_pod_alone_and_reserves_nothing() -> None:
    setting = cluster()
    setting.tell(A)
    assert node_of(setting.ask(A, NAMES, dry_run=True)) in NAMES
    assert setting.assumed() == {}
    assert setting.counts() == {}


def test_without_gangs_members_are_decided_for_one_by_one() -> None:
    setting = DecidingSetting(mirror_of(*(node(name) for name in NAMES)))
    assert setting.decide(A, NAMES) in NAMES
    assert setting.counts() == {"assumed": 1}


def test_members_that_need_an_in_tree_plugin_are_waited_for() -> None:
    setting = cluster()
    claims = C.obj()
    claims["spec"]["resourceClaims"] = [{"name": "gpu"}]
    for pod in (A, B):
        setting.tell(pod)
    setting.tell_object(claims)
    reported = rejections(setting, A)["n0"]
    assert reported.endswith("waits for 1 more member of 3; 1 cannot be placed by this scheduler now")


def test_the_nodes_of_the_request_hold_for_the_pod_that_it_is_about() -> None:
    setting = cluster(scope=DecideScope.LISTED_NODES, cpu=4)
    for pod in (A, B, C):
        setting.tell(pod)
    assert node_of(setting.ask(A, ["n1"])) == "n1"
    other = "n0" if setting.assumed()["default/b"] == "n1" else "n1"
    assert node_of(setting.ask(B, [other])) == other
    assert audit(setting.mirror) == []


def test_a_member_that_takes_too_much_work_is_answered_with_an_error() -> None:
    setting = cluster()
    heavy = C.required_anti_affinity(*(term(ZONE, labelled(app=f"a{number}")) for number in range(50)))
    for pod in (A, B, heavy):
        setting.tell(pod)
    setting.mirror.work.limit = 1
    response = setting.ask(A, NAMES)
    assert response.outcome is VerbOutcome.TOO_MUCH_WORK
    assert json.loads(response.body)["Error"].startswith("a member of group default/train: Pod.spec.affinity")
    assert setting.assumed() == {}
    assert setting.counts() == {"refused": 1}


class Body(bytearray):
    """A body that a weak reference can be made to."""


def test_the_error_that_a_gang_keeps_does_not_keep_the_request() -> None:
    setting, heavy = cluster(), A.required_anti_affinity(term(ZONE, labelled(app="a")))
    for pod in (heavy, B, C):
        setting.tell(pod)
    setting.mirror.work.limit = 1
    for _ in range(2):
        body = Body(json.dumps(json.loads(args(heavy, NAMES)), separators=(",", ":")).encode())
        assert setting.extender.filter(Request(body), setting.effects).outcome is VerbOutcome.TOO_MUCH_WORK
        reference = weakref.ref(body)
        del body
        gc.collect()
        assert reference() is None


def test_after_a_restart_the_rest_of_a_gang_comes_before_any_other_pod() -> None:
    setting = cluster(A.on("n0"), cpu=2)
    for pod in (B, C):
        setting.tell(pod)
    assert setting.decide(make_pod("other").requests(cpu=2), NAMES) == ""
    assert setting.assumed().keys() == {"default/b", "default/c"}
    assert setting.effects.gangs is not None
    found = setting.effects.gangs.unit_status(GroupKey("default/train"), setting.now)
    assert found is not None
    assert found.status is SchedulingStatus.RESERVED


@pytest.mark.parametrize("scope", DecideScope)
@pytest.mark.parametrize("known", [True, False])
def test_a_request_that_names_only_nodes_that_are_not_known(scope: DecideScope, *, known: bool) -> None:
    setting = DecidingSetting(mirror_of(*(node(name) for name in NAMES if known)), scope, gangs=True)
    for pod in (A, B, C):
        setting.tell(pod)
    result = json.loads(setting.ask(A, ["gone"]).body)
    assert result["Error"] == ""
    placed = known and scope is DecideScope.ANY_NODE
    assert bool(result["FailedAndUnresolvableNodes"]) is not placed
    assert bool(setting.assumed()) is placed
    assert audit(setting.mirror) == []
