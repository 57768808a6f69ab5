"""TargetLoadPacking, LoadVariationRiskBalancing and the usage of pods that no measurement shows yet."""

from math import inf, nan
from typing import Any, Final

import pytest
from msgspec.structs import replace

from core.events import ClusterEvent
from core.framework.interface import SUCCESS
from core.mirror.cluster import ClusterMirror
from core.objects.node import NodeMetrics, Usage
from core.plugins.load.load_plugin import (
    LoadVariationRiskBalancing,
    PredictedCpu,
    TargetLoadPacking,
    UnmeasuredBy,
    UnmeasuredUsage,
)
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.core.decoded import mirror_of, pod_of, tell

BEFORE: Final = "2026-01-01T00:00:00Z"
COVERED: Final = "2026-01-01T00:01:00Z"
"""Pods that started until then are in the measurements of this module."""
AFTER: Final = "2026-01-01T00:01:01Z"
MIB: Final = 2**20
GIB: Final = 2**30

FOUR_CORES: Final = make_node("n1").allocatable(cpu="4", memory="8Gi", pods=110).capacity(cpu="4", memory="8Gi")


def metrics(
    cpu: Usage | None = None, memory: Usage | None = None, *, name: str = "n1", too_old: bool = False
) -> NodeMetrics:
    """Return the measurement of a node."""
    return NodeMetrics(
        name=name, measured_at=1767225720, covers_pods_until=COVERED, cpu=cpu, memory=memory, too_old=too_old
    )


def measured_mirror(node: NodeBuilder, measured: NodeMetrics | None, *pods: PodBuilder) -> ClusterMirror:
    """Return a mirror with one node, its measurement if there is one, and pods on it."""
    mirror = mirror_of(node, *(pod.on(node.name) for pod in pods))
    if measured is not None:
        mirror.apply(ClusterEvent("Add", measured))
    return mirror


def score_of(plugin: Any, mirror: ClusterMirror, pod: PodBuilder, name: str = "n1") -> int:  # noqa: ANN401 - any score
    """Score one node for a pod."""
    batch = mirror.batch([name])
    status, state = plugin.pre_score(mirror, pod_of(pod), batch)
    assert status == SUCCESS
    (found,) = plugin.normalize(plugin.score(state, batch)).tolist()
    assert isinstance(found, int)
    return found


STATE: Final = UnmeasuredBy(PredictedCpu(1.5, 1000))
NEW: Final = make_pod("new").uid("new").image("a").limits(cpu="400m").on("n1")
"""It has not started."""
LATER: Final = "2026-01-01T00:02:00Z"


def measured(*pods: PodBuilder) -> tuple[ClusterMirror, UnmeasuredUsage]:
    mirror = mirror_of(FOUR_CORES, *pods)
    mirror.apply(ClusterEvent("Add", metrics()))
    return mirror, mirror.derived(STATE)


def millicores(mirror: ClusterMirror, name: str = "n1") -> int:
    """Return what is kept for a node, which has to be what a new state counts."""
    batch = mirror.batch([name])
    retained = int(mirror.derived(STATE).of(0, batch)[0])
    assert retained == int(UnmeasuredUsage(mirror, STATE.prediction).of(0, batch)[0])
    return retained


def test_a_pod_counts_until_a_measurement_covers_its_start() -> None:
    mirror, state = measured(NEW)
    assert (millicores(mirror), state.pods(mirror.nodes.slots["n1"])) == (400, 1)
    tell(mirror, "Update", NEW.started(AFTER))
    assert millicores(mirror) == 400
    mirror.apply(ClusterEvent("Update", replace(metrics(), covers_pods_until=LATER)))
    assert (millicores(mirror), state.pods(mirror.nodes.slots["n1"])) == (0, 0)


def test_a_pod_that_has_not_started_counts_in_spite_of_later_measurements() -> None:
    mirror, _ = measured(NEW)
    mirror.apply(ClusterEvent("Update", replace(metrics(), covers_pods_until=LATER)))
    assert millicores(mirror) == 400


