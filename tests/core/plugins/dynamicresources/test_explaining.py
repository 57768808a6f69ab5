"""What is said of a pod that waits for devices, what would help, and what wakes it."""

from time import process_time
from typing import Final

import pytest

from core.diagnosis.amounts import cluster_amounts, node_amounts
from core.diagnosis.remedies.find_remedies import find_remedies
from core.diagnosis.wakes import wakes
from core.explaining.claim_steps import (
    ChangeDeviceClass,
    DropConstraint,
    DropSelector,
    LowerCapacity,
    LowerCount,
    TolerateDeviceTaint,
    free_claims,
)
from core.explaining.pod_names import PodText
from core.explaining.remedy import AddNode, RemovePod
from core.objects.devices import ResourceClaim, ResourceSlice
from core.plugins.dynamicresources.inventory import Inventory
from tests.core.plugins.dynamicresources.pending import NUMA, TWO, WAITING, Waiting, decided, local, used, user
from tests.core.plugins.dynamicresources.world import DRIVER, V1, alternative, claim, device, request, slice_of, world

MANY: Final = 50


def of(model: str) -> V1:
    return {"cel": {"expression": f'device.attributes["{DRIVER}"].model == "{model}"'}}


def stated(case: V1) -> list[str]:
    return [*cluster_amounts(decided(case), MANY).facts]


def helped(case: V1) -> list[str]:
    return [each.text for each in find_remedies(decided(case), MANY)]


@pytest.mark.parametrize("name", WAITING)
def test_a_person_is_told_what_is_missing_and_what_would_help(name: str) -> None:
    waiting: Waiting = WAITING[name]
    assert not len(decided(waiting.case).fitting)
    assert stated(waiting.case) == waiting.measured
    assert helped(waiting.case) == waiting.helps


def test_at_least_eight_of_ten_pods_can_be_helped() -> None:
    assert sum(bool(each.helps) for each in WAITING.values()) / len(WAITING) >= 0.8


@pytest.mark.parametrize("name", WAITING)
def test_an_explanation_changes_nothing(name: str) -> None:
    decision = decided(WAITING[name].case)
    before = [{**decision.mirror.objects(kind)} for kind in (ResourceClaim, ResourceSlice)]
    find_remedies(decision, MANY)
    assert [{**decision.mirror.objects(kind)} for kind in (ResourceClaim, ResourceSlice)] == before
    inventory, fresh = decision.mirror.derived(Inventory), Inventory(decision.mirror)
    assert inventory.taken == fresh.taken
    assert {each: shares.consumed for each, shares in inventory.shares.items()} == {
        each: shares.consumed for each, shares in fresh.shares.items()
    }


def test_what_a_node_lacks_is_told_of_that_node() -> None:
    case = WAITING["all devices of the class are held"].case
    facts = [[*node_amounts(decided(case), at, MANY).facts] for at in range(2)]
    assert facts == [[f"request r needs 1, 2 match: 2 held by default/train-{at}, none free"] for at in range(2)]
    free = world([local(0, *TWO), local(1)], [claim([request()])], nodes=2)
    assert [[*node_amounts(decided(free), at, MANY).facts] for at in range(2)] == [
        [],
        ["request r needs 1, none match"],
    ]
    assert len(stated(free)) == 1, "a pod that fits needs no nearest node"
    of_both = [{"metadata": {"name": each}, "spec": {"selectors": [of(each)]}} for each in ("gpu", "nic")]
    kinds = [device(each, {"model": {"string": each}}) for each in ("gpu", "nic")]
    apart = world(
        [local(0, kinds[0]), local(1, kinds[1])],
        [claim([request("a"), request("b", deviceClassName="nic")])],
        nodes=2,
        deviceclasses=of_both,
    )
    assert stated(apart)[-1] == "n0: request b needs 1, none match"


