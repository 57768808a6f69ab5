"""The allocator's rules, one by one.

Source: k8s.io/dynamic-resource-allocation structured/internal/incubating of 1.36 and 1.37.
"""

from time import process_time
from typing import Any, Final

import pytest

from tests.conformance.device_cases import response
from tests.core.plugins.dynamicresources.world import (
    DRIVER,
    FAILS,
    V1,
    alternative,
    claim,
    device,
    in_use,
    request,
    slice_of,
    verdict,
    world,
)

NONE: Final = "cannot allocate all claims"
IN_CLAIM: Final = "Error: claim default/c, request r:"
TWO: Final = [slice_of("s", [device("g0"), device("g1")])]
A_AND_B: Final = [
    slice_of("s", [device(f"g{at}", {"m": {"string": model}}) for at, model in enumerate(("a", "b", "b"))])
]
HOT: Final = {"key": "hot", "effect": "NoSchedule"}
COUNTERS: Final = [{"name": "memory", "counters": {"bytes": {"value": "10"}}}]


def consuming(*amounts: int) -> list[V1]:
    """Return devices that consume so much of COUNTERS each."""
    uses = [[{"counterSet": "memory", "counters": {"bytes": {"value": str(amount)}}}] for amount in amounts]
    return [device(f"g{at}", consumesCounters=use) for at, use in enumerate(uses)]


def partitions(devices: list[V1]) -> list[V1]:
    """Return a pool with devices that share COUNTERS."""
    return [slice_of("s", devices, count=2), slice_of("t", [], count=2, sharedCounters=COUNTERS)]


