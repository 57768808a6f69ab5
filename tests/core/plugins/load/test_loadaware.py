"""LoadAware: verdicts and scores computed by hand from Koordinator's formulae, with the arithmetic beside them.

A resource exceeds its threshold if round(100 * used / allocatable) does. It scores 100 * (allocatable - used) /
allocatable, rounded down, 0 beyond; the score is the weighted mean, rounded down. What a pod uses is estimated as a
factor (cpu 85 %, memory 70 %) of the larger one of request and limit, at most the limit; 250m and 200 MiB without
either.
"""

from typing import Any, Final

import pytest

from core.framework.interface import SKIP, SUCCESS, Status
from core.objects.node import NodeMetrics, Usage
from core.plugins.load.loadaware import EXCEEDED, EXPIRED, EstimatedUsage, LoadAware
from tests.builders import PodBuilder, make_node, make_pod
from tests.core.decoded import pod_of
from tests.core.plugins.load.test_load import AFTER, BEFORE, GIB, MIB, measured_mirror, metrics, score_of
from tests.core.plugins.values import filtered

NODE: Final = make_node("n1").allocatable(cpu="4", memory="8Gi").capacity(cpu="5", memory="9Gi")
IDLE: Final = Usage(0)
CPU, MEMORY = EXCEEDED
TINY: Final = make_pod("p").image("a").limits(cpu="1m", memory="1")
"""A pod that is estimated to use 1m and 1 byte: 0.85 and 0.7, rounded."""
ONE: Final = make_pod("p").image("a").requests(cpu="1", memory="1Gi")
"""850m and 0.7 GiB."""


def verdict(plugin: LoadAware, measured: NodeMetrics | None, pod: PodBuilder = TINY, *there: PodBuilder) -> Status:
    (found,) = filtered(plugin, measured_mirror(NODE, measured, *there), pod_of(pod), "n1")
    return found


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(make_pod("p").image("a"), (250, 200 * MIB), id="nothing-stated"),
        pytest.param(ONE, (850, 751619277), id="requests"),  # 0.7 * 2^30 = 751619276.8
        pytest.param(
            make_pod("p").image("a").requests(cpu="1").limits(cpu="2", memory="1000"),
            (1700, 700),
            id="limits-are-larger",  # 0.85 * 2000, 0.7 * 1000
        ),
        pytest.param(
            make_pod("p").image("a").requests(cpu="1").image("b").requests(cpu="1").limits(cpu="1"),
            (1000, 200 * MIB),
            id="at-most-the-limit-of-the-pod",  # 0.85 * 2000 = 1700, and the containers with a limit have 1000
        ),
    ],
)
def test_the_usage_of_a_pod_is_estimated_from_requests_and_limits(pod: PodBuilder, expected: tuple[int, int]) -> None:
    assert expected == EstimatedUsage((85, 70))(pod_of(pod))


@pytest.mark.parametrize(
    ("measured", "pod", "expected"),
    [
        # Of 4000m and 8 GiB: at most 65 and 95 percent.
        pytest.param(metrics(Usage(2619), IDLE), TINY, CPU, id="rounds-up"),  # 2620 / 40 = 65.5 rounds to 66
        pytest.param(metrics(Usage(1800), IDLE), ONE, CPU, id="beyond-with-the-pod"),  # 2650 / 40 = 66.25
        pytest.param(metrics(IDLE, Usage(8 * GIB)), TINY, MEMORY, id="memory-beyond"),  # 100
        pytest.param(metrics(Usage(4000), Usage(8 * GIB)), TINY, CPU, id="cpu-is-named-first"),
        pytest.param(None, TINY, SUCCESS, id="not-measured"),
        pytest.param(metrics(Usage(4000), too_old=True), TINY, SUCCESS, id="measured-too-long-ago"),
    ],
)
def test_a_node_is_refused_that_would_use_more_than_a_threshold(
    measured: NodeMetrics | None, pod: PodBuilder, expected: Status
) -> None:
    assert expected == verdict(LoadAware(), measured, pod)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        pytest.param(AFTER, CPU, id="not-measured-yet"),  # 1800 + 850 + 1 = 2651
        pytest.param(BEFORE, SUCCESS, id="measured"),  # 1801
    ],
)
def test_pods_that_are_not_measured_yet_count_as_estimated(start: str, expected: Status) -> None:
    there = ONE.uid("there").started(start)
    assert expected == verdict(LoadAware(), metrics(Usage(1800), IDLE), TINY, there)


def test_a_node_with_a_measurement_that_is_too_old_is_refused_where_that_is_wanted() -> None:
    plugin = LoadAware(enable_schedule_when_node_metrics_expired=False)
    assert verdict(plugin, metrics(IDLE, IDLE, too_old=True)) == EXPIRED
    assert verdict(plugin, metrics(IDLE, IDLE)) == SUCCESS
    assert verdict(plugin, None) == SUCCESS, "a node that is not measured is passed over, as in the original"