def test_programs_get_what_is_said_in_numbers() -> None:
    hot = [{"key": "hot", "effect": "NoSchedule"}]
    slices = [local(0, *TWO, device("g2", taints=hot)), local(1, device("g0"))]
    case = world(slices, [claim([request(count=2)], "c"), used("train", "g0", by=[], pool="p0")], nodes=3)
    decision, none = decided(case), dict.fromkeys(("tainted", "too_small", "in_use", "full", "counted_out"), 0)
    (found,) = cluster_amounts(decision, MANY).counts
    assert (found.plugin, found.of) == (
        "DynamicResources",
        {"claim": "default/c", "request": "r", "device_class": "gpu"},
    )
    seen = none | {"free": 2, "in_use": 1, "tainted": 1}
    assert found.numbers == {"needed": 2, "matching": 4, **seen, "nodes": 2}
    per_node = [node_amounts(decision, at, MANY).counts[0].numbers for at in range(3)]
    assert per_node == [
        {"needed": 2, "matching": 3, **none, "free": 1, "in_use": 1, "tainted": 1, "missing": 1},
        {"needed": 2, "matching": 1, **none, "free": 1, "missing": 1},
        {"needed": 2, "matching": 0, **none, "free": 0, "missing": 2},
    ]
    every = world(slices, [claim([request(allocationMode="All", count=0)])], nodes=2)
    assert "needed" not in cluster_amounts(decided(every), MANY).counts[0].numbers
    assert node_amounts(decided(every), 0, MANY).counts[0].numbers["needed"] == 3
    fitting = decided(world([local(0, *TWO)], [claim([request()])]))
    assert not cluster_amounts(fitting, MANY).counts
    assert node_amounts(fitting, 0, MANY).counts[0].numbers["missing"] == 0


def test_devices_are_told_before_what_other_plugins_have_measured() -> None:
    first, *_, last = cluster_amounts(
        decided({**WAITING["more devices than any node has"].case, "cordoned": ["n1"]}), MANY
    ).lines(2)
    assert first.startswith("claim default/c, request r: needs 8 devices")
    assert last == "cordoned: 1 node, n1"


def test_nothing_is_said_of_a_pod_without_claims_and_of_one_that_fits() -> None:
    assert not stated(world([local(0, *TWO)], []))
    assert not stated(world([local(0, *TWO)], [claim([request()])]))


def test_names_of_pods_and_claims_of_other_namespaces_are_hidden() -> None:
    of_others = used("x", "g0", by=["secret-0"])
    of_others["metadata"]["namespace"] = "secret"
    unknown = used("secret-1", "g1", by=["gone"])
    unknown["metadata"]["namespace"] = "secret"
    pod = user("secret-0", "n0", "x", namespace="secret")
    (fact,) = stated(world([slice_of("s", TWO)], [claim([request()]), of_others, unknown], pods=[pod]))
    assert fact.endswith("2 held by claim secret/secret-1 (1, no known pod uses it), secret/secret-0 (1), none free")
    assert isinstance(fact, PodText)
    assert "secret" not in fact.rendered(lambda namespace: namespace != "secret")
    rendered = fact.rendered(lambda namespace: namespace == "default")
    assert rendered.endswith(
        "2 held by claim (a claim of another namespace) (1, no known pod uses it), (a pod of another namespace) (1), "
        "none free"
    )


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (f"device.attributes['{DRIVER}'].nothing == 'a'", "no such key: nothing"),
        ("device.driver.matches(device.driver)", "selector not evaluated: "),
    ],
)
def test_a_selector_without_a_result_is_not_one_that_matches_nothing(expression: str, why: str) -> None:
    asking = claim([request(selectors=[{"cel": {"expression": expression}}])])
    other = used("x", "g0", "g1", by=["one"])  # upstream evaluates selectors for free devices alone, so it rejects
    fact, *_ = stated(world([slice_of("s", TWO)], [asking, other], pods=[user("one", "n0", "x")]))
    assert f"{expression} has no result for 2 devices: {why}" in fact


def _with(*fields: str) -> V1:
    """Return a template's claim, made for the pod, with other members of `metadata`."""
    made = claim([request()], "c")
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u" if not fields else fields[0], "controller": True}
    ]
    return made


def _of_template(*made: str) -> V1:
    return {
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]},
        "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": each} for each in made]},
    }


def test_a_claim_that_cannot_be_used_is_told_with_the_reason() -> None:
    deleted = claim([request()], "c")
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    in_use_by = deleted | {"status": used("c", "g0", by=["one"], pool="p0")["status"]}
    goes = "claim default/c is being deleted, and goes when no pod uses it (in use by {}): make it again then"
    template = "its ResourceClaimTemplate is missing: see the events of the pod"
    for claims, pod, fact in (
        ([], _of_template(), f"claim gpu: not made from its template yet; if it stays so, {template}"),
        ([_with("other")], _of_template("c"), "claim default/c was not made for this pod: delete it, so that it is"),
        ([deleted], None, goes.format("no known pod")),
        ([in_use_by], None, goes.format("default/one")),
    ):
        case = world([local(0, *TWO)], claims, pods=[user("one", "n0", "c")])
        assert stated(case if pod is None else {**case, "pod": pod}) == [fact]


