"""Which pods occupy a node, names of images, which taints are tolerated, and what a pod's usage is predicted from."""

from itertools import product
from random import Random

import pytest

from core.objects.pod import Taint, ToleratedTaints, Toleration, normalized_image_name
from core.objects.pod_requests import NO_LOAD, Container, PodLoad, PodResources, Resources, pod_load
from core.objects.quantity import nanos
from tests.builders import PodBuilder, make_pod
from tests.core.decoded import pod_of


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(make_pod("p"), False, id="not-bound"),
        pytest.param(make_pod("p").on("n"), True, id="bound-without-a-phase"),
        pytest.param(make_pod("p").on("n").phase("Pending"), True, id="bound-and-pending"),
        pytest.param(make_pod("p").on("n").phase("Running"), True, id="running"),
        pytest.param(make_pod("p").on("n").phase("Unknown"), True, id="unknown"),
        pytest.param(make_pod("p").on("n").phase("Running").terminating(), True, id="terminating"),
        pytest.param(make_pod("p").on("n").phase("Succeeded"), False, id="succeeded"),
        pytest.param(make_pod("p").on("n").phase("Failed"), False, id="failed"),
        pytest.param(make_pod("p").phase("Failed"), False, id="failed-before-it-was-bound"),
    ],
)
def test_a_pod_occupies_a_node_from_its_binding_to_its_end(
    pod: PodBuilder,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert expected is pod_of(pod).assigned


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("web", "web:latest", id="no-tag"),
        pytest.param("web:1", "web:1", id="tag"),
        pytest.param("shop/web", "shop/web:latest", id="repository"),
        pytest.param("example.com:5000/web", "example.com:5000/web:latest", id="port-is-no-tag"),
        pytest.param("example.com:5000/web:1", "example.com:5000/web:1", id="port-and-tag"),
        pytest.param("web@sha256:abc", "web@sha256:abc", id="digest"),
        pytest.param("", ":latest", id="none"),
    ],
)
def test_an_image_without_a_tag_is_the_latest(name: str, expected: str) -> None:
    assert expected == normalized_image_name(name)


TAINT = Taint("gpu", "yes", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param(Toleration("gpu", "Equal", "yes", "NoSchedule"), True, id="equal"),
        pytest.param(Toleration("gpu", "", "yes", "NoSchedule"), True, id="no-operator-is-equal"),
        pytest.param(Toleration("gpu", "Equal", "no", "NoSchedule"), False, id="other-value"),
        pytest.param(Toleration("gpu", "Equal", "", "NoSchedule"), False, id="no-value"),
        pytest.param(Toleration("disk", "Equal", "yes", "NoSchedule"), False, id="other-key"),
        pytest.param(Toleration("gpu", "Equal", "yes", "NoExecute"), False, id="other-effect"),
        pytest.param(Toleration("gpu", "Equal", "yes"), True, id="every-effect"),
        pytest.param(Toleration("gpu", "Exists", "", "NoSchedule"), True, id="exists"),
        pytest.param(Toleration("gpu", "Exists", "no"), True, id="exists-whatever-the-value"),
        pytest.param(Toleration("disk", "Exists"), False, id="exists-other-key"),
        pytest.param(Toleration("", "Exists"), True, id="everything"),
        pytest.param(Toleration("", "Exists", "", "NoExecute"), False, id="every-key-other-effect"),
        pytest.param(Toleration("", "Equal", "yes"), True, id="every-key-of-the-value"),
        pytest.param(Toleration("gpu", "Near", "yes"), False, id="unknown-operator"),
        pytest.param(Toleration(), False, id="empty"),
    ],
)
def test_a_toleration_tolerates_what_its_members_do_not_exclude(
    toleration: Toleration,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert expected is toleration.tolerates(TAINT)
    assert expected is (TAINT in ToleratedTaints([toleration]))


def test_many_tolerations_tolerate_what_any_of_them_does() -> None:
    keys, effects, values = ("", "gpu", "disk"), ("", "NoSchedule", "NoExecute"), ("", "yes", "no")
    every = [Toleration(*each) for each in product(keys, ("Equal", "Exists", "", "Near"), values, effects)]
    taints = [Taint(*each) for each in product(keys[1:], values, effects[1:])]
    random = Random(1)  # noqa: S311 - a test that is the same each time
    for _ in range(200):
        some = random.sample(every, random.randrange(5))
        tolerated = ToleratedTaints(some)
        for taint in taints:
            assert (taint in tolerated) is any(toleration.tolerates(taint) for toleration in some)


CPU_1 = {"cpu": nanos("1")}
CPU_2 = {"cpu": nanos("2")}
CPU_3 = {"cpu": nanos("3")}
ONE_MIB = {"memory": nanos("1Mi")}


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
            PodResources(containers=[Container(Resources(ONE_MIB, ONE_MIB)), Container()]),
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
