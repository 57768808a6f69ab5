"""The reserved amounts of a pod as the releases after v1.34 count them: resizes, status and resource claims."""

from collections.abc import Mapping

import msgspec
import pytest

from core.objects.pod_requests import Container, PodResources, Resources, non_zero_requests, pod_requests
from core.releases.differences import rules_of
from core.releases.release import ClaimedResources, Release, RequestCounting
from tests.core.objects.test_pod_requests import OLD, amounts, asking, resized

GATES_1_36 = rules_of(Release(1, 36)).request_counting
NEW = rules_of(Release(1, 37)).request_counting
CLAIMS_1_36 = rules_of(Release(1, 36), {"DRANodeAllocatableResources": True}).request_counting
CLAIMS_1_37 = rules_of(Release(1, 37), {"DRANodeAllocatableResources": True}).request_counting
CLAIMED = {ClaimedResources.LISTED: amounts(cpu="100m"), ClaimedResources.MAPPED: amounts(cpu="100m")}


@pytest.mark.parametrize(
    ("pod", "old", "new"),
    [
        pytest.param(
            # 1.34 counts the maximum of each container, 1.37 the maximum of the sums.
            PodResources([resized("2", actual="1", allocated="1"), resized("1", actual="2", allocated="1")]),
            4000,
            3000,
            id="maximum-of-sums",
        ),
        pytest.param(PodResources([resized("1", actual=None, allocated="5")]), 1000, 5000, id="allocated-alone"),
        pytest.param(PodResources([], [resized("2", actual="3")]), 2000, 3000, id="init-containers-are-resized-too"),
        pytest.param(
            PodResources([resized("9", actual=None)], resize_infeasible=True), 9000, None, id="infeasible-is-nothing"
        ),
        pytest.param(
            PodResources([asking(cpu="1")], pod_level_actual=amounts(cpu="2"), pod_level_allocated=amounts(cpu="3")),
            1000,
            3000,
            id="what-the-status-of-the-pod-sums-up",
        ),
    ],
)
def test_since_1_37_sums_are_compared_and_not_containers(pod: PodResources, old: int, new: int | None) -> None:
    assert pod_requests(pod, OLD).get("cpu") == old
    assert pod_requests(pod, NEW).get("cpu") == new
    assert pod_requests(pod, GATES_1_36).get("cpu") == old


WHOLE = PodResources(
    [asking(cpu="1")],
    pod_level=Resources(amounts(cpu="2")),
    pod_level_actual=amounts(cpu="3", memory="5"),
    pod_level_allocated=amounts(cpu="1"),
    pod_level_reported=True,
)


@pytest.mark.parametrize(
    ("counting", "expected"),
    [
        pytest.param(OLD, {"cpu": 2000}, id="1.34-by-the-spec"),
        pytest.param(GATES_1_36, {"cpu": 3000}, id="1.36-by-the-most-of-what-the-spec-names"),
        pytest.param(NEW, {"cpu": 3000, "memory": 5}, id="1.37-by-all-that-is-reported"),
        pytest.param(RequestCounting(pod_level=False), {"cpu": 1000}, id="without-PodLevelResources"),
    ],
)
def test_a_pod_as_a_whole_counts_by_its_status_since_1_36(
    counting: RequestCounting, expected: Mapping[str, int]
) -> None:
    assert pod_requests(WHOLE, counting) == expected


def test_an_infeasible_resize_of_a_whole_pod_leaves_its_spec_out() -> None:
    pod = PodResources(
        [asking(memory="1")],
        pod_level=Resources(amounts(cpu="9", memory="9")),
        pod_level_actual=amounts(cpu="3"),
        pod_level_reported=True,
        resize_infeasible=True,
    )
    assert pod_requests(pod, GATES_1_36) == {"cpu": 3000, "memory": 0}
    assert pod_requests(pod, NEW) == {"cpu": 3000}


def test_without_status_a_resized_pod_counts_by_its_spec() -> None:
    pod = PodResources([resized("1", actual="5", allocated="5")])
    assert pod_requests(pod, RequestCounting(status=False)) == {"cpu": 1000}


