"""Quantities and container resources as they stand in JSON: every spelling, every place, every error."""

import json
from collections.abc import Mapping

import msgspec
import pytest

from app.objects.decode import DecodeError, amounts_of, quantity_of
from app.objects.decode_pod import decode_pod
from core.objects.pod import Pod, counted
from core.objects.quantity import nanos
from core.releases import Release, rules_of

FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def pod_of(spec: object, status: object = None) -> Pod:
    spec = {**spec, "nodeName": "n"} if isinstance(spec, dict) else spec  # else its status does not count
    return decode_pod(json.dumps({"metadata": {"name": "p"}, "spec": spec, "status": status}).encode())


def container(name: str = "c", **members: object) -> dict[str, object]:
    return {"name": name, **members}


def asking(**requests: object) -> dict[str, object]:
    return {"requests": requests}


# Quantities.


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param('"250m"', "250m", id="text"),
        pytest.param('" 250m\\n"', "250m", id="text-with-spaces-around"),
        pytest.param('"\\u0031"', "1", id="escaped"),
        pytest.param("2", "2", id="integer"),
        pytest.param("-2", "-2", id="negative"),
        pytest.param("1.5", "1.5", id="fraction"),
        pytest.param("1e3", "1000", id="exponent"),
        pytest.param("1E-3", "1m", id="negative-exponent"),
        pytest.param("9223372036854775806.5", "9223372036854775806.5", id="more-digits-than-a-float-has"),
        pytest.param("null", "0", id="null"),
    ],
)
def test_a_quantity_is_text_or_a_number_as_it_is_written(written: str, expected: str) -> None:
    assert nanos(expected) == quantity_of(msgspec.Raw(written.encode()), "f")


@pytest.mark.parametrize("written", ["true", "{}", "[]", '""', '"lots"', '"1 2"'], ids=str)
def test_what_is_no_quantity_is_refused_in_upstreams_words(written: str) -> None:
    with pytest.raises(DecodeError) as caught:
        quantity_of(msgspec.Raw(written.encode()), "spec.f")
    assert str(caught.value) == f"spec.f: {FORMAT}"


def test_amounts_keep_what_rounding_would_lose() -> None:
    assert amounts_of(b'{"cpu":"100u","memory":"1500m"}', "f") == {"cpu": 10**5, "memory": 15 * 10**8}


# Where they stand in a pod.


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [container(resources=asking(cpu=2))]}, {"cpu": 2000}, id="container"),
        pytest.param({"initContainers": [container(resources=asking(cpu="2"))]}, {"cpu": 2000}, id="init-container"),
        pytest.param(
            {
                "containers": [container(resources=asking(cpu="1"))],
                "initContainers": [container("i", resources=asking(cpu="1"), restartPolicy="Always")],
            },
            {"cpu": 2000},
            id="sidecar",
        ),
        pytest.param(
            {
                "containers": [container(resources=asking(cpu="1"))],
                "initContainers": [container("i", resources=asking(cpu="1"), restartPolicy="OnFailure")],
            },
            {"cpu": 1000},
            id="init-container-of-another-policy",
        ),
        pytest.param(
            {"containers": [container(resources=asking(cpu="1"))], "resources": asking(cpu="3")},
            {"cpu": 3000},
            id="pod-level",
        ),
        pytest.param(
            {"containers": [container(resources=asking(cpu="1"))], "overhead": {"cpu": "1m", "memory": "1"}},
            {"cpu": 1001, "memory": 1},
            id="overhead",
        ),
        pytest.param({"containers": [container(resources={"limits": {"cpu": "1"}})]}, {}, id="limits-are-no-requests"),
    ],
)
def test_every_place_of_the_spec_is_read(spec: object, expected: Mapping[str, int]) -> None:
    assert expected == pod_of(spec).requests


def status(cpu: str, *, name: str = "c", allocated: str = "0") -> dict[str, object]:
    return container(name, resources=asking(cpu=cpu), allocatedResources={"cpu": allocated})


def condition(kind: str, reason: str | None) -> dict[str, object]:
    return {"type": kind, "status": "True", "reason": reason, "message": "m"}