def test_no_sum_overflows() -> None:
    mirror, _ = measured(*(NEW.uid(f"u{number}").limits(cpu="9P") for number in range(20)))
    assert millicores(mirror) == 20 * 2**50


def test_states_of_the_same_prediction_are_one() -> None:
    mirror, state = measured()
    assert mirror.derived(UnmeasuredBy(PredictedCpu(1.5, 1000))) is state
    assert mirror.derived(UnmeasuredBy(PredictedCpu(1.5, 999))) is not state


@pytest.mark.parametrize("nodes", [200])
def test_the_sums_grow_with_the_nodes(nodes: int) -> None:
    mirror, _ = measured(NEW)
    for number in range(nodes):
        name = f"more-{number}"
        tell(mirror, "Add", make_node(name), NEW.uid(name).on(name))
        mirror.apply(ClusterEvent("Add", replace(metrics(), name=name)))
    assert [millicores(mirror), millicores(mirror, f"more-{nodes - 1}")] == [400, 400]


# TargetLoadPacking: scores computed by hand from the formula of KEP-61, with the arithmetic beside them.
#
# score(u) = (100 - t) * u / t + t up to the target t, t * (100 - u) / (100 - t) up to 100 %, and 0 beyond, where u is
# the predicted utilisation: (usage + predicted usage of the pod + that of pods not measured yet) / capacity.

NOTHING: Final = make_pod("p")
"""A pod without containers: it is predicted to use nothing."""
LIMITED: Final = make_pod("p").image("a").limits(cpu="400m")


@pytest.mark.parametrize(
    ("usage", "pod", "expected"),
    [
        # Of 4000m, t = 40.
        pytest.param(0, NOTHING, 40, id="idle"),  # 60 * 0 / 40 + 40 = 40
        pytest.param(1600, NOTHING, 100, id="at-the-target"),  # u = 40: 60 * 40 / 40 + 40 = 100
        pytest.param(2825, NOTHING, 20, id="a-fraction"),  # u = 70.625: 40 * 29.375 / 60 = 19.58, rounded
        pytest.param(4000, NOTHING, 0, id="full"),  # u = 100: 40 * 0 / 60 = 0
        pytest.param(9999, NOTHING, 0, id="more-than-there-is"),
        pytest.param(34, NOTHING, 41, id="rounds-up"),  # u = 0.85: 60 * 0.85 / 40 + 40 = 41.275; 14m would be 40.525
        pytest.param(14, NOTHING, 41, id="rounds-up-above-a-half"),  # u = 0.35: 40.525
    ],
)
def test_the_score_follows_from_the_predicted_utilisation(usage: int, pod: PodBuilder, expected: int) -> None:
    mirror = measured_mirror(FOUR_CORES, metrics(Usage(usage)))
    assert expected == score_of(TargetLoadPacking(), mirror, pod)


@pytest.mark.parametrize(
    ("pod", "arguments", "expected"),
    [
        # On an idle node of 4000m: 60 * u / 40 + 40.
        pytest.param(make_pod("p").image("a").requests(cpu="400m"), {}, 63, id="request"),  # 600m, u = 15: 62.5
        pytest.param(make_pod("p").image("a"), {}, 78, id="neither"),  # 1000m, u = 25: 77.5
        pytest.param(
            make_pod("p").image("a").limits(cpu="200m").image("b").requests(cpu="200m").image("c"),
            {},
            96,  # 200 + 300 + 1000 = 1500m, u = 37.5: 96.25
            id="each-container-by-itself",
        ),
        pytest.param(
            make_pod("p").image("a").requests(cpu="1m"),
            {"default_requests_multiplier": 1.5, "default_request": 0},
            40,  # 1.5 rounds to 2m, u = 0.05: 40.075
            id="a-request-is-rounded",
        ),
    ],
)
def test_the_usage_of_a_pod_is_predicted_from_its_containers(
    pod: PodBuilder, arguments: dict[str, Any], expected: int
) -> None:
    mirror = measured_mirror(FOUR_CORES, metrics(Usage(0)))
    assert expected == score_of(TargetLoadPacking(**arguments), mirror, pod)