@pytest.mark.parametrize(
    ("slices", "claims", "expected"),
    [
        pytest.param(TWO, [claim([request()])], "g0", id="first-device"),
        pytest.param(TWO, [claim([request()]), claim([request()], "other", in_use("g0"))], "g1", id="one-in-use"),
        pytest.param(TWO, [claim([request(count=2)])], "g0 g1", id="count"),
        pytest.param(TWO, [claim([request(count=3)])], NONE, id="too-many"),
        pytest.param(TWO, [claim([request(count=0)])], "", id="none"),
        pytest.param(TWO, [claim([request("a"), request("b")])], "g0 g1", id="two-requests"),
        pytest.param(TWO, [claim([request()]), claim([request()], "c2")], "g0 g1", id="two-claims"),
        pytest.param(TWO, [claim([request(allocationMode="All")])], "g0 g1", id="all"),
        pytest.param(
            TWO, [claim([request(allocationMode="All")]), claim([request()], "x", in_use("g1"))], NONE, id="all-but-one"
        ),
        pytest.param(
            TWO,
            [claim([request("a", allocationMode="All"), request("b", allocationMode="All")])],
            NONE,
            id="all-twice",
        ),
        pytest.param(
            TWO,
            [claim([request(adminAccess=True)]), claim([request()], "x", in_use("g0"))],
            "g0",
            id="admin-access-to-a-device-in-use",
        ),
        pytest.param(
            TWO,
            [claim([request()]), claim([request()], "x", in_use("g0", adminAccess=True))],
            "g0",
            id="held-with-admin-access",
        ),
        pytest.param(
            TWO, [claim([request("a", adminAccess=True), request("b", adminAccess=True)])], "g0 g1", id="admin"
        ),
        pytest.param(
            TWO,
            [claim([{"name": "r", "firstAvailable": [alternative("s", count=3), alternative("t")]}])],
            "g0",
            id="second-alternative",
        ),
        pytest.param(
            TWO,
            [claim([request(count=33)])],
            f"{IN_CLAIM} adding 33 devices exceeds the claim limit of 32, with 0 already accounted for",
            id="more-than-a-claim-may-have",
        ),
        pytest.param(
            A_AND_B, [claim([request(count=2)], constraints=[{"matchAttribute": f"{DRIVER}/m"}])], "g1 g2", id="match"
        ),
        pytest.param(
            A_AND_B,
            [claim([request(count=2)], constraints=[{"distinctAttribute": f"{DRIVER}/m"}])],
            "g0 g1",
            id="distinct",
        ),
        pytest.param(
            A_AND_B,
            [claim([request(count=3)], constraints=[{"matchAttribute": f"{DRIVER}/m", "requests": ["other"]}])],
            "g0 g1 g2",
            id="constraint-of-another-request",
        ),
        pytest.param(
            A_AND_B,
            [claim([request(allocationMode="All")], constraints=[{"matchAttribute": f"{DRIVER}/m"}])],
            f"{IN_CLAIM} cannot add device {DRIVER}/pool/g1 because a claim constraint would not be satisfied",
            id="all-that-do-not-match",
        ),
        pytest.param(TWO, [claim([request()], constraints=[{"matchAttribute": "x/y"}])], NONE, id="no-such-attribute"),
        pytest.param([slice_of("s", [device("g0", taints=[HOT])])], [claim([request()])], NONE, id="taint"),
        pytest.param(
            [slice_of("s", [device("g0", taints=[HOT])])],
            [claim([request(tolerations=[{"key": "hot", "operator": "Exists"}])])],
            "g0",
            id="tolerated",
        ),
        pytest.param(
            [slice_of("s", [device("g0", taints=[{"key": "hot", "effect": "None"}])])],
            [claim([request()])],
            "g0",
            id="taint-without-effect",
        ),
        pytest.param(
            [slice_of("s", [device("g0"), device("g0")])],
            [claim([request()])],
            "invalid resource pools were encountered",
            id="two-of-one-name",
        ),
        pytest.param(
            [slice_of("s", [device("g0")], count=2)],
            [claim([request()])],
            NONE,
            id="incomplete-pool",
        ),
        pytest.param(
            [slice_of("s", [device("g0")], count=2)],
            [claim([request(allocationMode="All")])],
            f"{IN_CLAIM} asks for all devices, but resource pool {DRIVER}/pool is currently being updated",
            id="all-of-an-incomplete-pool",
        ),
        pytest.param(
            [
                slice_of("s", [device("old")]),
                slice_of("t", [device("new")], generation=2),
            ],
            [claim([request()])],
            "new",
            id="newer-generation",
        ),
        pytest.param(
            [slice_of("s", [device("late", bindingConditions=["A"])], "a"), slice_of("t", [device("now")], "b")],
            [claim([request()])],
            "now",
            id="binding-conditions-come-last",
        ),
        pytest.param(
            [slice_of("t", [device("g1")], "b"), slice_of("s", [device("g0")], "a")],
            [claim([request()])],
            "g0",
            id="pools-in-order",
        ),
        pytest.param(
            partitions(consuming(6, 6)),
            [claim([request(count=2)])],
            NONE,
            id="counters",
        ),
        pytest.param(
            partitions(consuming(6, 4)),
            [claim([request(count=2)])],
            "g0 g1",
            id="enough-counters",
        ),
        pytest.param(
            partitions(consuming(6, 6)),
            [claim([request()]), claim([request()], "x", in_use("g0"))],
            NONE,
            id="counters-in-use",
        ),
        pytest.param(
            partitions([{**consuming(6)[0], "taints": [HOT]}, {**consuming(6)[0], "name": "g1"}]),
            [claim([request()])],
            "g1",
            id="counters-of-a-tainted-device",
        ),
        pytest.param(
            [slice_of("s", [device("g0", capacity={"m": {"value": "10"}})])],
            [claim([request(capacity={"requests": {"m": "11"}})])],
            NONE,
            id="too-small",
        ),
        pytest.param(
            [slice_of("s", [device("g0", capacity={"m": {"value": "10"}})])],
            [claim([request(capacity={"requests": {"n": "1"}})])],
            NONE,
            id="no-such-capacity",
        ),
        pytest.param(
            [slice_of("s", [device("g0", capacity={"m": {"value": "10"}}, allowMultipleAllocations=True)])],
            [
                claim([request(count=1, capacity={"requests": {"m": "6"}})]),
                claim([request()], "x", in_use("g0", shareID="s", consumedCapacity={"m": "4"})),
            ],
            "g0",
            id="shared",
        ),
        pytest.param(
            [slice_of("s", [device("g0", capacity={"m": {"value": "10"}}, allowMultipleAllocations=True)])],
            [
                claim([request(count=1, capacity={"requests": {"m": "7"}})]),
                claim([request()], "x", in_use("g0", shareID="s", consumedCapacity={"m": "4"})),
            ],
            NONE,
            id="shared-and-full",
        ),
        pytest.param(
            [slice_of("s", [device("g0", allowMultipleAllocations=True)])],
            [claim([request("a"), request("b")])],
            "g0 g0",
            id="twice",
        ),
    ],
)
def test_the_first_devices_that_meet_all_requests_are_taken(slices: list[V1], claims: list[V1], expected: str) -> None:
    assert verdict(world(slices, claims)) == expected


