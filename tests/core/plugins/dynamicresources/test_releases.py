"""What each release did otherwise. Source: k8s.io/dynamic-resource-allocation structured of each release.

1.34 takes the allocator `experimental`, all others `incubating`.
"""

from typing import Any, Final

import pytest

from core.plugins.dynamicresources.plugin import DynamicResources
from core.releases.differences import rules_of
from core.releases.release import RELEASES as KNOWN
from tests.conformance.device_cases import response
from tests.core.plugins.dynamicresources.world import (
    DRIVER,
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

RELEASES: Final = ("1.34", "1.35", "1.36", "1.37")
NONE: Final = "cannot allocate all claims"
INVALID: Final = "invalid resource pools were encountered"
TWO: Final = [slice_of("s", [device("g0"), device("g1")])]
HOT: Final = {"key": "hot", "effect": "NoSchedule"}
SAME: Final = [slice_of("s", [device("g0", {"m": {"int": 1}}), device("g1", {"m": {"int": 1}})])]
DISTINCT: Final = [{"distinctAttribute": f"{DRIVER}/m"}]
NO_CAPACITIES: Final = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
TAINTED: Final = [slice_of("s", [device("g0", taints=[HOT])])]
LATE: Final = [slice_of("s", [device("g0", bindingConditions=["A"])])]
PER_DEVICE: Final = [slice_of("s", [device("g0", allNodes=True)], perDeviceNodeSelection=True)]
THREE_OR_ALL: Final = [alternative("s", count=3), alternative("t", allocationMode="All")]
IN_USE_FIRST: Final = {"request": "r/s", "driver": DRIVER, "pool": "pool", "device": "g0"}
COUNTED: Final = [
    slice_of("s", [], count=2, sharedCounters=[{"name": "m", "counters": {"n": {"value": "1"}}}]),
    slice_of("t", [device("g0", consumesCounters=[{"counterSet": "m", "counters": {"n": {"value": "1"}}}])], count=2),
]


@pytest.mark.parametrize(
    ("slices", "claims", "expected"),
    [
        pytest.param(
            [slice_of("s", [device("g0")], count=2)], [claim([request()])], ("g0", NONE, NONE, NONE), id="incomplete"
        ),
        pytest.param(
            [slice_of("s", [device("g0"), device("g0")])],
            [claim([request()])],
            ("Error: pool pool is invalid: duplicate device name g0", INVALID, INVALID, INVALID),
            id="invalid",
        ),
        pytest.param(
            SAME,
            [claim([request(count=2)], constraints=DISTINCT)],
            (
                "g0 g1",  # addresses are compared
                "Error: claim default/c, constraint #0: empty constraint (unsupported constraint type?)",
                NONE,
                NONE,
            ),
            id="distinct",
        ),
        pytest.param(
            [slice_of("s", [device("g0", capacity={"m": {"value": "2"}})])],
            [claim([request(capacity={"requests": {"m": "3"}})])],
            (f"Error: claim default/c, request r: {NO_CAPACITIES}", "g0", NONE, NONE),
            id="capacities",
        ),
        pytest.param(TAINTED, [claim([request()])], ("g0", "g0", NONE, NONE), id="taints"),
        pytest.param(LATE, [claim([request()])], (NONE, NONE, "g0", "g0"), id="binding-conditions"),
        pytest.param(PER_DEVICE, [claim([request()])], (NONE, NONE, "g0", "g0"), id="nodes-of-each-device"),
        pytest.param(COUNTED, [claim([request()])], (NONE, NONE, "g0", "g0"), id="counters"),
        pytest.param(
            TWO,
            [
                claim(
                    [
                        {
                            "name": "r",
                            "firstAvailable": [alternative("s", count=3), alternative("t", allocationMode="All")],
                        }
                    ]
                )
            ],
            # Until 1.35, the first alternative has the second device, and asks for a third one.
            (NONE, NONE, "g0 g1", "g0 g1"),
            id="all-of-a-second-alternative",
        ),
        pytest.param(
            TWO,
            [claim([request()]), claim([request()], "x", in_use("g0", shareID="s"))],
            ("g1", "g1", "g0", "g0"),
            id="a-share-of-a-device-that-is-not-shareable",
        ),
    ],
)
def test_releases_differ(slices: list[V1], claims: list[V1], expected: tuple[str, ...]) -> None:
    assert tuple(verdict(world(slices, claims, release=each)) for each in RELEASES) == expected


def test_a_claim_of_another_pod_is_told_in_the_words_of_the_release() -> None:
    case = world(TWO, [claim([request()], "made")])
    case["pod"]["spec"]["resourceClaims"] = [{"name": "a", "resourceClaimTemplateName": "t"}]
    case["pod"]["status"] = {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "made"}]}
    for release in RELEASES:
        word = "Pod" if release >= "1.36" else "pod"
        text = f"ResourceClaim default/made was not created for {word} default/p ({word} is not owner)"
        assert verdict({**case, "kubernetes": release}) == text