ASKS_FIVE = {"containers": [container(resources=asking(cpu="5"))]}
SIDECAR_ASKS_FIVE = {"initContainers": [container(resources=asking(cpu="5"), restartPolicy="Always")]}
PENDING = "PodResizePending"


@pytest.mark.parametrize(
    ("spec", "told", "expected"),
    [
        pytest.param(ASKS_FIVE, {"containerStatuses": [status("6")]}, 6000, id="actual"),
        pytest.param(ASKS_FIVE, {"containerStatuses": [status("6", allocated="7")]}, 7000, id="allocated"),
        pytest.param(ASKS_FIVE, {"containerStatuses": [status("6", name="d")]}, 5000, id="of-another-container"),
        pytest.param(ASKS_FIVE, {"initContainerStatuses": [status("6")]}, 6000, id="init-status-of-the-same-name"),
        pytest.param(
            ASKS_FIVE,
            {"containerStatuses": [status("6")], "initContainerStatuses": [status("7")]},
            7000,
            id="init-status-comes-last",
        ),
        pytest.param(SIDECAR_ASKS_FIVE, {"initContainerStatuses": [status("6")]}, 6000, id="sidecar"),
        pytest.param(
            ASKS_FIVE, {"containerStatuses": [container(allocatedResources={"cpu": "9"})]}, 5000, id="allocated-alone"
        ),
        pytest.param(ASKS_FIVE, {"containerStatuses": [container(resources={})]}, 5000, id="nothing-configured"),
        pytest.param(
            ASKS_FIVE,
            {"containerStatuses": [status("1")], "conditions": [condition(PENDING, "Infeasible")]},
            1000,
            id="infeasible",
        ),
        pytest.param(
            ASKS_FIVE,
            {"containerStatuses": [status("1")], "conditions": [condition(PENDING, "Deferred")]},
            5000,
            id="deferred",
        ),
        pytest.param(
            ASKS_FIVE,
            {"containerStatuses": [status("1")], "conditions": [condition(PENDING, None)]},
            5000,
            id="pending-without-a-reason",
        ),
        pytest.param(
            ASKS_FIVE,
            {"containerStatuses": [status("1")], "conditions": [condition("Ready", "Infeasible")]},
            5000,
            id="another-condition",
        ),
        pytest.param(
            ASKS_FIVE,
            {
                "containerStatuses": [status("1")],
                "conditions": [
                    condition("Ready", None),
                    condition(PENDING, "Deferred"),
                    condition(PENDING, "Infeasible"),
                ],
            },
            5000,
            id="first-of-two",
        ),
    ],
)
def test_a_resize_in_place_is_read_from_the_status(spec: object, told: object, expected: int) -> None:
    assert pod_of(spec, told).requests == {"cpu": expected}


