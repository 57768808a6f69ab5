"""What a person is told who does not know devices: why there are none, whose they are, and what happens by itself."""

from typing import Any, Final

import pytest

from core.diagnosis.amounts import cluster_amounts, node_amounts
from core.diagnosis.remedies.find_remedies import find_remedies
from tests.core.plugins.dynamicresources.pending import NUMA, ON_N1, TWO, decided, local, used, user
from tests.core.plugins.dynamicresources.world import (
    DRIVER,
    V1,
    alternative,
    claim,
    device,
    in_use,
    request,
    slice_of,
    world,
)

NEEDS: Final = "claim default/c, request r: needs 1 device of DeviceClass gpu; "
GPU: Final = "example.com/gpu"


def stated(case: V1) -> list[str]:
    return [*cluster_amounts(decided(case), 50).facts]


@pytest.mark.parametrize(
    ("slices", "why"),
    [
        pytest.param([], "there is no ResourceSlice: no driver has published a device", id="no-driver"),
        pytest.param(
            [local(7, *TWO), local(8, *TWO)],
            "no node has a device; 2 ResourceSlices are for 2 nodes that do not exist, n7, n8",
            id="other-names",
        ),
        pytest.param(
            [
                slice_of(
                    "s",
                    TWO,
                    nodeSelector={"nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]},
                )
            ],
            "no node has a device: the ResourceSlices are for other nodes",
            id="other-labels",
        ),
        pytest.param(
            [local(0, *TWO, driver="other"), local(7, *TWO)],
            f'the selector of DeviceClass gpu device.driver == "{DRIVER}" matches none of 2 devices; they have driver '
            "other; 1 ResourceSlice is for 1 node that does not exist, n7",
            id="only-of-another-driver",
        ),
    ],
)
def test_a_person_is_told_why_no_node_has_a_device(slices: list[V1], why: str) -> None:
    assert stated(world(slices, [claim([request()])])) == [NEEDS + why]


def test_what_devices_have_is_told_where_a_selector_reads_what_they_lack() -> None:
    expression = f'device.attributes["{DRIVER}"].memory > 30'
    devices = [device("g0", {"model": {"string": "a"}}, capacity={"memory": {"value": "40Gi"}}), device("g1")]
    (fact,) = stated(world([local(0, *devices)], [claim([request(selectors=[{"cel": {"expression": expression}}])])]))
    assert fact.endswith("no such key: memory; they have the attributes model and the capacities memory")


def test_a_node_is_not_named_again_where_all_devices_are_on_it_or_where_other_rules_keep_the_pod_off() -> None:
    taken = [used("t", "g0", "g1", by=["one"], pool="p0")]
    alone = world([local(0, *TWO)], [claim([request()]), *taken], nodes=2, pods=[user("one", "n0", "t")])
    assert stated(alone) == [NEEDS + "2 devices of 1 node match: 2 held by default/one, none free"]
    cordoned = world([local(0, *TWO)], [claim([request()])], nodes=2, cordoned=["n0"])
    assert stated(cordoned) == [NEEDS + "2 devices of 1 node match: 2 free"]


def test_the_values_of_a_constraint_are_told_by_request() -> None:
    nic = {"metadata": {"name": "nic"}, "spec": {"selectors": [{"cel": {"expression": 'device.driver == "nic"'}}]}}
    gpu = {
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
    }
    root = "resource.kubernetes.io/pcieRoot"
    gpus = [device(f"g{at}", {root: {"string": f"pci{at}"}}) for at in range(2)]
    both = claim([request("a"), request("b", deviceClassName="nic")], constraints=[{"matchAttribute": root}])
    case = world(
        [local(0, *gpus), slice_of("n", [device("n0")], "nics", driver="nic")], [both], deviceclasses=[gpu, nic]
    )
    assert stated(case)[-1] == (
        f"n0: matchAttribute {root}: needs 2 devices with the same value; free for a are pci0 (1), pci1 (1); "
        "free for b are unset"
    )


def test_the_rule_is_named_that_taints_a_device() -> None:
    own = {"key": "hot", "effect": "NoSchedule"}
    equal = {"metadata": {"name": "other"}, "spec": {"deviceSelector": {"driver": "other"}, "taint": own}}
    taint = {"key": "maintenance", "value": "fw", "effect": "NoExecute"}
    rule = {"metadata": {"name": "maint"}, "spec": {"deviceSelector": {"driver": DRIVER}, "taint": taint}}
    devices = [device("g0"), device("g1", taints=[own])]
    (fact,) = stated(world([local(0, *devices)], [claim([request()])], devicetaintrules=[rule, equal]))
    tainted = "2 tainted (maintenance=fw:NoExecute of DeviceTaintRule maint (2), hot:NoSchedule (1)), none free"
    assert fact == f"{NEEDS}2 devices of 1 node match: {tainted}"


def test_of_rules_with_equal_taints_those_are_named_that_select_the_device() -> None:
    taint = {"key": "maintenance", "effect": "NoSchedule"}
    selectors = {"a": {"pool": "p9"}, "b": {"pool": "p0"}, "c": {"device": "g1"}, "d": {"driver": "x"}, "e": None}
    rules = [
        {"metadata": {"name": name}, "spec": {"taint": taint, **({} if of is None else {"deviceSelector": of})}}
        for name, of in selectors.items()
    ]
    (fact,) = stated(world([local(0, *TWO)], [claim([request()])], devicetaintrules=rules))
    of = "maintenance:NoSchedule of DeviceTaintRule"
    assert fact == f"{NEEDS}2 devices of 1 node match: 2 tainted ({of} b (1), {of} b and c (1)), none free"


def _shared(amount: str, **policy: Any) -> V1:  # noqa: ANN401  # of any kind
    """Return a node's slice with one device that claims share."""
    cores = {"value": amount, **({"requestPolicy": {"default": "1", **policy}} if policy else {})}
    return slice_of("s", [device("g0", capacity={"cores": cores}, allowMultipleAllocations=True)])


@pytest.mark.parametrize(
    ("of", "cores", "in_use", "why", "helps"),
    [
        pytest.param(
            _shared("2"), "1500m", "800m", "full (cores: needs 1500m, most left 1200m; in use by ", "1200m", id="parts"
        ),
        pytest.param(
            _shared("4", validRange={"min": "1", "max": "2"}),
            "3",
            "1",
            "too small (cores: needs 3, most is 4, and at most 2 for one request)",
            "2",
            id="a-range",
        ),
        pytest.param(
            _shared("8", validValues=["1", "2"]),
            "3",
            "1",
            "too small (cores: needs 3, most is 8, and at most 2 for one request)",
            "2",
            id="values",
        ),
        pytest.param(
            _shared("10", validRange={"min": "4", "step": "4"}),
            "5",
            "4",
            "full (cores: needs 5 and takes 8, most left 6, and at most 4 for one request; in use by ",
            "4",
            id="a-step",
        ),
        pytest.param(_shared("4"), None, "3", "full (cores: needs 4, most left 1; in use by ", None, id="by-default"),
    ],
)
def test_what_a_request_takes_of_a_shared_device_is_told_by_its_policy(
    of: V1, cores: str | None, in_use: str, why: str, helps: str | None
) -> None:
    asking = request() if cores is None else request(capacity={"requests": {"cores": cores}})
    holding = used("x", "g0", by=["one"], shareID="a", consumedCapacity={"cores": in_use})
    case = world([of], [claim([asking]), holding], pods=[user("one", "n0", "x")])
    (fact,) = stated(case)
    assert fact.startswith(f"{NEEDS}1 device of 1 node matches: 1 {why}")
    lower = f"make claim default/c again with cores {helps} instead of {cores} in request r (then it fits on n0)"
    assert (lower in [each.text for each in find_remedies(decided(case), 50)]) is (helps is not None)


def test_what_each_shared_device_lacks_is_told_and_not_what_it_has() -> None:
    capacity = {name: {"value": "4"} for name in ("cores", "memory", "other")}
    devices = [device(f"g{at}", capacity=capacity, allowMultipleAllocations=True) for at in range(2)]
    shares = [
        used(f"x{at}", f"g{at}", by=["one"], pool="p0", shareID=f"{at}", consumedCapacity={name: amount})
        for at, (name, amount) in enumerate((("cores", "3"), ("memory", "4")))
    ]
    asking = claim([request(capacity={"requests": {"other": "4", "cores": "2"}})])
    (fact,) = stated(world([local(0, *devices)], [asking, *shares], pods=[user("one", "n0", "x0", "x1")]))
    lacks = "cores: needs 2, most left 1; memory: needs 4, most left 0"
    assert fact == f"{NEEDS}2 devices of 1 node match: 2 full ({lacks}; in use by default/one), none free"


def test_a_constraint_that_names_an_alternative_is_told_with_its_devices() -> None:
    devices = [device(f"g{at}", {"numa": {"int": at}}) for at in range(2)]
    either = {"name": "r", "firstAvailable": [alternative("one", count=2)]}
    asking = claim([either], constraints=[{"matchAttribute": NUMA, "requests": ["r/one"]}])
    assert stated(world([local(0, *devices)], [asking]))[-1] == (
        f"n0: matchAttribute {NUMA}: needs 2 devices with the same value; free are 0 (1), 1 (1)"
    )


def test_a_device_that_is_too_small_is_none_of_all() -> None:
    devices = [device(f"g{at}", capacity={"memory": {"value": f"{at}Gi"}}) for at in range(1, 4)]
    large = request("all", allocationMode="All", capacity={"requests": {"memory": "2Gi"}})
    case = world([local(0, *devices)], [claim([large, request("b", count=2)])])
    assert stated(case)[-1] == "n0: needs 4 together, and 3 free one by one: not enough for all at once"


def test_no_device_is_free_whose_pool_has_given_more_than_it_has() -> None:
    counters = [{"name": name, "counters": {"memory": {"value": "30Gi"}}} for name in ("gpu0", "gpu1")]
    uses = [{"counterSet": name, "counters": {"memory": {"value": "20Gi"}}} for name in ("gpu0", "gpu0", "gpu1")]
    parts = [device(f"g{at}", consumesCounters=[each]) for at, each in enumerate(uses)]
    slices = [slice_of("s", parts, count=2), slice_of("t", [], count=2, sharedCounters=counters)]
    case = world(slices, [claim([request()]), used("x", "g0", "g1", by=["one"])], pods=[user("one", "n0", "x")])
    (fact,) = stated(case)
    short = "1 short of counters (gpu0/memory: -10Gi left of 30Gi)"
    assert fact == f"{NEEDS}3 devices of 1 node match: 2 held by default/one, {short}, none free"


def test_an_extended_resource_is_told_by_its_name() -> None:
    of_gpu = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}
    resources = {"requests": {GPU: "3", "cpu": "1"}}
    containers = [{"name": "c", "resources": resources}]
    pod = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": containers}}
    case = world([local(0, *TWO), local(1, *TWO)], [], nodes=2, pod=pod, deviceclasses=[of_gpu])
    assert stated(case) == [
        f"extended resource {GPU}: needs 3 devices of DeviceClass gpu; 4 devices of 2 nodes match: 4 free",
        f"n0: extended resource {GPU} needs 3, 2 match: 2 free",
    ]


