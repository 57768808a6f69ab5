"""The reserved amounts of a pod, row by row as in PodRequests of component-helpers v0.34.1, and ComputePodQOS."""

from collections.abc import Mapping
from random import Random

import pytest

from core.objects.pod_requests import (
    OVERFLOW,
    Amounts,
    Container,
    PodResources,
    Resources,
    is_best_effort,
    non_zero_requests,
    origins,
    pod_requests,
    rounded,
    scored_requests,
)
from core.objects.quantity import nanos
from core.releases.release import RequestCounting


def amounts(**quantities: str) -> Amounts:
    return {name.replace("_", "-"): nanos(text) for name, text in quantities.items()}


def asking(**requests: str) -> Container:
    return Container(Resources(amounts(**requests)))


def sidecar(**requests: str) -> Container:
    return Container(Resources(amounts(**requests)), sidecar=True)


def resized(requested: str, *, actual: str | None, allocated: str | None = None, is_sidecar: bool = False) -> Container:
    return Container(
        Resources(amounts(cpu=requested)),
        sidecar=is_sidecar,
        actual=None if actual is None else amounts(cpu=actual),
        allocated=None if allocated is None else amounts(cpu=allocated),
        reported=actual is not None,
    )


OLD = RequestCounting()
"""The counting of v1.34."""


# Containers and init containers. id -> pod, requests
ADDED_UP: dict[str, tuple[PodResources, Mapping[str, int]]] = {
    "nothing": (PodResources(), {}),
    "fractions-are-added-before-rounding": (
        PodResources([asking(cpu="100u", memory="1500m"), asking(cpu="100u", memory="1500m")]),
        {"cpu": 1, "memory": 3},
    ),
    "sum-over-int64": (PodResources([asking(memory="8Ei"), asking(memory="8Ei")]), {"memory": -2}),
    # The pod as a whole, and overhead.
    "pod-level-wins": (
        PodResources([asking(cpu="1", memory="1")], pod_level=Resources(amounts(cpu="500m"))),
        {"cpu": 500, "memory": 1},
    ),
    "pod-level-hugepages": (PodResources(pod_level=Resources(amounts(hugepages_2Mi="4"))), {"hugepages-2Mi": 4}),
    "pod-level-of-unsupported-resources": (
        PodResources([asking(ephemeral_storage="1")], pod_level=Resources({"ephemeral-storage": nanos("9")})),
        {"ephemeral-storage": 1},
    ),
    "pod-level-limits-alone": (
        PodResources([asking(cpu="1")], pod_level=Resources({}, amounts(cpu="2"))),
        {"cpu": 1000},
    ),
    "overhead": (PodResources([asking(cpu="1")], overhead=amounts(cpu="1m", memory="1")), {"cpu": 1001, "memory": 1}),
    "overhead-over-init-containers": (
        PodResources([asking(cpu="1")], [asking(cpu="2")], overhead=amounts(cpu="1")),
        {"cpu": 3000},
    ),
    "overhead-over-pod-level": (
        PodResources(pod_level=Resources(amounts(cpu="1")), overhead=amounts(cpu="1m")),
        {"cpu": 1001},
    ),
    # Resize in place.
    "growing": (PodResources([resized("2", actual="1", allocated="1")]), {"cpu": 2000}),
    "shrinking": (PodResources([resized("1", actual="2")]), {"cpu": 2000}),
    "allocated-is-most": (PodResources([resized("1", actual="2", allocated="3")]), {"cpu": 3000}),
    "infeasible": (PodResources([resized("9", actual="1", allocated="2")], resize_infeasible=True), {"cpu": 2000}),
    "growing-sidecar": (PodResources([], [resized("2", actual="3", is_sidecar=True)]), {"cpu": 3000}),
}


@pytest.mark.parametrize(("pod", "expected"), [pytest.param(*case, id=name) for name, case in ADDED_UP.items()])
def test_a_pod_reserves_the_most_that_it_holds_at_once(pod: PodResources, expected: Mapping[str, int]) -> None:
    assert expected == pod_requests(pod, OLD)


@pytest.mark.parametrize(
    "name",
    [
        "cpu",
        "memory",
        "ephemeral-storage",
        "hugepages-1Gi",
        "attachable-volumes-aws-ebs",
        "example.com/gpu",
        "kubernetes.io/batch",
        "x.kubernetes.io/batch",
    ],
)
def test_resources_that_the_scheduler_accounts_are_reserved(name: str) -> None:
    assert pod_requests(PodResources([Container(Resources({name: nanos("1")}))]), OLD) == {
        name: 1000 if name == "cpu" else 1
    }