@pytest.mark.parametrize(
    ("spec", "told", "expected"),
    [
        pytest.param({"containers": [container()]}, None, True, id="nothing-asked"),
        pytest.param({"containers": [container(resources={"limits": {"memory": 1}})]}, None, False, id="limit"),
        pytest.param({"initContainers": [container(resources=asking(cpu="1m"))]}, None, False, id="init-container"),
        pytest.param(ASKS_FIVE | {"resources": {}}, None, True, id="empty-pod-level-decides-alone"),
        pytest.param(ASKS_FIVE | {"resources": None}, None, False, id="null-pod-level-decides-nothing"),
        pytest.param(ASKS_FIVE, {"qosClass": "BestEffort"}, True, id="status-says-best-effort"),
        pytest.param({}, {"qosClass": "Guaranteed"}, False, id="status-says-guaranteed"),
        pytest.param(ASKS_FIVE, {"qosClass": ""}, False, id="status-says-nothing"),
    ],
)
def test_a_pod_that_asks_for_nothing_is_best_effort(
    spec: object,
    told: object,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert expected is pod_of(spec, told).best_effort


# Errors.

GOOD = container(resources=asking(cpu="1"))
BROKEN = asking(cpu="lots")


@pytest.mark.parametrize(
    ("spec", "told", "field"),
    [
        pytest.param({"containers": [container(resources=BROKEN)]}, None, "spec.containers[0].resources.requests.cpu"),
        pytest.param(
            {"containers": [GOOD, container("d", resources={"limits": {"example.com/gpu": "x"}})]},
            None,
            "spec.containers[1].resources.limits.example.com/gpu",
        ),
        pytest.param(
            {"containers": [GOOD], "initContainers": [container("i", resources=BROKEN)]},
            None,
            "spec.initContainers[0].resources.requests.cpu",
        ),
        pytest.param({"resources": BROKEN}, None, "spec.resources.requests.cpu"),
        pytest.param({"overhead": {"memory": "x"}}, None, "spec.overhead.memory"),
        pytest.param(
            {"containers": [GOOD]},
            {"containerStatuses": [container("d"), container(resources=BROKEN)]},
            "status.containerStatuses[1].resources.requests.cpu",
        ),
        pytest.param(
            {"containers": [GOOD]},
            {"containerStatuses": [container(resources={}, allocatedResources={"cpu": "x"})]},
            "status.containerStatuses[0].allocatedResources.cpu",
        ),
        pytest.param(
            SIDECAR_ASKS_FIVE,
            {"initContainerStatuses": [container(resources=BROKEN)]},
            "status.initContainerStatuses[0].resources.requests.cpu",
        ),
    ],
)
def test_a_broken_quantity_is_refused_with_the_field(spec: object, told: object, field: str) -> None:
    with pytest.raises(DecodeError) as caught:
        pod_of(spec, told)
    assert (field, FORMAT) == (caught.value.field, caught.value.message)


def test_a_broken_reason_of_a_resize_is_refused_with_the_field() -> None:
    with pytest.raises(DecodeError, match=r"^status\.conditions\[0\]\.reason: expected str \| null, got int$"):
        pod_of({}, {"conditions": [{"type": PENDING, "reason": 3}]})


def test_a_pod_without_a_node_counts_by_its_spec_alone() -> None:
    pod = {"metadata": {"name": "p"}, "spec": ASKS_FIVE, "status": {"containerStatuses": [status("6")]}}
    decoded = decode_pod(json.dumps(pod).encode())
    assert (decoded.requests, decoded.resources) == ({"cpu": 5000}, None)


def test_a_pod_that_releases_count_differently_keeps_what_they_count() -> None:
    resized = pod_of(ASKS_FIVE, {"containerStatuses": [container(allocatedResources={"cpu": "9"})]})
    assert resized.requests == {"cpu": 5000}
    assert counted(resized, rules_of(Release(1, 37)).request_counting).requests == {"cpu": 9000}
    settled = pod_of(ASKS_FIVE, {"containerStatuses": [status("5", allocated="5")]})
    assert settled.resources is None
    assert counted(settled, rules_of(Release(1, 37)).request_counting) is settled


def test_what_is_reported_of_the_pod_as_a_whole_is_read() -> None:
    told = {"resources": {"requests": {"cpu": "7"}}, "allocatedResources": {"cpu": "6"}}
    whole = pod_of(ASKS_FIVE, told)
    assert counted(whole, rules_of(Release(1, 37)).request_counting).requests == {"cpu": 7000}
    with pytest.raises(DecodeError, match=r"^status\.allocatedResources\.cpu"):
        pod_of(ASKS_FIVE, {**told, "allocatedResources": {"cpu": "x"}})


# Sharing.


def test_pods_that_ask_the_same_in_other_words_share_their_requests() -> None:
    one = pod_of({"containers": [container("a", resources=asking(cpu="1", memory="1Ki"))]})
    other = pod_of({"containers": [container("b", resources=asking(cpu="1000m", memory="1024"))]}, {"qosClass": "X"})
    assert one.requests is other.requests


def test_pods_that_ask_the_same_and_are_of_another_class_differ() -> None:
    assert pod_of({}, {"qosClass": "BestEffort"}).best_effort
    assert not pod_of({}, {"qosClass": "Burstable"}).best_effort


def test_very_long_resources_are_read_but_not_kept() -> None:
    spec = {"containers": [container("x" * 5000, resources=asking(cpu="7777m"))]}
    assert pod_of(spec).requests == pod_of(spec).requests == {"cpu": 7777}