def test_the_overhead_of_a_pod_counts() -> None:
    mirror = measured_mirror(FOUR_CORES, metrics(Usage(0)))
    pod = make_pod("p").image("a").limits(cpu="400m")
    with_overhead = PodBuilder("p", containers=pod.containers, spec={"overhead": {"cpu": "400m"}})
    assert score_of(TargetLoadPacking(), mirror, pod) == 55  # u = 10: 60 * 10 / 40 + 40
    assert score_of(TargetLoadPacking(), mirror, with_overhead) == 70  # u = 20


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        pytest.param("", 55, id="has-not-started"),  # u = 400 / 40 = 10: 55
        pytest.param(AFTER, 55, id="started-after-what-is-covered"),
        pytest.param(COVERED, 40, id="started-just-in-time"),  # it is in the measured 0
        pytest.param(BEFORE, 40, id="started-long-before"),
    ],
)
def test_a_pod_that_is_not_measured_yet_counts_as_predicted(start: str, expected: int) -> None:
    running = LIMITED.uid("there").started(start) if start else LIMITED.uid("there")
    mirror = measured_mirror(FOUR_CORES, metrics(Usage(0)), running)
    assert expected == score_of(TargetLoadPacking(), mirror, NOTHING)


def test_usage_is_a_share_of_the_capacity_not_of_what_is_allocatable() -> None:
    node = make_node("n1").allocatable(cpu="2", memory="8Gi").capacity(cpu="4")
    assert score_of(TargetLoadPacking(), measured_mirror(node, metrics(Usage(800))), NOTHING) == 70  # u = 20


@pytest.mark.parametrize(
    "measured",
    [
        pytest.param(None, id="not-measured"),
        pytest.param(metrics(Usage(1600), too_old=True), id="measured-too-long-ago"),
        pytest.param(metrics(memory=Usage(GIB)), id="without-cpu"),
    ],
)
def test_packing_gives_the_least_without_a_usable_measurement(measured: Any) -> None:  # noqa: ANN401 - drawn above
    assert score_of(TargetLoadPacking(), measured_mirror(FOUR_CORES, measured), NOTHING) == 0


def test_a_node_without_cpu_is_idle_as_in_the_original() -> None:
    assert score_of(TargetLoadPacking(), measured_mirror(make_node("n1"), metrics(Usage(5))), NOTHING) == 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"target_utilization": 0}, "targetUtilization: must be 1..99, got 0", id="target-0"),
        pytest.param({"target_utilization": 100}, "targetUtilization: must be 1..99, got 100", id="target-100"),
        pytest.param(
            {"default_requests_multiplier": float("nan")},
            "defaultRequestsMultiplier: must be 0..1000, got nan",
            id="multiplier-nan",
        ),
        pytest.param({"default_request": -1}, "defaultRequests.cpu: must not be negative, got -1m", id="negative"),
    ],
)
def test_arguments_of_packing_out_of_range_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is compared
        TargetLoadPacking(**arguments)
    assert message == str(caught.value)


# LoadVariationRiskBalancing: scores computed by hand from the formula of its README, with the arithmetic beside them.
#
# mu = (average + requests) / allocatable and sigma = deviation / capacity, each at most 1; risk = (mu + min(margin *
# sigma^(1 / sensitivity), 1)) / 2; score = 100 * (1 - risk); of cpu and memory the lower one.

ONE_CORE: Final = make_pod("p").image("a").requests(cpu="1")
IDLE: Final = Usage(0, 0)