def test_other_gates_than_the_default_ones_are_not_judged() -> None:
    plugin = DynamicResources()
    for release in map(rules_of, KNOWN):
        assert (plugin.unsupported(release), plugin.scores_in(release)) == ("", release.release != KNOWN[0])
    for gates in ({"DRAExtendedResource": True}, {"DRANodeAllocatableResources": True}):
        rules = rules_of(KNOWN[1] if "DRAExtendedResource" in gates else KNOWN[2], gates)
        assert plugin.unsupported(rules).endswith(f", and {next(iter(gates))} is on")


def scores(case: V1, release: str) -> Any:  # noqa: ANN401 - scores, or what is said instead
    plugin = response({**case, "kubernetes": release})["plugins"]["DynamicResources"]
    return plugin.get("score_error", plugin.get("raw_scores_feasible"))


def test_scores_say_how_early_the_alternatives_come() -> None:
    listed = [{"name": "r", "firstAvailable": [alternative("s", count=3), alternative("t")]}]
    case = world(
        [slice_of("s", [device(f"g{at}") for at in range(3)]), slice_of("t", [device("h")], "q", nodeName="n1")],
        [claim(listed)],
        nodes=2,
    )
    assert [scores(case, each) for each in RELEASES] == [None, *[{"n0": 8, "n1": 7}] * 3]
    both = world(TWO, [claim(listed), claim([request()], "c2", in_use("g0"))])
    error = "number of allocations 1 is smaller than number of claims"
    assert [scores(both, each) for each in RELEASES] == [None, error, {"n0": 7}, {"n0": 7}]
    before = claim(listed, "c2", {"allocation": {"devices": {"results": [IN_USE_FIRST]}}})
    assert [scores(world(TWO, [claim([request()]), before]), each) for each in RELEASES[2:]] == [{"n0": 8}] * 2


@pytest.mark.parametrize(("release", "expected"), [("1.34", "g0"), ("1.35", NONE), ("1.36", "g0")])
def test_the_allocator_of_135_does_not_tell_selectors_that_a_device_may_be_shared(release: str, expected: str) -> None:
    shareable = [slice_of("s", [device("g0", allowMultipleAllocations=True)])]
    need = [claim([request(selectors=[{"cel": {"expression": "device.allowMultipleAllocations"}}])])]
    assert verdict(world(shareable, need, release=release)) == expected


@pytest.mark.parametrize(("release", "expected"), [("1.35", NONE), ("1.36", "g0")])
def test_before_136_a_device_that_consumes_nothing_of_counters_is_a_partition_too(release: str, expected: str) -> None:
    uses = [slice_of("s", [device("g0", consumesCounters=[{"counterSet": "c"}])], count=2)]
    counters = slice_of("t", [], count=2, sharedCounters=[{"name": "c"}])
    assert verdict(world([*uses, counters], [claim([request()])], release=release)) == expected


@pytest.mark.parametrize(("release", "expected"), [("1.36", "g0"), ("1.37", "'s range arithmetic")])
def test_before_137_an_amount_that_is_rounded_up_overflows(release: str, expected: str) -> None:
    policy = {"validRange": {"min": "0", "step": "2"}, "default": "0"}
    capacity = {"memory": {"value": "8", "requestPolicy": policy}}
    shareable = [slice_of("s", [device("g0", capacity=capacity, allowMultipleAllocations=True)])]
    need = [claim([request(capacity={"requests": {"memory": str(2**63 - 1)}})])]
    assert verdict(world(shareable, need, release=release)).endswith(expected)


def test_an_amount_beyond_an_int64_is_an_error_whatever_the_step_is() -> None:
    policy = {"validRange": {"min": "0", "step": "10E"}, "default": "0"}
    devices = [device("g0", capacity={"memory": {"value": "8", "requestPolicy": policy}})]
    need = [claim([request(capacity={"requests": {"memory": "1e30"}})])]
    assert verdict(world([slice_of("s", devices)], need)).endswith("'s range arithmetic")