def test_a_slice_is_for_a_node_by_name_by_labels_for_all_or_for_each_device() -> None:
    in_z1 = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}]}
    one = [claim([request()])]
    for fields, expected in (
        ({"nodeName": "n1"}, [NONE, "g"]),
        ({"allNodes": True}, ["g", "g"]),
        ({"nodeSelector": in_z1}, [NONE, "g"]),
    ):
        case = world([slice_of("s", [device("g")], **fields)], one, nodes=2)
        assert [verdict(case, "n0"), verdict(case, "n1")] == expected
    devices = [device("a", nodeName="n0"), device("b", nodeSelector=in_z1), device("c", allNodes=True)]
    case = world([slice_of("s", devices, perDeviceNodeSelection=True)], [claim([request(count=2)])], nodes=3)
    assert [verdict(case, f"n{at}") for at in range(3)] == ["a c", "b c", NONE]


def test_a_selector_that_fails_counts_only_on_a_free_device_that_is_reached() -> None:
    devices = [device("g0", {"model": {"string": "a"}}), device("g1")]
    fails = claim([request(selectors=[FAILS])])
    assert verdict(world([slice_of("s", devices)], [fails])) == "g0"
    taken = claim([request()], "x", in_use("g0"))
    found = verdict(world([slice_of("s", devices)], [fails, taken]))
    assert found.startswith(f"Error: claim default/c: selector #0 on device {DRIVER}/pool/g1: CEL runtime error: ")
    assert verdict(world([slice_of("s", devices)], [fails, taken, claim([request()], "y", in_use("g1"))])) == NONE


def test_a_rule_taints_the_devices_that_it_selects() -> None:
    for selector, expected in (
        ({"device": "g0"}, "g1"),
        ({"driver": DRIVER}, NONE),
        ({"pool": "other"}, "g0"),
        (None, "g0"),
    ):
        rule = {"metadata": {"name": "r"}, "spec": {"deviceSelector": selector, "taint": HOT}}
        assert verdict(world(TWO, [claim([request()])], devicetaintrules=[rule])) == expected
        assert verdict(world(TWO, [claim([request()])], release="1.36", devicetaintrules=[rule])) == "g0"


@pytest.mark.parametrize("release", ["1.36", "1.37"])
def test_what_1_37_corrected(release: str) -> None:
    newest = release == "1.37"
    many = [device(f"g{at}", {"m": {"int": at % 2}}) for at in range(3)]
    distinct = claim([request(count=3)], constraints=[{"distinctAttribute": f"{DRIVER}/m"}])
    # Until 1.36, only the last device of a request is compared.
    assert verdict(world([slice_of("s", many)], [distinct], release=release)) == (NONE if newest else "g0 g1 g2")
    limit = "request r: adding 33 devices exceeds the claim limit of 32, with 0 already accounted for"
    older = "number of requested devices 33 exceeds the claim limit of 32"
    found = verdict(world(TWO, [claim([request(count=33)])], release=release))
    assert found == (f"Error: claim default/c, {limit}" if newest else f"Error: claim default/c: {older}")


def exponential() -> V1:
    """32 requests of 32 alternatives over 8 devices that look alike, with a constraint that nothing meets."""
    devices = [device(f"g{at}", {"m": {"int": at}}) for at in range(8)]
    requests = [{"name": f"r{at}", "firstAvailable": [alternative(f"s{of}") for of in range(32)]} for at in range(32)]
    constraint = {"matchAttribute": f"{DRIVER}/m", "requests": ["r30", "r31"]}
    return world([slice_of("s", devices)], [claim(requests, constraints=[constraint])])