def _of_extended(claims: list[V1], **requests: str) -> V1:
    """Return a case whose pod names the claims, and requests extended resources by their last names."""
    of_gpu = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}}
    case = world([local(0, *TWO)], claims, deviceclasses=[of_gpu])
    resources = {"requests": {f"example.com/{name}": number for name, number in requests.items()}}
    case["pod"]["spec"]["containers"] = [{"name": "c", "resources": resources}]
    return case


def test_a_resource_that_nobody_provides_is_told_and_not_devices_that_are_free() -> None:
    case = _of_extended([claim([request()])], gpu="1", hca="1")
    *_, last = stated(case)
    assert last == "n0: no example.com/hca there, and no DeviceClass provides it"


def test_a_claim_of_an_earlier_attempt_is_told_and_not_devices_that_are_free() -> None:
    stale = claim([request()], "x-extended")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    stale["metadata"] |= {
        "ownerReferences": [owner],
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
    }
    case = _of_extended([stale], gpu="1")
    left = "is left of an earlier attempt; kube-scheduler deletes it, and tries the pod again"
    assert stated(case) == [f"claim default/x-extended {left}"]
    assert not node_amounts(decided(case), 0, 50).facts


FREES: Final = "; kube-scheduler frees it, and tries the pod again"
NO_OTHER: Final = "; no other known pod uses it"