def test_a_claim_of_a_template_is_made_again_with_its_template_and_its_pod() -> None:
    case = {**world([local(0, *TWO, taints=[])], [_with()]), "pod": _of_template("c")}
    case["resourceclaims"][0]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 3
    assert helped(case) == [
        (
            "make the template of claim default/c again with count 2 instead of 3 in request r, and then the pod "
            "(then it fits on n0)"
        )
    ]


def test_devices_that_would_do_one_by_one_are_told_as_too_few_together() -> None:
    counters = [{"name": "gpu0", "counters": {"memory": {"value": "40Gi"}}}]
    uses = [{"counterSet": "gpu0", "counters": {"memory": {"value": "30Gi"}}}]
    parts = [device(f"part{at}", consumesCounters=uses) for at in range(2)]
    slices = [slice_of("s", parts, count=2), slice_of("t", [], count=2, sharedCounters=counters)]
    assert stated(world(slices, [claim([request(count=2)])]))[-1] == (
        "n0: needs 2 together, and 2 free one by one, which take 60Gi of gpu0/memory: not enough for all at once"
    )
    older, *_ = stated(world(slices[:1], [claim([request()])], release="1.34"))
    assert older.endswith("match: 2 short of counters (this release allocates no parts of devices), none free")
    three = world([local(0, *TWO)], [claim([request("a", count=2), request("b", count=2)])])
    assert stated(three)[-1] == "n0: needs 4 together, and 2 free one by one: not enough for all at once"


def test_a_distinct_attribute_that_too_few_values_meet() -> None:
    devices = [device(f"g{at}", {"numa": {"int": at % 2}}) for at in range(3)]
    case = world(
        [local(0, *devices)], [claim([request(count=3)], constraints=[{"distinctAttribute": f"{DRIVER}/numa"}])]
    )
    assert stated(case)[-1] == (
        f"n0: distinctAttribute {DRIVER}/numa: needs 3 devices with different values; free are 0 (2), 1 (1)"
    )
    assert helped(case)[0].startswith("make claim default/c again with count 2 instead of 3")


def test_an_invalid_pool_and_a_selector_of_the_class_are_told() -> None:
    twice = world([slice_of("s", [TWO[0], TWO[0]])], [claim([request()])])
    assert stated(twice)[-1] == f"n0: pool {DRIVER}/pool is invalid: duplicate device name g0"
    other = {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": 'device.driver == "x"'}}]}}
    (fact,) = stated(world([local(0, *TWO)], [claim([request()])], deviceclasses=[other]))
    assert fact.endswith(
        'the selector of DeviceClass gpu device.driver == "x" matches none of 2 devices; they have driver '
        "gpu.example.com"
    )


def test_where_none_matches_the_pools_that_are_not_counted_are_told() -> None:
    slices = [local(0, *TWO, count=2), local(1, TWO[0], driver="other"), slice_of("s2", [TWO[0], TWO[0]], "p2")]
    first, *_ = stated(world(slices, [claim([request()])], nodes=2))
    assert first.endswith(
        f"they have driver other; 2 incomplete or invalid pools do not count: {DRIVER}/p0, {DRIVER}/p2"
    )
    first, *_ = stated(world(slices[:2], [claim([request()])], nodes=2))
    assert first.endswith(f"they have driver other; 1 incomplete or invalid pool does not count: {DRIVER}/p0")


def test_more_devices_and_requests_than_can_be_counted_in_time_are_not_counted() -> None:
    slices = [slice_of(f"s{at}", [device(f"g{at}-{of}") for of in range(128)], count=125) for at in range(125)]
    requests = [
        {"name": f"r{at}", "firstAvailable": [alternative(f"s{of}", count=32) for of in range(8)]} for at in range(32)
    ]
    decision = decided(world(slices, [claim(requests, constraints=[{"matchAttribute": NUMA}])]))
    assert not len(decision.fitting)
    began = process_time()
    facts = [*cluster_amounts(decision, MANY).facts], [*node_amounts(decision, 0, MANY).facts]
    find_remedies(decision, MANY)
    assert facts == (["the claims have too many requests to count the devices for each"],) * 2
    assert not cluster_amounts(decision, MANY).counts
    assert not node_amounts(decision, 0, MANY).counts
    assert process_time() - began < 3


# What is tried.


def test_a_pod_that_shares_its_claim_frees_nothing() -> None:
    shared = used("x", "g0", "g1", by=["one", "two"])
    pods = [user("one", "n0", "x"), user("two", "n0", "x")]
    assert not helped(world([slice_of("s", TWO, nodeSelector=_z0())], [claim([request()]), shared], pods=pods))
    alone = used("x", "g0", "g1", by=["one"])
    found = helped(world([slice_of("s", TWO, nodeSelector=_z0())], [claim([request()]), alone], pods=pods))
    assert found == ["remove pod default/one, which no owner makes again, from n0 (then it fits on n0)"]


def test_a_claim_that_another_pod_uses_keeps_its_devices() -> None:
    shared = used("x", "g0", by=["one", "two"])
    pods = [user("one", "n0", "x"), user("two", "n0", "x")]
    decision = decided(world([slice_of("s", TWO)], [claim([request()]), shared], pods=pods))
    mirror, claims = decision.mirror, decision.mirror.objects(ResourceClaim)
    pod = mirror.get_pod("one")
    assert pod is not None
    with mirror.fork() as fork:
        free_claims(mirror, fork, pod)
        assert claims["default/x"].reserved_for == ("two",)
        assert claims["default/x"].allocation is not None


def _z0() -> V1:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z0"]}]}]}


@pytest.mark.parametrize("of_template", [False, True])
def test_a_claim_ends_with_the_pod_that_it_was_made_for_and_another_one_is_freed(*, of_template: bool) -> None:
    in_use = used("x", "g0", by=["one"])
    if of_template:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "one", "uid": "one", "controller": True}
        in_use["metadata"]["ownerReferences"] = [owner]
    decision = decided(world([slice_of("s", TWO)], [claim([request(count=2)]), in_use], pods=[user("one", "n0", "x")]))
    mirror, claims = decision.mirror, decision.mirror.objects(ResourceClaim)
    pod = mirror.get_pod("one")
    assert pod is not None
    with mirror.fork() as fork:
        free_claims(mirror, fork, pod)
        assert ("default/x" in claims) is not of_template
        assert of_template or (claims["default/x"].allocation, claims["default/x"].reserved_for) == (None, ())
        assert not mirror.derived(Inventory).taken
    assert claims["default/x"].reserved_for == ("one",)
    assert len(mirror.derived(Inventory).taken) == 1