def test_a_search_that_is_too_long_is_undecided_and_no_refusal() -> None:
    began = process_time()
    found = response(exponential())
    assert process_time() - began < 0.5
    assert found["undecided"] == {"n0": "the search for devices takes too long"}
    assert found["feasible"] == ["n0"]


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("device.driver.matches(device.driver)", "a regular expression that is not a constant"),
        ("lists.range(100000000).size() == 1", "a range without a small constant end"),
    ],
)
def test_a_selector_that_is_not_evaluated_is_undecided_and_no_refusal(expression: str, reason: str) -> None:
    found = response(world(TWO, [claim([request(selectors=[{"cel": {"expression": expression}}])])]))
    assert found["undecided"] == {"n0": f"claim default/c: selector #0: selector not evaluated: {reason}"}
    assert found["feasible"] == ["n0"]


def test_an_alternative_of_an_unknown_class_beside_an_exact_request_is_refused() -> None:
    """No API server stores such a request, but a file may have it."""
    both = {**request(), "firstAvailable": [alternative("a", deviceClassName="gone")]}
    plugin = response(world(TWO, [claim([both])]))["plugins"]["DynamicResources"]
    assert plugin["prefilter_reasons"] == ["request r/a: device class gone does not exist"]


@pytest.mark.parametrize("mode", [{"count": 2}, {"allocationMode": "All"}], ids=["count", "all"])
def test_a_device_whose_nodes_cannot_be_read_is_an_error_if_it_is_reached(mode: V1) -> None:
    odd = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["x"]}]}]}
    devices = [device("g0", allNodes=True), device("g1", nodeSelector=odd)]
    slices = [slice_of("s", devices, perDeviceNodeSelection=True)]
    assert verdict(world(slices, [claim([request()])])) == "g0"
    assert verdict(world(slices, [claim([request(**mode)])])).startswith("Error: failed to parse node selector: ")


@pytest.mark.parametrize(("amount", "expected"), [("9223372036854775807", ""), ("9E", "Error"), ("2", "g0 g1")])
def test_an_extended_resource_of_more_than_18_digits_asks_for_no_device(amount: str, expected: str) -> None:
    """As upstream, which takes the amount for none that an int64 holds."""
    pod = {
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"containers": [{"name": "a", "resources": {"requests": {"x.io/gpu": amount}}}]},
    }
    classes = [{"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "x.io/gpu"}}]
    assert verdict(world(TWO, [], pod=pod, deviceclasses=classes)).partition(":")[0] == expected


def test_long_selectors_are_not_compiled_all_at_once() -> None:
    long = [" && ".join(f"{at} != {-1 - of}" for of in range(600)) for at in range(4)]
    requests = [request(f"r{at}", selectors=[{"cel": {"expression": each}}]) for at, each in enumerate(long)]
    assert response(world(TWO, [claim(requests)]))["undecided"] == {
        "n0": "its selectors are too long to be compiled at once"
    }


def test_the_order_of_the_devices_of_one_request_is_not_tried() -> None:
    """There are 252 sets of five of ten devices, and 30,240 orders, which would take too long."""
    missing = request("b", selectors=[{"cel": {"expression": 'device.driver == "other"'}}])
    ten = [slice_of("s", [device(f"g{at}") for at in range(10)])]
    assert verdict(world(ten, [claim([request("a", count=5), missing])])) == NONE


def test_nodes_whose_devices_look_alike_to_the_claim_are_judged_once() -> None:
    def slices(**attributes: Any) -> list[V1]:  # noqa: ANN401 - of any kind
        return [
            slice_of(
                f"s{at}", [device(f"g{at}", {"uuid": {"string": f"{at}"}, **attributes})], f"p{at}", nodeName=f"n{at}"
            )
            for at in range(3)
        ]

    case = world(slices(), [claim([request()]), claim([request()], "x", in_use("g1", pool="p1"))], nodes=3)
    assert [verdict(case, f"n{at}") for at in range(3)] == ["g0", NONE, "g2"]
    by_uuid = claim([request(selectors=[{"cel": {"expression": f'device.attributes["{DRIVER}"].uuid == "2"'}}])])
    assert [verdict(world(slices(), [by_uuid], nodes=3), f"n{at}") for at in range(3)] == [NONE, NONE, "g2"]
