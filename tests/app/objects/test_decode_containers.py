"""What a pod's containers ask of its node besides resources: ports and images, and what scoring takes them for."""

import json

import pytest

from app.objects.decode_pod import decode_pod
from core.objects.pod import NO_HOST_PORTS, HostPort, Pod
from tests.builders import Object


def pod_of(*containers: Object, init: tuple[Object, ...] = ()) -> Pod:
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
    assert pod_of(taking(port)).host_ports == {expected}


@pytest.mark.parametrize(
    "port",
    [{}, {"containerPort": 80}, {"hostPort": None}, {"hostPort": 0}, {"hostPort": -1}],
    ids=["empty", "container-port", "null", "zero", "negative"],
)
def test_a_port_that_is_not_of_the_node_is_none(port: Object) -> None:
    assert pod_of(taking(port)).host_ports is NO_HOST_PORTS


def test_host_ports_of_containers_that_run_as_long_as_the_pod_count() -> None:
    pod = pod_of(
        taking({"hostPort": 1}),
        taking({"hostPort": 2}, {"hostPort": 3}),
        init=(taking({"hostPort": 4}, restartPolicy="Always"), taking({"hostPort": 5})),
    )
    assert {port.port for port in pod.host_ports} == {1, 2, 3, 4}


def test_the_order_of_ports_is_irrelevant() -> None:
    one, other = {"hostPort": 1}, {"hostPort": 2}
    assert pod_of(taking(one), taking(other)).host_ports == pod_of(taking(other, one, one)).host_ports


# Images.


def test_images_are_one_a_container_with_their_tags_in_order() -> None:
    pod = pod_of({"image": "web"}, {"image": "db:1"}, {"image": "db:1"}, init=({"image": "init"},))
    assert pod.images == ("db:1", "db:1", "init:latest", "web:latest")


def test_a_container_without_an_image_is_a_container() -> None:
    assert pod_of({}, {"image": "web"}).images == (":latest", "web:latest")


# What scoring reads.


def test_containers_that_ask_for_nothing_are_scored_all_the_same() -> None:
    pod = pod_of({}, {"resources": {"requests": {"cpu": "1"}}})
    assert pod.requests == {"cpu": 1000}
    assert pod.non_zero_requests == (1100, 400 * 2**20)
    assert pod.scored_requests == (1100, 400 * 2**20)


def test_requests_of_the_pod_as_a_whole_count_on_its_node_but_not_while_it_is_scored() -> None:
    spec = {"containers": [{}], "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}}
    pod = decode_pod(json.dumps({"metadata": {"name": "p"}, "spec": spec}).encode())
    assert pod.non_zero_requests == (3000, 2**30)
    assert pod.scored_requests == (100, 200 * 2**20)


def test_what_a_large_pod_asks_is_not_kept_for_other_pods() -> None:
    container = {"resources": {"requests": {f"example.com/{number}": "1" for number in range(1000)}}}
    assert pod_of(container).requests == pod_of(container).requests
    assert pod_of(container).requests is not pod_of(container).requests