def on_n1(reserved_for: list[str], **conditions: Any) -> V1:  # noqa: ANN401  # of any kind
    found = claim(
        [request()], "c", {**ON_N1["status"], "reservedFor": [{"name": each, "uid": each} for each in reserved_for]}
    )
    return found | {"status": found["status"] | conditions}


@pytest.mark.parametrize(
    ("of", "cordoned", "rest"),
    [
        pytest.param(on_n1([]), ["n1"], NO_OTHER + FREES, id="nobody"),
        pytest.param(on_n1(["u"]), ["n1"], NO_OTHER + FREES, id="the-pod-alone"),
        pytest.param(on_n1(["u", "gone"]), ["n1"], NO_OTHER, id="an-unknown-pod"),
        pytest.param(on_n1(["first"]), ["n1"], "; in use by default/first", id="another-pod"),
        pytest.param(on_n1([]), ["n0", "n1"], NO_OTHER, id="never-reached"),
        pytest.param(on_n1([]), [], NO_OTHER, id="it-fits"),
    ],
)
def test_it_is_told_when_kube_scheduler_frees_a_claim_by_itself(of: V1, cordoned: list[str], rest: str) -> None:
    case = world([local(0, *TWO), local(1, *TWO)], [of], nodes=2, pods=[user("first", "n1", "c")], cordoned=cordoned)
    assert stated(case) == [f"claim default/c has {DRIVER}/p1/g0 already, for 1 node, n1{rest}"]


@pytest.mark.parametrize(
    ("conditions", "release", "rest"),
    [
        pytest.param([{"type": "Failed", "status": "True"}], "1.37", "; binding failed", id="failed"),
        pytest.param([], "1.37", "; not bound in time", id="late"),
    ],
)
def test_it_is_told_why_devices_cannot_be_bound(conditions: list[V1], release: str, rest: str) -> None:
    status = in_use("g0", pool="p0", bindingConditions=["Attached"], bindingFailureConditions=["Failed"])
    status["allocation"]["allocationTimestamp"] = "2026-01-01T00:00:00Z"
    status["devices"] = [{"driver": DRIVER, "pool": "p0", "device": "g0", "conditions": conditions}]
    (fact,) = stated(world([local(0, *TWO)], [claim([request()], "c", status)], release=release))
    assert fact == f"claim default/c has {DRIVER}/p0/g0 already, for 1 node, n0{rest}{NO_OTHER}{FREES}"
