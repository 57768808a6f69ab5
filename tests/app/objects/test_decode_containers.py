"""What a pod's containers ask of their node: resources with their quantities, ports and images."""

import json
from collections.abc import Mapping

import msgspec
import pytest

from app.objects.decode import DecodeError, amounts_of, quantity_of
from app.objects.decode_pod import decode_pod
from core.objects.pod import NO_HOST_PORTS, HostPort, Pod, counted
from core.objects.quantity import nanos
from core.releases.differences import rules_of
from core.releases.release import Release
from tests.builders import Object

FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def pod_of(spec: object, status: object = None) -> Pod:
    spec = {**spec, "nodeName": "n"} if isinstance(spec, dict) else spec  # else its status does not count
    return decode_pod(json.dumps({"metadata": {"name": "p"}, "spec": spec, "status": status}).encode())


def container(name: str = "c", **members: object) -> dict[str, object]:
    return {"name": name, **members}


def asking(**requests: object) -> dict[str, object]:
    return {"requests": requests}


ASKS_FIVE = {"containers": [container(resources=asking(cpu="5"))]}
SIDECAR_ASKS_FIVE = {"initContainers": [container(resources=asking(cpu="5"), restartPolicy="Always")]}


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
        pytest.param({**ASKS_FIVE, **SIDECAR_ASKS_FIVE}, {"cpu": 10_000}, id="sidecar"),
        pytest.param(
            {**ASKS_FIVE, "initContainers": [container(resources=asking(cpu="1"), restartPolicy="OnFailure")]},
            {"cpu": 5000},
            id="init-container-of-another-policy",
        ),
        pytest.param({**ASKS_FIVE, "resources": asking(cpu="7")}, {"cpu": 7000}, id="pod-level"),
        pytest.param(
            {**ASKS_FIVE, "overhead": {"cpu": "1m", "memory": "1"}}, {"cpu": 5001, "memory": 1}, id="overhead"
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


PENDING = "PodResizePending"


@pytest.mark.parametrize(
    ("spec", "reported", "expected"),
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
def test_a_resize_in_place_is_read_from_the_status(spec: object, reported: object, expected: int) -> None:
    assert pod_of(spec, reported).requests == {"cpu": expected}


@pytest.mark.parametrize(
    ("spec", "reported", "expected"),
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
    reported: object,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert expected is pod_of(spec, reported).best_effort


# Errors.

GOOD = container(resources=asking(cpu="1"))
BROKEN = asking(cpu="lots")


@pytest.mark.parametrize(
    ("spec", "reported", "field"),
    [
        (
            {"containers": [GOOD, container("d", resources={"limits": {"example.com/gpu": "x"}})]},
            None,
            "spec.containers[1].resources.limits.example.com/gpu",
        ),
        (
            {"containers": [GOOD], "initContainers": [container("i", resources=BROKEN)]},
            None,
            "spec.initContainers[0].resources.requests.cpu",
        ),
        ({"resources": BROKEN}, None, "spec.resources.requests.cpu"),
        ({"overhead": {"memory": "x"}}, None, "spec.overhead.memory"),
        (
            {"containers": [GOOD]},
            {"containerStatuses": [container("d"), container(resources={}, allocatedResources={"cpu": "x"})]},
            "status.containerStatuses[1].allocatedResources.cpu",
        ),
        (
            SIDECAR_ASKS_FIVE,
            {"initContainerStatuses": [container(resources=BROKEN)]},
            "status.initContainerStatuses[0].resources.requests.cpu",
        ),
        (ASKS_FIVE, {"allocatedResources": {"cpu": "x"}}, "status.allocatedResources.cpu"),
    ],
)
def test_a_broken_quantity_is_refused_with_the_field(spec: object, reported: object, field: str) -> None:
    with pytest.raises(DecodeError) as caught:
        pod_of(spec, reported)
    assert (field, FORMAT) == (caught.value.field, caught.value.message)


def test_a_pod_that_releases_count_differently_keeps_what_they_count() -> None:
    resized = pod_of(ASKS_FIVE, {"containerStatuses": [container(allocatedResources={"cpu": "9"})]})
    assert resized.requests == {"cpu": 5000}
    assert counted(resized, rules_of(Release(1, 37)).request_counting).requests == {"cpu": 9000}
    settled = pod_of(ASKS_FIVE, {"containerStatuses": [status("5", allocated="5")]})
    assert settled.demand.resources is None
    assert counted(settled, rules_of(Release(1, 37)).request_counting) is settled


def test_what_is_reported_of_the_pod_as_a_whole_is_read() -> None:
    whole = pod_of(ASKS_FIVE, {"resources": {"requests": {"cpu": "7"}}, "allocatedResources": {"cpu": "6"}})
    assert counted(whole, rules_of(Release(1, 37)).request_counting).requests == {"cpu": 7000}


# Sharing.


def test_pods_that_ask_the_same_in_other_words_share_their_requests() -> None:
    one = pod_of({"containers": [container("a", resources=asking(cpu="1", memory="1Ki"))]})
    other = pod_of({"containers": [container("b", resources=asking(cpu="1000m", memory="1024"))]}, {"qosClass": "X"})
    assert one.requests is other.requests


def test_very_long_resources_are_read_but_not_kept() -> None:
    resources = asking(cpu="7777m", **{f"example.com/{number}": "1" for number in range(1000)})
    one, other = (pod_of({"containers": [container(resources=resources)]}).requests for _ in "12")
    assert one == other
    assert one["cpu"] == 7777
    assert one is not other


def of_containers(*containers: Object, init: tuple[Object, ...] = ()) -> Pod:
    spec = {"containers": containers, "initContainers": init}
    return decode_pod(json.dumps({"metadata": {"name": "p"}, "spec": spec}).encode())


def taking(*ports: Object, **members: object) -> Object:
    return {"ports": ports, **members}


# Ports.


@pytest.mark.parametrize(
    ("port", "expected"),
    [
        pytest.param({"hostPort": 80}, HostPort(80, "TCP", "0.0.0.0"), id="defaults"),  # noqa: S104 - expected
        pytest.param({"hostPort": 80, "protocol": "", "hostIP": ""}, HostPort(80), id="empty"),
        pytest.param({"hostPort": 80, "protocol": None, "hostIP": None}, HostPort(80), id="null"),
        pytest.param(
            {"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1", "containerPort": 5353, "name": "dns"},
            HostPort(53, "UDP", "10.0.0.1"),
            id="all-members",
        ),
    ],
)
def test_a_host_port_is_taken(port: Object, expected: HostPort) -> None:
    assert of_containers(taking(port), taking(port)).demand.host_ports == {expected}


@pytest.mark.parametrize(
    "port",
    [{}, {"containerPort": 80}, {"hostPort": None}, {"hostPort": 0}, {"hostPort": -1}],
    ids=["empty", "container-port", "null", "zero", "negative"],
)
def test_a_port_that_is_not_of_the_node_is_none(port: Object) -> None:
    assert of_containers(taking(port)).demand.host_ports is NO_HOST_PORTS


def test_host_ports_of_containers_that_run_as_long_as_the_pod_count() -> None:
    pod = of_containers(
        taking({"hostPort": 1}),
        taking({"hostPort": 2}, {"hostPort": 3}),
        init=(taking({"hostPort": 4}, restartPolicy="Always"), taking({"hostPort": 5})),
    )
    assert {port.port for port in pod.demand.host_ports} == {1, 2, 3, 4}


# Images.


def test_images_are_one_a_container_with_their_tags_in_order() -> None:
    pod = of_containers({"image": "web"}, {"image": "db:1"}, {"image": "db:1"}, {}, init=({"image": "init"},))
    assert pod.demand.images == (":latest", "db:1", "db:1", "init:latest", "web:latest")


# What scoring reads.


def test_containers_that_ask_for_nothing_are_scored_all_the_same() -> None:
    pod = of_containers({}, {"resources": {"requests": {"cpu": "1"}}})
    assert pod.requests == {"cpu": 1000}
    assert pod.demand.non_zero_requests == (1100, 400 * 2**20)
    assert pod.demand.scored_requests == (1100, 400 * 2**20)


def test_requests_of_the_pod_as_a_whole_count_on_its_node_but_not_while_it_is_scored() -> None:
    spec = {"containers": [{}], "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}}
    pod = decode_pod(json.dumps({"metadata": {"name": "p"}, "spec": spec}).encode())
    assert pod.demand.non_zero_requests == (3000, 2**30)
    assert pod.demand.scored_requests == (100, 200 * 2**20)