@pytest.mark.parametrize("name", ["pods", "storage", "gpu", "requests.example.com/gpu", "example.com/", "a/b/c", "-/b"])
def test_names_that_the_scheduler_passes_over_are_not_reserved(name: str) -> None:
    assert pod_requests(PodResources([Container(Resources({name: nanos("1")}))]), OLD) == {}


# Quality of service.


def limited(**limits: str) -> Container:
    return Container(Resources({}, amounts(**limits)))


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(PodResources(), True, id="no-containers"),
        pytest.param(PodResources([asking()]), True, id="nothing-asked"),
        pytest.param(PodResources([asking(cpu="1m")]), False, id="cpu"),
        pytest.param(PodResources([limited(cpu="1")]), False, id="limit"),
        pytest.param(PodResources([asking(cpu="0"), limited(memory="0")]), True, id="zeros"),
        pytest.param(PodResources([asking(cpu="-1")]), True, id="negative"),
        pytest.param(PodResources([asking(ephemeral_storage="1")]), True, id="storage-does-not-matter"),
        pytest.param(PodResources(pod_level=Resources(amounts(cpu="1"))), False, id="pod-level-request"),
        pytest.param(PodResources(pod_level=Resources({}, amounts(memory="1"))), False, id="pod-level-limit"),
        pytest.param(PodResources([asking(cpu="1")], pod_level=Resources()), True, id="empty-pod-level-decides-alone"),
        pytest.param(PodResources([asking(cpu="1")], qos_class="BestEffort"), True, id="status-says-best-effort"),
        pytest.param(PodResources(qos_class="Burstable"), False, id="status-says-burstable"),
    ],
)
def test_a_pod_is_best_effort_when_it_asks_for_no_cpu_and_no_memory(
    pod: PodResources,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert expected is is_best_effort(pod)


MIB = 2**20


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(PodResources(), (0, 0), id="no-containers"),
        pytest.param(PodResources([Container()]), (100, 200 * MIB), id="defaults"),
        pytest.param(PodResources([asking(cpu="1", memory="1Mi")]), (1000, MIB), id="asked-for"),
        pytest.param(PodResources([Container()], overhead=amounts(cpu="5m")), (105, 200 * MIB), id="overhead"),
        pytest.param(
            PodResources([Container()], pod_level=Resources(amounts(cpu="1"))), (1000, 200 * MIB), id="pod-level-cpu"
        ),
        pytest.param(
            PodResources([asking(memory="1Mi"), Container()], pod_level=Resources(amounts(cpu="1"))),
            (1000, MIB),
            id="pod-level-and-one-container-asks",
        ),
        pytest.param(
            PodResources([asking(memory="1Mi"), Container()], pod_level=Resources(amounts(ephemeral_storage="1"))),
            (200, 201 * MIB),
            id="pod-level-of-what-has-no-pod-level",
        ),
        pytest.param(PodResources([resized("100m", actual="300m")]), (300, 200 * MIB), id="what-is-configured-counts"),
    ],
)
def test_scoring_takes_a_container_that_asks_for_nothing_for_a_small_one(
    pod: PodResources, expected: tuple[int, int]
) -> None:
    assert expected == non_zero_requests(pod, OLD)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(PodResources(), (0, 0), id="no-containers"),
        pytest.param(
            PodResources([Container()], [sidecar(cpu="1")], overhead=amounts(memory="1Mi")),
            (1100, 401 * MIB),
            id="sidecar-and-overhead",
        ),
        pytest.param(
            PodResources([Container()], pod_level=Resources(amounts(cpu="3", memory="1Gi"))),
            (100, 200 * MIB),
            id="pod-level-is-not-looked-at",
        ),
        pytest.param(PodResources([resized("100m", actual="300m")]), (100, 200 * MIB), id="status-is-not-looked-at"),
        pytest.param(
            PodResources([Container()], [resized("200m", actual="300m", is_sidecar=True)]),
            (300, 400 * MIB),
            id="status-of-a-sidecar-is-not-looked-at",
        ),
    ],
)
def test_the_incoming_pod_is_scored_by_what_its_containers_ask_for(
    pod: PodResources, expected: tuple[int, int]
) -> None:
    assert expected == scored_requests(pod)


