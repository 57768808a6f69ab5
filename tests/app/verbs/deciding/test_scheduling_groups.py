"""Members of the groups that kube-scheduler schedules: every node of the request is right, and the answer counts."""

import asyncio
import json
import logging
from typing import Any, Final

import pytest

from app.feeds.objects import MirrorFeed
from app.objects.decode_pod import decode_pod
from app.settings.settings import Settings, SettingsError
from app.verbs import decide as decider
from app.verbs.effects import LONGEST_WAIT
from app.verbs.request import Request, VerbResponse
from app.wiring.main import create_service
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.mirror.topology import IntpArray
from core.mirror.work import WorkLimitError
from core.objects.groups import SchedulingGroup
from core.releases.differences import rules_of
from core.releases.release import Release
from tests.app.questions import mirror_of
from tests.app.verbs.deciding.deciding_setting import DecidingSetting, node_of, written
from tests.builders import PodBuilder, make_node, make_pod
from tests.core.mirror.audit import audit

GROUPS: Final = "grouped"
NAMES: Final = ["n0", "n1"]


def setting(minimum: int = 1, *, cycles: bool = True, unsupported: str = "") -> DecidingSetting:
    mirror = mirror_of(*(make_node(name).allocatable(cpu="2", memory="8Gi", pods=10) for name in NAMES))
    mirror.change_rules(rules_of(Release(1, 37), {"GenericWorkload": cycles}))
    made = SchedulingGroup(namespace="default", name="g", minimum=minimum, unsupported=unsupported)
    mirror.apply(ClusterEvent("Add", made))
    return DecidingSetting(mirror, groups_scheduler=GROUPS)


def member(name: str, *, cpu: str = "2", scheduler: str = GROUPS, nominated: str = "") -> dict[str, Any]:
    pod = written(make_pod(name).requests(cpu=cpu))
    pod["spec"] |= {"schedulerName": scheduler, "schedulingGroup": {"podGroupName": "g"}}
    if nominated:
        pod.setdefault("status", {})["nominatedNodeName"] = nominated
    return pod


def requested(made: DecidingSetting, pod: dict[str, Any], names: list[str], *, dry_run: bool = False) -> VerbResponse:
    body = json.dumps({"Pod": pod, "NodeNames": names}).encode()
    return made.extender.filter(Request(body, cached=not dry_run), None if dry_run else made.effects)


def response(made: DecidingSetting, pod: dict[str, Any], *names: str) -> str:
    made.tell_object(pod)
    return node_of(requested(made, pod, list(names)))


def single(name: str) -> PodBuilder:
    return make_pod(name).requests(cpu="2")


def test_a_member_counts_from_its_answer_on() -> None:
    made = setting()
    assert response(made, member("m"), "n0", "n1") == "n0"
    assert made.assumed() == {"default/m": "n0"}
    assert made.decide(single("p"), NAMES) == "n1"
    assert made.decide(single("q"), NAMES) == ""
    assert made.counts() == {"assumed": 2, "no_fit": 1}


def test_a_node_that_fits_here_is_preferred_and_none_is_refused() -> None:
    made = setting()
    assert made.decide(single("p"), ["n0"]) == "n0"
    assert response(made, member("m"), "n0", "n1") == "n1"
    assert response(made, member("m2"), "n0", "n1") in NAMES  # kube-scheduler knows what Kindred does not: p has gone
    assert response(made, member("m3"), "n0") == "n0"
    assert response(made, member("m4"), "unknown") == "unknown"
    assert audit(made.mirror) == []


def test_no_node_is_rejected_for_a_member_so_kindred_preempts_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    made = setting()
    rejected: list[str] = []
    monkeypatch.setattr(made.effects, "reject", lambda pod, *_: rejected.append(pod.name))
    assert made.decide(single("p"), ["n0"]) == "n0"
    assert response(made, member("m"), "n0") == "n0"
    assert made.decide(single("q"), ["n0"]) == ""
    assert rejected == ["q"]


def test_too_much_work_for_the_scores_of_a_member_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def heavy(*_: object) -> IntpArray:
        raise WorkLimitError("spec.affinity", 9, 2, 1)

    made = setting()
    monkeypatch.setattr(decider, "best_by_score", heavy)
    assert made.decide(single("p"), ["n0"]) == "n0"
    made.tell_object(member("m"))
    assert "Pod.spec.affinity: too much work" in json.loads(requested(made, member("m"), ["n0"]).body)["Error"]
    assert made.assumed() == {"default/p": "n0"}