@pytest.mark.parametrize(
    ("plugin", "pod"),
    [
        pytest.param(LoadAware(), TINY.owned_by("DaemonSet", "d", "u"), id="pod-of-a-daemon-set"),
        pytest.param(LoadAware(usage_thresholds={"cpu": 0}), TINY, id="no-thresholds"),
    ],
)
def test_nothing_is_refused(plugin: LoadAware, pod: PodBuilder) -> None:
    assert plugin.pre_filter(measured_mirror(NODE, metrics(Usage(4000))), pod_of(pod)) == (SKIP, None)


def test_a_resource_without_a_threshold_refuses_no_node() -> None:
    plugin = LoadAware(usage_thresholds={"memory": 50})
    assert verdict(plugin, metrics(Usage(4000), Usage(4 * GIB))) == SUCCESS  # (4 GiB + 1) / 8 GiB rounds to 50
    assert verdict(plugin, metrics(IDLE, Usage(5 * GIB))) == MEMORY  # 62.5


@pytest.mark.parametrize(
    ("measured", "pod", "arguments", "expected"),
    [
        # cpu 100 * 3999 / 4000 = 99.975, memory 100 less a byte of 8 GiB: 99 and 99
        pytest.param(metrics(IDLE, IDLE), TINY, {}, 99, id="idle"),
        # cpu 100 * (4000 - 850) / 4000 = 78.75, memory 100 * (8 - 0.7) / 8 = 91.25: (78 + 91) / 2 = 84.5
        pytest.param(metrics(IDLE, IDLE), ONE, {}, 84, id="with-the-pod"),
        # (3 * 78 + 91) / 4 = 81.25
        pytest.param(metrics(IDLE, IDLE), ONE, {"resource_weights": {"cpu": 3, "memory": 1}}, 81, id="weights"),
        pytest.param(metrics(IDLE, IDLE), ONE, {"resource_weights": {"memory": 1}}, 91, id="memory-alone"),
        # (78 + 91 + 2 * 78) / 4 = 81.25
        pytest.param(
            metrics(IDLE, IDLE),
            ONE,
            {"dominant_resource_weight": 2, "resource_weights": {"cpu": 1, "memory": 1}},
            81,
            id="the-worst-weighs-more",
        ),
        pytest.param(
            metrics(IDLE, IDLE),
            ONE,
            {"dominant_resource_weight": 1},
            78,
            id="the-worst-alone",
        ),
        # memory 0, cpu 99: 49.5
        pytest.param(metrics(IDLE), TINY, {}, 49, id="memory-is-not-measured-and-scores-0"),
        # cpu 100 * (4000 - 500) / 4000 = 87.5, memory 91: 89
        pytest.param(metrics(IDLE, IDLE), ONE, {"estimated_scaling_factors": {"cpu": 50}}, 89, id="other-factor"),
        pytest.param(None, TINY, {}, 0, id="not-measured"),
        pytest.param(metrics(IDLE, IDLE, too_old=True), TINY, {}, 0, id="measured-too-long-ago"),
        pytest.param(None, TINY, {"dominant_resource_weight": 9}, 0, id="not-measured-and-the-worst-weighs"),
    ],
)
def test_the_score_is_the_weighted_share_that_is_free(
    measured: NodeMetrics | None, pod: PodBuilder, arguments: dict[str, Any], expected: int
) -> None:
    assert expected == score_of(LoadAware(**arguments), measured_mirror(NODE, measured), pod)


def test_without_any_weight_nothing_is_scored() -> None:
    plugin = LoadAware(resource_weights={"cpu": 0})
    mirror = measured_mirror(NODE, metrics(IDLE, IDLE))
    assert plugin.pre_score(mirror, pod_of(TINY), mirror.batch(["n1"])) == (SKIP, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            {"usage_thresholds": {"disk": 1}},
            "usageThresholds.disk: is not measured; there are cpu, memory",
            id="unknown-resource",
        ),
        pytest.param({"usage_thresholds": {"cpu": 101}}, "usageThresholds.cpu: must be 0..100, got 101", id="beyond"),
        pytest.param({"resource_weights": {"cpu": -1}}, "resourceWeights.cpu: must be 0..100, got -1", id="weight"),
        pytest.param({"dominant_resource_weight": -1}, "dominantResourceWeight: must be 0..100, got -1", id="dominant"),
        pytest.param(
            {"estimated_scaling_factors": {"cpu": 0}},
            "estimatedScalingFactors.cpu: must be 1..100, got 0",
            id="factor",
        ),
    ],
)
def test_arguments_out_of_range_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is compared
        LoadAware(**arguments)
    assert message == str(caught.value)