def test_the_claim_of_extended_resources_ends_with_its_pod() -> None:
    made = used("x", "g0", by=["one"])
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": "one", "uid": "one", "controller": True}
    ]
    made["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    running = user("one", "n0")
    limits = {"limits": {"example.com/gpu": "1"}, "requests": {"example.com/gpu": "1"}}
    running["spec"]["containers"] = [{"name": "m", "image": "i", "resources": limits}]
    case = world([slice_of("s", [TWO[0]])], [claim([request()]), made], pods=[running])
    assert helped(case)[0] == "remove pod default/one, which no owner makes again, from n0 (then it fits on n0)"


def test_a_new_node_brings_the_devices_of_the_one_that_it_is_like() -> None:
    case = WAITING["all devices of the class are held"].case
    decision = decided(case)
    with decision.mirror.fork() as fork:
        AddNode("n0-copy", "n0", "").apply(decision.mirror, fork)
        slices = decision.mirror.objects(ResourceSlice)
        assert [each.pool for each in slices.values() if each.nodes.node_name == "n0-copy"] == ["p0/n0-copy"]
    assert [*slices] == ["s0", "s1"]


def test_only_a_node_with_matching_devices_is_copied_however_many_smaller_kinds_there_are() -> None:
    taken = used("x", "g0", "g1", by=["one", "two"], pool="p6")
    case = world([local(5, TWO[0], driver="other"), local(6, *TWO)], [claim([request()]), taken], nodes=7)
    for size, node in enumerate(case["nodes"], 1):
        node["status"] = {"allocatable": {"cpu": f"{size}", "pods": "9"}}
    assert helped(case) == ["add a node like n6"]


def test_a_class_of_the_same_driver_may_be_asked_for_instead() -> None:
    classes = [
        {"metadata": {"name": "gpu"}, "spec": {"selectors": [of("a")]}},
        {"metadata": {"name": "small"}, "spec": {"selectors": [of("b")]}},
        {"metadata": {"name": "nic"}, "spec": {"selectors": [{"cel": {"expression": 'device.driver == "nic"'}}]}},
    ]
    devices = [device("g0", {"model": {"string": "a"}}), device("g1", {"model": {"string": "b"}})]
    slices = [slice_of("s", devices), slice_of("t", [TWO[0]], "nics", driver="nic")]
    case = world(slices, [claim([request()]), used("x", "g0", by=["gone"])], deviceclasses=classes)
    assert helped(case)[:-1] == [
        "make claim default/c again with deviceClassName small instead of gpu in request r (then it fits on n0)"
    ]


NAMED, OF_TEMPLATE = False, True
STEPS: Final = [
    (LowerCount("a/c", NAMED, "r", 1, 2), "make claim a/c again with count 2 instead of 3 in request r"),
    (
        LowerCapacity("a/c", NAMED, "r", "memory", 2**30 * 10**9, 2**30 * 10**9),
        "make claim a/c again with memory 1Gi instead of 2Gi in request r",
    ),
    (
        LowerCapacity("a/c", OF_TEMPLATE, "r", "cores", 2 * 10**9, 10**9),
        "make the template of claim a/c again with cores 1 instead of 3 in request r, and then the pod",
    ),
    (
        TolerateDeviceTaint("a/c", NAMED, "r/s", "hot", "", "NoExecute"),
        "make claim a/c again with a toleration of the device taint hot:NoExecute in request r/s",
    ),
    (
        ChangeDeviceClass("a/c", NAMED, "r", "gpus", "gpu"),
        "make claim a/c again with deviceClassName gpu instead of gpus in request r",
    ),
    (DropSelector("a/c", NAMED, "r", "true"), "make claim a/c again without the selector true in request r"),
    (DropConstraint("a/c", NAMED, 0, "d/x"), "make claim a/c again without the constraint on d/x"),
]


@pytest.mark.parametrize(("step", "text"), STEPS, ids=lambda each: type(each).__name__)
def test_a_step_is_an_instruction(step: LowerCount, text: str) -> None:
    assert step.text == text


# What wakes it.


def woken(case: V1) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in wakes(decided(case)):
        found.setdefault(f"own {each.resource}" if each.of_pod_itself else each.resource, []).extend(each.actions)
    return found


ALWAYS: Final = {
    "Node": ["Add", "UpdateNodeLabel", "UpdateNodeAllocatable"],
    "DeviceClass": ["Add", "Update"],
    "ResourceSlice": ["Add", "Update"],
}


@pytest.mark.parametrize("release", ["1.34", "1.35", "1.36", "1.37"])
def test_a_pod_wakes_by_the_events_that_the_hints_do_not_skip(release: str) -> None:
    deleted = ["Delete"] if release == "1.37" else []
    slices = [slice_of("s", TWO)]
    none_free = world(slices, [claim([request(count=3)])], release=release)
    assert woken(none_free) == {**ALWAYS, "ResourceClaim": ["Update", *deleted]}
    missing = {**none_free, "resourceclaims": []}
    assert woken(missing) == {**ALWAYS, "ResourceClaim": ["Add", *deleted]}
    not_made = {**missing, "pod": _of_template()}
    del not_made["pod"]["status"]
    assert woken(not_made) == {
        **ALWAYS,
        "ResourceClaim": ["Add", *deleted],
        "own Pod": ["UpdatePodGeneratedResourceClaim"],
    }


def test_removals_are_told_as_steps_for_programs() -> None:
    first, *_ = find_remedies(decided(WAITING["all devices of the class are held"].case), MANY)
    assert [*first.steps] == [RemovePod("default/train-0", "train-0", "n0")]


def test_no_change_is_offered_after_which_a_selector_would_have_to_be_evaluated_that_cannot_be() -> None:
    asking = claim([request(selectors=[{"cel": {"expression": "device.driver.matches(device.driver)"}}])])
    other = used("x", "g0", "g1", by=["one"], pool="p0")
    waiting = decided(world([local(0, *TWO)], [asking, other], pods=[user("one", "n0", "x")]))
    assert not len(waiting.fitting)
    assert [*find_remedies(waiting, MANY)] == []  # without the check: add a node like n0


def test_a_device_whose_nodes_cannot_be_read_is_for_none() -> None:
    odd = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["x"]}]}]}
    devices = [device("g0", allNodes=True), device("g1", nodeSelector=odd)]
    slices = [slice_of("s", devices, perDeviceNodeSelection=True)]
    case = world(slices, [claim([request(count=2)])])
    assert stated(case) == [
        "claim default/c, request r: needs 2 devices of DeviceClass gpu; 1 device of 1 node matches: 1 free"
    ]
    assert helped(case) == ["make claim default/c again with count 1 instead of 2 in request r (then it fits on n0)"]