def test_a_member_that_is_asked_about_again_moves_and_its_siblings_stay() -> None:
    made = setting()
    assert response(made, member("m"), "n0") == "n0"
    assert response(made, member("m2"), "n1") == "n1"
    assert response(made, member("m"), "n1") == "n1"
    assert made.assumed() == {"default/m": "n1", "default/m2": "n1"}
    assert made.counts() == {"assumed": 3}  # none is counted as replaced: each cycle asks again


def test_a_cycle_below_the_minimum_leaves_no_place(caplog: pytest.LogCaptureFixture) -> None:
    made = setting(minimum=3)
    made.decide(make_pod("first"), ["n1"])
    made.now = 31.0
    with caplog.at_level(logging.INFO, "app.verbs.effects"):
        response(made, member("m"), "n0")
        response(made, member("m2"), "n1")
        assert made.decide(single("p"), NAMES) == "n0"
    assert made.assumed() == {"default/first": "n1", "default/p": "n0"}
    assert [record.message for record in caplog.records] == [
        "group default/g: fewer than its minimum of 3 had a node, so its cycle has bound nothing: released 2 places"
    ]


def test_a_cycle_ends_by_silence() -> None:
    made = setting(minimum=3)
    made.decide(make_pod("first"), ["n1"])
    made.now = 31.0
    response(made, member("m"), "n0")
    made.now = 42.0
    made.effects.review_cycles()
    assert made.assumed() == {"default/first": "n1"}


