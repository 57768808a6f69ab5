"""Explanations judge devices, for the pods that ask for some, and say what they cannot judge. Responses do not."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from app.objects.resources import RESOURCES
from core.diagnosis.diagnosis import NOTHING_MISSING, Diagnosis
from core.diagnosis.explained_profile import ExplainProfile, Judge, every_rule, served_alone
from core.diagnosis.not_judged import NotJudged
from core.events import ClusterEvent, Kind, Missing
from core.mirror.cluster import ClusterMirror
from core.objects.devices import DeviceTaintRule, ResourceClaim, ResourceSlice
from core.objects.kinds import DeviceClass
from core.profile import full_profile
from core.releases.differences import rules_of
from core.releases.release import Release, nearest
from tests.conformance.engine import decoded_pod, load
from tests.core.plugins.dynamicresources.world import (
    V1,
    alternative,
    claim,
    device,
    in_use,
    request,
    slice_of,
    world,
)

NAME = "DynamicResources"
NOT_EVALUATED = [{"cel": {"expression": '"%x".format([255]) == "ff"'}}]
FREE = [slice_of("s", [device("g0")])]
KINDS: tuple[Kind, ...] = (DeviceClass, ResourceSlice, ResourceClaim, DeviceTaintRule)
LACKS: Mapping[Kind, Missing] = {kind: Missing(f"no {kind.__name__}", "get it") for kind in KINDS}
GPU = "example.com/gpu"


def mirror_of_case(case: V1, gates: Mapping[str, bool] | None = None) -> ClusterMirror:
    """Return the mirror of a case, whose nodes have room for pods."""
    nodes = [{**each, "status": {"allocatable": {"pods": "9"}, **each.get("status", {})}} for each in case["nodes"]]
    mirror = load(case["namespaces"], nodes, case["pods"])
    mirror.change_rules(rules_of(nearest(case["kubernetes"]).release, gates))
    members: dict[str, Kind] = {
        "deviceclasses": DeviceClass,
        "resourceslices": ResourceSlice,
        "resourceclaims": ResourceClaim,
        "devicetaintrules": DeviceTaintRule,
    }
    for member, kind in members.items():
        for each in case.get(member, ()):
            mirror.apply(ClusterEvent("Add", RESOURCES[kind].decode(msgspec.json.encode(each))))
    return mirror


def diagnosis(
    case: V1,
    *,
    missing: Mapping[Kind, Missing] = NOTHING_MISSING,
    gates: Mapping[str, bool] | None = None,
    explained: ExplainProfile | None = None,
    **pod: Any,  # noqa: ANN401  # fields of a spec
) -> Diagnosis:
    """Diagnose the pod of a case on all its nodes. `pod` are fields of its spec."""
    mirror = mirror_of_case(case, gates)
    incoming = decoded_pod(case["pod"] | {"spec": {**case["pod"]["spec"], **pod}})
    batch = mirror.batch([each["metadata"]["name"] for each in case["nodes"]])
    return Diagnosis(explained or every_rule(full_profile()), mirror, incoming, batch, missing=missing)


def verdicts(found: Diagnosis) -> list[str]:
    return [", ".join(found.verdicts.status(at).reasons) for at in range(len(found.batch))]


def test_devices_decide_explanations_and_no_response() -> None:
    taken = claim([request()], "other", in_use("g0"))
    found = diagnosis(world(FREE, [claim([request()]), taken]))
    assert verdicts(found) == ["cannot allocate all claims"]
    assert (found.deciding_plugin(0), found.judge_of(NAME)) == (NAME, Judge.SCHEDULER)
    assert found.response.status(0).reasons == ()
    fits = diagnosis(world(FREE, [claim([request()])]))
    assert (verdicts(fits), fits.not_judged) == ([""], [])


def test_a_pod_without_devices_is_explained_without_the_plugin() -> None:
    case = world(FREE, [])
    found = diagnosis(case, missing={kind: why for kind, why in LACKS.items() if kind is not DeviceClass})
    assert found.explained == served_alone(found.explained.served)
    assert NAME not in {plugin for plugin, _ in found.predicates(0)}
    alone = diagnosis(case, explained=served_alone(found.explained.served))
    assert (found.scores.tolist(), found.not_judged) == (alone.scores.tolist(), [])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("release", ["1.36", "1.37"])
def test_devices_are_not_judged_or_without_taints_of_rules_without_a_kind_that_its_release_reads(
    kind: Kind, release: str
) -> None:
    taken = claim([request()], "other", in_use("g0"))
    found = diagnosis(world(FREE, [claim([request()]), taken], release=release), missing={kind: LACKS[kind]})
    is_of_rules = kind is DeviceTaintRule
    why = f"taints by DeviceTaintRules: no {kind.__name__}" if is_of_rules else f"no {kind.__name__}"
    is_read = not is_of_rules or release == "1.37"
    assert found.not_judged == ([NotJudged(NAME, why, "get it")] if is_read else [])
    assert len(found.fitting) == (not is_of_rules), "the device is taken, which no rule changes"


def asking(amount: int) -> list[V1]:
    return [{"name": "a", "image": "a", "resources": {"requests": {GPU: str(amount)}}}]


def with_class(case: V1) -> V1:
    (of_case,) = case["deviceclasses"]
    return case | {"deviceclasses": [of_case | {"spec": {**of_case["spec"], "extendedResourceName": GPU}}]}


def test_an_extended_resource_of_a_class_is_judged() -> None:
    case = with_class(world(FREE, []))
    assert verdicts(diagnosis(case, containers=asking(1))) == [""]
    found = diagnosis(case, containers=asking(2))
    assert (verdicts(found), found.not_judged) == (["cannot allocate all claims"], [])
    found = diagnosis(case, containers=asking(2), missing={ResourceSlice: LACKS[ResourceSlice]})
    assert (verdicts(found), found.not_judged) == ([""], [NotJudged(NAME, "no ResourceSlice", "get it")])
    of_node = diagnosis(world(FREE, []), containers=asking(2), missing={ResourceSlice: LACKS[ResourceSlice]})
    assert (verdicts(of_node), of_node.not_judged) == ([f"Insufficient {GPU}"], [])
    case["kubernetes"] = "1.36"
    checked = diagnosis(case, containers=asking(1), gates={"DRAExtendedResource": False})
    assert (verdicts(checked), checked.not_judged) == ([f"Insufficient {GPU}"], [])


def test_a_selector_that_is_not_evaluated_may_fit_and_is_no_refusal() -> None:
    need = claim([request(selectors=NOT_EVALUATED)])
    found = diagnosis(world(FREE, [need], nodes=2))
    assert verdicts(found) == ["", "cannot allocate all claims"]
    (reported,) = found.not_judged
    assert reported.plugin == NAME
    assert reported.why == "claim default/c: selector #0: selector not evaluated: the function format (nodes: 1)"
    elsewhere = diagnosis(world(FREE, [need], nodes=2), nodeSelector={"zone": "z1"})
    assert (len(elsewhere.fitting), elsewhere.not_judged) == (0, [])


@pytest.mark.parametrize(
    ("release", "gate", "on"),
    [
        ("1.37", "DRADeviceCompatibilityGroups", True),
        ("1.35", "DRADeviceTaints", True),
        ("1.36", "DRADeviceTaints", False),
    ],
)
def test_other_gates_than_the_default_are_named(release: str, gate: str, *, on: bool) -> None:
    taken = claim([request()], "other", in_use("g0"))
    found = diagnosis(world(FREE, [claim([request()]), taken], release=release), gates={gate: on})
    state = "on" if on else "off"
    why = f"devices are judged only with the default feature gates, and {gate} is {state}"
    assert (verdicts(found), found.not_judged) == ([""], [NotJudged(NAME, why)])
    assert diagnosis(world(FREE, [], release=release), gates={gate: on}).not_judged == []


def test_alternatives_are_scored_where_kube_scheduler_scores() -> None:
    preferred = {"name": "r", "firstAvailable": [alternative("large", count=2), alternative("small")]}
    slices = [slice_of("s", [device("g0")]), slice_of("t", [device("g0"), device("g1")], "other", nodeName="n1")]
    case = world(slices, [claim([preferred])], nodes=2)
    found = diagnosis(case)
    parts = [found.score(at) for at in range(2)]
    assert [
        [(each.weight, each.normalized, each.judged_by) for each in part[1] if each.plugin == NAME]
        for part in parts
        if part is not None
    ] == [[(2, 87, Judge.SCHEDULER)], [(2, 100, Judge.SCHEDULER)]]
    for scheduler, judge in (("claims", Judge.KINDRED), ("default-scheduler", Judge.SCHEDULER)):
        ranked = diagnosis(
            case, explained=every_rule(full_profile(), ranked=frozenset({"claims"})), schedulerName=scheduler
        )
        assert ranked.explained.judge_of_score(NAME) is judge
        assert ranked.judge_of(NAME) is Judge.SCHEDULER
    decided = diagnosis(case, explained=every_rule(full_profile(), devices_score=False))
    assert NAME not in {plugin.name for plugin, _ in decided.profile.scores}
    before = diagnosis(case | {"kubernetes": "1.34"})
    assert NAME in {each.name for each in before.profile.filters}
    assert NAME not in {plugin.name for plugin, _ in before.profile.scores}


def test_a_score_that_is_not_known_for_some_node_is_left_out_and_the_explanation_says_so() -> None:
    preferred = {"name": "r", "firstAvailable": [alternative("odd", selectors=NOT_EVALUATED), alternative("any")]}
    found = diagnosis(world(FREE, [claim([preferred])], nodes=2))
    (why,) = {each.why for each in found.not_judged}
    assert found.not_scored == [NotJudged(NAME, why)]
    parts = [found.score(at) for at in found.fitting.tolist()]
    assert {each.raw for part in parts if part is not None for each in part[1] if each.plugin == NAME} == {None}


def test_gates_of_devices_are_those_of_a_release() -> None:
    assert "DRADeviceCompatibilityGroups" not in rules_of(Release(1, 36)).gates