@pytest.mark.parametrize(
    ("measured", "pod", "expected"),
    [
        # Of 4000m and 8 GiB, all of it allocatable.
        pytest.param(metrics(IDLE, IDLE), NOTHING, 100, id="idle"),  # risk 0
        # mu = 0.25, sigma = 0.1: risk = 0.175, 82.5; half away from zero
        pytest.param(metrics(Usage(1000, 400), IDLE), NOTHING, 83, id="average-and-deviation"),
        # cpu: mu = 0.5, 75; memory: mu = 6 / 8, sigma = 1 / 8: risk = 0.4375, 56.25
        pytest.param(metrics(Usage(2000), Usage(6 * GIB, GIB)), NOTHING, 56, id="memory-is-the-greater-risk"),
        pytest.param(metrics(memory=Usage(2 * GIB)), NOTHING, 88, id="memory-alone-is-measured"),  # mu = 0.25: 87.5
        pytest.param(metrics(Usage(4000, 4000), IDLE), NOTHING, 0, id="full-and-unsteady"),  # mu = sigma = 1
        pytest.param(metrics(Usage(9000, 9000), IDLE), ONE_CORE, 0, id="more-than-there-is-counts-as-all"),
    ],
)
def test_the_score_is_100_less_the_risk(measured: NodeMetrics, pod: PodBuilder, expected: int) -> None:
    assert expected == score_of(LoadVariationRiskBalancing(), measured_mirror(FOUR_CORES, measured), pod)


@pytest.mark.parametrize(
    ("margin", "sensitivity", "expected"),
    [
        # mu = 0.25, sigma = 0.01
        pytest.param(1.0, 1.0, 87, id="default"),  # risk = 0.13
        pytest.param(1.0, 2.0, 83, id="square-root"),  # sigma 0.1: risk = 0.175, 82.5
        pytest.param(200.0, 1.0, 38, id="at-most-1"),  # 2 counts as 1: risk = 0.625, 37.5
        pytest.param(1.0, 0.0, 88, id="sensitivity-0"),  # sigma^inf = 0: risk = 0.125
    ],
)
def test_the_deviation_counts_by_margin_and_sensitivity(margin: float, sensitivity: float, expected: int) -> None:
    plugin = LoadVariationRiskBalancing(safe_variance_margin=margin, safe_variance_sensitivity=sensitivity)
    mirror = measured_mirror(FOUR_CORES, metrics(Usage(1000, 40), IDLE))
    assert expected == score_of(plugin, mirror, NOTHING)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        pytest.param(AFTER, 88, id="not-measured-yet"),  # mu = 1000 / 4000: risk = 0.125, 87.5
        pytest.param(BEFORE, 100, id="measured"),
    ],
)
def test_the_requests_of_pods_that_are_not_measured_yet_count(start: str, expected: int) -> None:
    mirror = measured_mirror(FOUR_CORES, metrics(IDLE, IDLE), ONE_CORE.uid("there").started(start))
    assert expected == score_of(LoadVariationRiskBalancing(), mirror, NOTHING)


def test_usage_is_a_share_of_the_capacity_and_requests_one_of_what_is_allocatable() -> None:
    node = make_node("n1").allocatable(cpu="2", memory="8Gi").capacity(cpu="4", memory="8Gi")
    mirror = measured_mirror(node, metrics(Usage(800, 400), IDLE))
    # mu = 800 / 4000 + 1000 / 2000 = 0.7, sigma = 400 / 4000: risk = 0.4
    assert score_of(LoadVariationRiskBalancing(), mirror, ONE_CORE) == 60


@pytest.mark.parametrize(
    "measured",
    [
        pytest.param(None, id="not-measured"),
        pytest.param(metrics(IDLE, IDLE, too_old=True), id="measured-too-long-ago"),
        pytest.param(metrics(), id="neither-resource"),
    ],
)
def test_a_node_without_a_usable_measurement_gets_the_least(measured: NodeMetrics | None) -> None:
    assert score_of(LoadVariationRiskBalancing(), measured_mirror(FOUR_CORES, measured), NOTHING) == 0


def test_a_node_that_has_none_of_a_measured_resource_gets_the_least() -> None:
    mirror = measured_mirror(make_node("n1").allocatable(cpu="4"), metrics(IDLE, Usage(MIB)))
    assert score_of(LoadVariationRiskBalancing(), mirror, NOTHING) == 0


@pytest.mark.parametrize("value", [-0.1, nan, inf])
@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("safe_variance_margin", "safeVarianceMargin"),
        ("safe_variance_sensitivity", "safeVarianceSensitivity"),
    ],
)
def test_arguments_of_balancing_out_of_range_are_refused(name: str, field: str, value: float) -> None:
    arguments: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=f"^{field}: must be a number from 0, got {value}$"):
        LoadVariationRiskBalancing(**arguments)