@pytest.mark.parametrize(
    ("pod", "old", "new"),
    [
        pytest.param(PodResources([asking(cpu="1")], claimed=CLAIMED), 1100, 1100, id="no-status"),
        pytest.param(
            # 1.37 assumes that the kubelet has added the claims to the configured resources.
            PodResources([resized("1", actual="3", allocated="2")], claimed=CLAIMED),
            3100,
            3000,
            id="configured-is-most",
        ),
        pytest.param(
            PodResources([resized("1", actual="2", allocated="3")], claimed=CLAIMED), 3100, 3100, id="allocated-is-most"
        ),
        pytest.param(
            PodResources([resized("9", actual="1", allocated="2")], resize_infeasible=True, claimed=CLAIMED),
            2100,
            2100,
            id="infeasible",
        ),
        pytest.param(
            PodResources(
                [asking(cpu="1")],
                pod_level_actual=amounts(cpu="1050m"),
                pod_level_allocated=amounts(cpu="2"),
                claimed=CLAIMED,
            ),
            1100,
            2000,
            id="the-status-of-the-pod-has-the-claims",
        ),
        pytest.param(
            PodResources([asking(cpu="1")], [asking(cpu="2")], claimed=CLAIMED), 2100, 2100, id="beside-the-maximum"
        ),
    ],
)
def test_claims_count_beside_a_resize(pod: PodResources, old: int, new: int) -> None:
    assert pod_requests(pod, CLAIMS_1_36)["cpu"] == old
    assert pod_requests(pod, CLAIMS_1_37)["cpu"] == new
    assert pod_requests(pod, RequestCounting(status=False, claimed=ClaimedResources.LISTED))["cpu"] == (
        pod_requests(pod, RequestCounting(status=False))["cpu"] + 100
    )


@pytest.mark.parametrize("counting", [CLAIMS_1_36, CLAIMS_1_37], ids=["1.36", "1.37"])
def test_a_claim_of_a_whole_pod_leaves_no_default_to_its_resource(counting: RequestCounting) -> None:
    claimed = {form: amounts(memory="1Mi") for form in CLAIMED}
    whole = PodResources([Container()], pod_level=Resources(amounts(cpu="1")), claimed=claimed)
    assert non_zero_requests(whole, counting) == (1000, 2**20)
    assert non_zero_requests(msgspec.structs.replace(whole, claimed={}), counting) == (1000, 200 * 2**20)


@pytest.mark.parametrize(
    ("pod", "alike"),
    [
        pytest.param(PodResources([asking(cpu="1")]), True, id="no-status"),
        pytest.param(PodResources([resized("1", actual="1", allocated="1")]), True, id="status-says-the-spec"),
        pytest.param(PodResources([resized("1", actual="2")]), False, id="actual-differs"),
        pytest.param(PodResources([resized("1", actual="1", allocated="2")]), False, id="allocated-differs"),
        pytest.param(PodResources([asking(cpu="1")], resize_infeasible=True), False, id="infeasible"),
        pytest.param(PodResources([asking(cpu="1")], pod_level=Resources()), False, id="pod-level"),
        pytest.param(
            PodResources([asking(cpu="1")], pod_level_actual=amounts(cpu="1"), pod_level_allocated=amounts(cpu="1")),
            True,
            id="status-of-the-pod-says-the-sum",
        ),
        pytest.param(
            PodResources([asking(cpu="1")], pod_level_actual=amounts(cpu="1"), pod_level_allocated=amounts(cpu="2")),
            False,
            id="status-of-the-pod-says-otherwise",
        ),
        pytest.param(PodResources([asking(cpu="1")], claimed=CLAIMED), False, id="resource-claims"),
    ],
)
def test_a_pod_counts_alike_where_it_is_not_resized(
    pod: PodResources,
    alike: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert pod.counts_alike is alike
    if alike:
        assert pod_requests(pod, OLD) == pod_requests(pod, NEW) == pod_requests(pod, GATES_1_36)