def test_places_of_cycles_after_a_start_block_no_pod_for_as_long_as_a_binding_may_wait(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The next cycle asks about the first member alone, because kube-scheduler has one node left for the gang."""
    lists = []

    async def relist() -> None:
        lists.append(made.now)

    made = setting(minimum=3)
    made.effects.take_over(0.0)
    response(made, member("m"), "n0", "n1")
    response(made, member("m2"), "n0", "n1")
    assert made.decide(single("p"), NAMES) == ""
    made.now = 31.0
    response(made, member("m"), "n1")
    assert made.decide(single("p"), NAMES) == "n0"
    assert made.decide(single("q"), NAMES) == ""  # m2 still has its place
    with caplog.at_level(logging.INFO, "app.verbs.effects"):
        asyncio.run(made.effects.release_unproved(relist))
        asyncio.run(made.effects.release_unproved(relist))
    assert made.decide(single("q"), NAMES) == "n1"
    assert lists == [31.0]
    assert [record.message for record in caplog.records] == [
        "group default/g: its cycle shortly after the start has bound none of these members: released 1 places"
    ]


def test_without_cycles_its_own_signs_alone_end_a_place() -> None:
    made = setting(minimum=3, cycles=False)
    response(made, member("m"), "n0")
    assert made.decide(single("p"), NAMES) == "n1"
    made.now = LONGEST_WAIT
    made.effects.review_cycles()
    assert made.assumed() == {"default/m": "n0", "default/p": "n1"}
    assert [pod.name for pod in made.mirror.expire(LONGEST_WAIT + 1.0)] == ["p", "m"][::-1]


@pytest.mark.parametrize(
    ("pod", "problem"),
    [
        pytest.param(
            member("m", scheduler="kindred"),
            "pod default/m is in the scheduling group default/g, which needs all in-tree filters: "
            "give all its members spec.schedulerName: grouped",
            id="another-scheduler",
        ),
        pytest.param(
            {**member("m"), "spec": {**member("m")["spec"], "schedulingGroup": {"podGroupName": "h"}}},
            "pod default/m is in the scheduling group default/h: the PodGroup is not in the watch yet",
            id="no-pod-group",
        ),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_member_that_cannot_be_placed_is_an_error_with_the_remedy(
    pod: dict[str, Any],
    problem: str,
    dry_run: bool,  # noqa: FBT001 - a column of the table
) -> None:
    made = setting()
    made.tell_object(pod)
    response = requested(made, pod, NAMES, dry_run=dry_run)
    assert json.loads(response.body)["Error"] == problem
    assert made.assumed() == {}


@pytest.mark.parametrize("field", ["spec.schedulingConstraints", "spec.parentCompositePodGroupName"])
def test_a_group_of_which_placements_are_tried_is_an_error(field: str) -> None:
    made = setting(unsupported=field)
    made.tell_object(member("m"))
    assert json.loads(requested(made, member("m"), NAMES).body)["Error"] == (
        f"pod default/m is in the scheduling group default/g, whose {field} makes kube-scheduler try several "
        "placements: give all its members a scheduler that Kindred does not decide for"
    )


def test_a_member_of_a_workload_of_1_35_counts_without_an_object() -> None:
    made = setting(cycles=False)
    pod = member("m")
    del pod["spec"]["schedulingGroup"]
    pod["spec"]["workloadRef"] = {"name": "w", "podGroup": "g"}
    assert response(made, pod, "n0") == "n0"
    assert made.assumed() == {"default/m": "n0"}


def test_a_dry_run_answers_alike_and_changes_nothing() -> None:
    made = setting()
    made.tell_object(member("m"))
    assert node_of(requested(made, member("m"), ["n1"], dry_run=True)) == "n1"
    assert (made.assumed(), made.counts()) == ({}, {})


def test_a_pod_without_a_group_is_judged_by_kindred_too() -> None:
    made = setting()
    pod = written(single("p"))
    pod["spec"]["schedulerName"] = GROUPS
    assert response(made, member("m"), "n0") == "n0"
    assert response(made, pod, "n0", "n1") == "n1"


def test_a_place_outlives_its_deadline_while_the_pod_is_nominated_there() -> None:
    made = setting(cycles=False)
    response(made, member("m"), "n0")
    made.tell_object(member("m", nominated="n0"))
    assert made.mirror.expire(LONGEST_WAIT + 1.0) == []
    made.tell_object(member("m", nominated="n1"))
    assert made.mirror.expire(LONGEST_WAIT + 2.0) == []  # due again ten seconds later
    assert [pod.name for pod in made.mirror.expire(LONGEST_WAIT + 20.0)] == ["m"]


def test_a_place_outlives_no_deadline_once_its_pod_is_deleted_though_a_finalizer_keeps_the_pod() -> None:
    """No API server binds it, and no scheduler asks about it again or takes the nomination away."""
    made = setting(cycles=False)
    response(made, member("m"), "n0")
    deleted = member("m", nominated="n0")
    deleted["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/keep"]}
    made.tell_object(deleted)
    assert made.mirror.expire(LONGEST_WAIT) == []
    assert [pod.name for pod in made.mirror.expire(LONGEST_WAIT + 1.0)] == ["m"]


def test_the_condition_of_a_member_ends_no_place() -> None:
    """It is not written again if it is unchanged, and an earlier one may come late."""
    made = setting(cycles=False)
    response(made, member("m"), "n0")
    feed = MirrorFeed(made.mirror, lambda: 400.0, lambda _: None)
    failed = member("m")
    failed["status"] = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    feed.apply(ClusterEvent("Update", decode_pod(json.dumps(failed).encode())))
    assert made.assumed() == {"default/m": "n0"}


def test_pods_whose_binding_may_wait_count_on_their_nominated_node_before_the_first_decision() -> None:
    made = setting()
    waiting = member("m", nominated="n0")
    other = member("m2", cpu="0", scheduler="kindred", nominated="n1")
    for pod in (waiting, other, member("m3")):
        made.tell_object(pod)
    made.effects.take_over(0.0)
    made.effects.take_over(0.0)
    assert made.assumed() == {"default/m": "n0"}
    assert made.decide(single("p"), NAMES) == "n1"


@pytest.mark.parametrize(("since", "counts_on"), [pytest.param(0.0, "n0", id="no"), pytest.param(1.0, "n1", id="yes")])
def test_a_pod_counts_where_another_leader_decided_for_it_since_this_one_did(since: float, counts_on: str) -> None:
    """Its binding waits there. If no other has led, the nomination may be older than the decision."""
    made = setting(cycles=False)
    response(made, member("m"), "n0")
    made.tell_object(member("m", nominated="n1"))
    made.now = 2.0
    made.effects.take_over(since)
    assert made.assumed() == {"default/m": counts_on}
    assert made.decide(single("p"), [counts_on]) == ""


def test_a_request_for_a_nominated_member_ends_no_cycle() -> None:
    """Its place is no answer of the cycle, so the request is the first one for it."""
    made = setting(minimum=3)
    made.tell_object(member("m", nominated="n0"))
    made.effects.take_over(0.0)
    made.decide(make_pod("first"), ["n1"])
    made.now = 31.0
    response(made, member("m2"), "n1")
    response(made, member("m"), "n0")
    response(made, member("m3", cpu="0"), "n1")
    assert made.decide(single("p"), NAMES) == ""
    assert made.assumed().keys() == {"default/m", "default/m2", "default/m3", "default/first"}


def test_a_scheduler_for_groups_needs_all_filters() -> None:
    named = {"decide_groups_scheduler": GROUPS, "decide_claims_scheduler": GROUPS}
    made = Settings.model_validate({"decide": "listed-nodes", "profile": "full", **named})
    with pytest.raises(SettingsError) as caught:
        create_service(made, ClusterMirror(), None)
    problem = (
        "KINDRED_DECIDE_GROUPS_SCHEDULER='grouped': the profile for claims lacks in-tree filters; name another one"
    )
    assert str(caught.value) == problem
