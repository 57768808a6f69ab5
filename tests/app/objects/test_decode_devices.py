"""Objects of resource.k8s.io/v1: what binding conditions say of an allocation, bounds, and the claims of a pod."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from app.objects.decode import DecodeError
from app.objects.decode_claims import decode_resource_claim
from app.objects.decode_devices import decode_resource_slice
from app.objects.decode_pod import decode_pod
from core.objects.devices import Allocation
from core.objects.pod import PodResourceClaim
from core.objects.pod_requests import ExtendedRequests

GPU: Final = {"driver": "d", "pool": "p", "device": "g"}
LONG_AGO: Final = "2026-01-01T00:00:00Z"


def allocation_of(results: list[Any], statuses: list[Any], allocated: str) -> Allocation:
    """Return an allocation with these devices and conditions."""
    allocation = {"devices": {"results": results}, "allocationTimestamp": allocated}
    status = {"allocation": allocation, "devices": statuses}
    found = decode_resource_claim(json.dumps({"metadata": {"name": "c"}, "status": status}).encode()).allocation
    assert found is not None
    return found


def conditions(**found: str) -> list[Any]:
    """Return the status of the device with these conditions."""
    return [{**GPU, "conditions": [{"type": kind, "status": status} for kind, status in found.items()]}]


@pytest.mark.parametrize(
    ("need", "statuses", "expected"),
    [
        pytest.param({}, [], (False, False), id="no-conditions"),
        pytest.param({"bindingConditions": ["A"]}, [], (True, False), id="no-status"),
        pytest.param({"bindingConditions": ["A"]}, conditions(A="False"), (True, False), id="not-true-yet"),
        pytest.param({"bindingConditions": ["A"]}, conditions(A="True"), (False, False), id="true"),
        pytest.param(
            {"bindingConditions": ["A"], "bindingFailureConditions": ["B"]},
            conditions(A="True", B="True"),
            (True, True),
            id="failed",
        ),
        pytest.param({"bindingFailureConditions": ["B"]}, conditions(B="True"), (False, False), id="only-failures"),
    ],
)
def test_an_allocation_is_given_up_when_it_failed_or_has_waited_for_ten_minutes(
    need: dict[str, Any], statuses: list[Any], expected: tuple[bool, bool]
) -> None:
    now = (datetime.now(UTC) - timedelta(minutes=9)).isoformat()
    assert expected == (
        allocation_of([{**GPU, **need}], statuses, LONG_AGO).unbindable,
        allocation_of([{**GPU, **need}], statuses, now).unbindable,
    )
    assert not allocation_of([{**GPU, "bindingConditions": ["A"]}], [], "").unbindable


@pytest.mark.parametrize(
    ("statuses", "allocated", "expected"),
    [
        pytest.param([], LONG_AGO, 1767226200.0, id="waits"),
        pytest.param(conditions(A="True"), LONG_AGO, None, id="bound"),
        pytest.param(conditions(A="False", B="True"), LONG_AGO, None, id="failed"),
        pytest.param([], "", None, id="no-limit"),
        pytest.param([], "yesterday", None, id="not-a-time"),
    ],
)
def test_devices_that_are_not_bound_have_ten_minutes_from_the_allocation(
    statuses: list[Any], allocated: str, expected: float | None
) -> None:
    results = [{**GPU, "bindingConditions": ["A"], "bindingFailureConditions": ["B"]}]
    assert allocation_of(results, statuses, allocated).binds_until == expected


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"devices": [{"name": "d"}] * 129}, "spec.devices"),
        ({"devices": [{"name": "d", "taints": [{}] * 33}]}, "spec.devices[0].taints"),
        ({"devices": [{"attributes": {f"a{at}": {"int": 1} for at in range(65)}}]}, "spec.devices[0].attributes"),
        ({"devices": [{"attributes": {"a": {"string": "x" * 254}}}]}, "spec.devices[0].attributes.a.string"),
        ({"sharedCounters": [{"name": "x" * 254}]}, "spec.sharedCounters[0].name"),
        ({"driver": "x" * 254}, "spec.driver"),
    ],
)
def test_a_slice_that_no_api_server_stores_is_refused(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_resource_slice(json.dumps({"metadata": {"name": "s"}, "spec": spec}).encode())
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("devices", "field"),
    [
        ({"requests": [{"name": "r"}] * 33}, "spec.devices.requests"),
        ({"requests": [{"firstAvailable": [{}] * 33}]}, "spec.devices.requests[0].firstAvailable"),
        (
            {"requests": [{"exactly": {"selectors": [{"cel": {"expression": "x" * 10_241}}]}}]},
            "spec.devices.requests[0].exactly.selectors",
        ),
    ],
)
def test_a_claim_that_no_api_server_stores_is_refused(devices: dict[str, Any], field: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_resource_claim(json.dumps({"metadata": {"name": "c"}, "spec": {"devices": devices}}).encode())
    assert caught.value.field == field


def test_the_claims_of_a_pod_are_named_by_it_or_made_of_a_template() -> None:
    claims = [
        {"name": "direct", "resourceClaimName": "shared"},
        {"name": "made", "resourceClaimTemplateName": "t"},
        {"name": "needless", "resourceClaimTemplateName": "t"},
        {"name": "awaited", "resourceClaimTemplateName": "t"},
        {"name": "other"},
    ]
    statuses = [{"name": "made", "resourceClaimName": "p-made-abcde"}, {"name": "needless"}]
    text = {
        "metadata": {"name": "p"},
        "spec": {"resourceClaims": claims},
        "status": {"resourceClaimStatuses": statuses},
    }
    pod = decode_pod(json.dumps(text).encode())
    assert pod.claims_resources
    assert pod.resource_claims == (
        PodResourceClaim("direct", "shared"),
        PodResourceClaim("made", "p-made-abcde", of_template=True),
        PodResourceClaim("needless", of_template=True),
        PodResourceClaim("awaited", of_template=True, created=False),
        PodResourceClaim("other"),
    )


def test_what_each_container_requests_of_devices_is_known() -> None:
    def container(restart: str | None, **requests: str) -> dict[str, Any]:
        named = {name.replace("_", "/"): amount for name, amount in requests.items()}
        return {"resources": {"requests": named}, "restartPolicy": restart}

    implicit = "deviceclass.resource.kubernetes.io/gpu"
    spec = {
        "initContainers": [container(None, a_gpu="2"), container("Always", cpu="1", a_gpu="500m")],
        "containers": [
            container(None, cpu="1"),
            {"resources": {"requests": {"z/gpu": "1", "cpu": "1", implicit: "3"}}},
        ],
    }
    pod = decode_pod(json.dumps({"metadata": {"name": "p"}, "spec": spec}).encode())
    assert pod.demand.extended_requests == (
        ExtendedRequests(0, brief=True, amounts=(("a/gpu", 2, 0),)),
        ExtendedRequests(1, brief=False, amounts=(("a/gpu", None, 0),)),
        ExtendedRequests(3, brief=False, amounts=((implicit, 3, 1), ("z/gpu", 1, 2))),
    )
