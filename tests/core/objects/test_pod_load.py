"""The parts that the usage of a pod is predicted from."""

import pytest

from core.objects.pod_requests import NO_LOAD, Container, PodLoad, PodResources, Resources, pod_load
from core.objects.quantity import nanos
from tests.builders import make_pod
from tests.core.decoded import pod_of

CPU_1 = {"cpu": nanos("1")}
CPU_2 = {"cpu": nanos("2")}
CPU_3 = {"cpu": nanos("3")}
MIB = {"memory": nanos("1Mi")}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(PodResources(), NO_LOAD, id="no-container"),
        pytest.param(
            PodResources(containers=[Container(Resources(CPU_1, CPU_2)), Container(Resources({}, CPU_3))]),
            PodLoad(limited_cpu=5000, limits=(5000, 0)),
            id="limits-come-before-requests",
        ),
        pytest.param(
            PodResources(containers=[Container(Resources(CPU_2)), Container(Resources(CPU_1))]),
            PodLoad(requested_cpu=(1000, 2000)),
            id="requests-in-order",
        ),
        pytest.param(
            PodResources(containers=[Container(Resources(MIB, MIB)), Container()]),
            PodLoad(unstated=2, limits=(0, 2**20)),
            id="only-memory-is-stated",
        ),
        pytest.param(
            PodResources(containers=[Container(Resources({}, {"cpu": 0}))]),
            PodLoad(limited_cpu=0),
            id="a-limit-of-0-is-a-limit",
        ),
        pytest.param(
            PodResources(
                containers=[Container(Resources({}, CPU_1))],
                init_containers=[Container(Resources({}, CPU_3))],
                overhead={"cpu": nanos("100m"), "memory": nanos("1Mi")},
            ),
            PodLoad(limited_cpu=1000, overhead_cpu=100, limits=(3100, 0)),
            id="init-containers-and-overhead-in-the-limit-of-the-pod",
        ),
        pytest.param(
            PodResources(containers=[Container(Resources({}, CPU_1))], pod_level=Resources({}, CPU_2)),
            PodLoad(limited_cpu=1000, limits=(2000, 0)),
            id="a-limit-of-the-pod-as-a-whole",
        ),
    ],
)
def test_a_container_counts_by_its_limit_then_by_its_request(pod: PodResources, expected: PodLoad) -> None:
    assert expected == pod_load(pod)


def test_pods_that_ask_for_the_same_share_one_value() -> None:
    first, second = (pod_of(make_pod(name).image("a").limits(cpu="1")) for name in "ab")
    assert first.load is second.load
    assert first.load == PodLoad(limited_cpu=1000, limits=(1000, 0))


@pytest.mark.parametrize(
    ("kind", "expected"), [pytest.param("DaemonSet", True, id="daemon-set"), pytest.param("Job", False, id="other")]
)
def test_a_pod_says_whether_it_is_of_a_daemon_set(kind: str, *, expected: bool) -> None:
    assert pod_of(make_pod("p").owned_by(kind, "o", "u")).of_daemon_set is expected