# Many containers.


def stored_naively(pod: PodResources) -> dict[str, int]:
    """Return the largest sum of requests at one time: beside each init container, and of the containers."""
    running: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    stages: list[dict[str, int]] = []
    for init in pod.init_containers:
        requests = init.resources.requests
        stages.append({name: sidecars.get(name, 0) + requests.get(name, 0) for name in {*sidecars, *requests}})
        if init.sidecar:
            sidecars = stages[-1]
    for requests in (*(each.resources.requests for each in pod.containers), sidecars):
        running = {name: running.get(name, 0) + requests.get(name, 0) for name in {*running, *requests}}
    stages.append(running)
    return {name: max(stage.get(name, 0) for stage in stages) for stage in stages for name in stage}


@pytest.mark.parametrize("seed", range(20))
def test_what_is_held_is_the_most_of_any_stage(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - a test that is the same each time

    def container(*, may_stay: bool) -> Container:
        names = random.sample(["cpu", "memory", "ephemeral-storage", "hugepages-2Mi"], random.randrange(4))
        requests = {name: nanos(str(random.randrange(5))) for name in names}
        return Container(Resources(requests), sidecar=may_stay and random.random() < 0.5)

    pod = PodResources(
        [container(may_stay=False) for _ in range(random.randrange(4))],
        [container(may_stay=True) for _ in range(random.randrange(8))],
    )
    assert pod_requests(pod, OLD) == rounded(stored_naively(pod))


def test_sidecars_and_init_containers_cost_the_sum_of_what_they_ask_and_not_the_product() -> None:
    sidecars = [Container(Resources({f"example.com/{number}": 1}), sidecar=True) for number in range(20_000)]
    inits = [Container(Resources({"cpu": nanos("1")})) for _ in range(20_000)]
    # Adding all sidecars for each init container would be 400 million additions, and take minutes.
    requests = pod_requests(PodResources((), [*sidecars, *inits]), OLD)
    assert (len(requests), requests["cpu"]) == (20_001, 1000)


@pytest.mark.parametrize(
    ("pod", "names", "expected"),
    [
        pytest.param(PodResources([asking(cpu="1")]), [], {}, id="containers-alone"),
        pytest.param(
            PodResources([asking(cpu="1", memory="1Gi")], [asking(cpu="4", memory="512Mi")]),
            ["migrate"],
            {"cpu": "init container migrate asks for it"},
            id="an-init-container",
        ),
        pytest.param(
            PodResources([asking(cpu="1")], [sidecar(cpu="2"), asking(cpu="500m"), asking(cpu="2")]),
            ["proxy", "first", "second"],
            {"cpu": "init container second asks for it"},
            id="an-init-container-beside-a-sidecar",
        ),
        pytest.param(
            PodResources([asking(cpu="1")], [sidecar(cpu="2"), sidecar(cpu="1"), sidecar(cpu="0")]),
            ["proxy", "log", "idle"],
            {"cpu": "with sidecar proxy and log"},
            id="sidecars",
        ),
        pytest.param(
            PodResources([asking(cpu="1")], [sidecar(cpu="2")], overhead=amounts(cpu="250m", memory="120Mi", x="0")),
            ["proxy"],
            {"cpu": "with sidecar proxy, with overhead", "memory": "with the overhead of its RuntimeClass"},
            id="overhead",
        ),
        pytest.param(
            PodResources([asking(cpu="1")], pod_level=Resources(amounts(cpu="4"))),
            [],
            {"cpu": "spec.resources of the pod"},
            id="the-pod-as-a-whole",
        ),
        pytest.param(
            PodResources([asking(memory="50E", cpu="1")]),
            [],
            {"memory": f"{OVERFLOW}, and kube-scheduler counts 0"},
            id="kubernetes/kubernetes#102134",
        ),
        pytest.param(
            PodResources([asking(cpu="10P", memory="10P")]),
            [],
            {"cpu": f"{OVERFLOW}, and kube-scheduler counts 0"},
            id="an-overflow-in-millicores",
        ),
        pytest.param(PodResources([asking(memory="8Ei", cpu="9223372036854775")]), [], {}, id="just-no-overflow"),
    ],
)
def test_what_decides_an_amount_is_known(pod: PodResources, names: list[str], expected: dict[str, str]) -> None:
    assert dict(origins(pod, names)) == expected
