"""LoadVariationRiskBalancing: scores computed by hand from the formula of its README, with the arithmetic beside them.

mu = (average + requests) / allocatable and sigma = deviation / capacity, each at most 1; risk = (mu + min(margin *
sigma^(1 / sensitivity), 1)) / 2; score = 100 * (1 - risk); of cpu and memory the lower one.
"""

from math import inf, nan
from typing import Any, Final

import pytest

from core.objects.node import NodeMetrics, Usage
from core.plugins.load.loadvariationriskbalancing import LoadVariationRiskBalancing
from tests.builders import PodBuilder, make_node, make_pod
from tests.core.plugins.load.values import AFTER, BEFORE, FOUR_CORES, GIB, MIB, measured_mirror, metrics, score_of

NOTHING: Final = make_pod("p")
ONE_CORE: Final = make_pod("p").image("a").requests(cpu="1")
IDLE: Final = Usage(0, 0)


@pytest.mark.parametrize(
    ("measured", "pod", "expected"),
    [
        # Of 4000m and 8 GiB, all of it allocatable.
        pytest.param(metrics(IDLE, IDLE), NOTHING, 100, id="idle"),  # risk 0
        # mu = 0.25, sigma = 0.1: risk = 0.175, 82.5; half away from zero
        pytest.param(metrics(Usage(1000, 400), IDLE), NOTHING, 83, id="average-and-deviation"),
        pytest.param(metrics(Usage(1000, 400), IDLE), ONE_CORE, 70, id="with-the-pod"),  # mu = 0.5: risk = 0.3
        pytest.param(metrics(Usage(2000), IDLE), NOTHING, 75, id="one-sample-has-no-deviation"),  # mu = 0.5: 0.25
        # cpu: mu = 0.5, 75; memory: mu = 6 / 8, sigma = 1 / 8: risk = 0.4375, 56.25
        pytest.param(metrics(Usage(2000), Usage(6 * GIB, GIB)), NOTHING, 56, id="memory-is-the-greater-risk"),
        pytest.param(metrics(Usage(2000)), NOTHING, 75, id="cpu-alone-is-measured"),
        pytest.param(metrics(memory=Usage(2 * GIB)), NOTHING, 88, id="memory-alone-is-measured"),  # mu = 0.25: 87.5
        pytest.param(metrics(Usage(4000, 4000), IDLE), NOTHING, 0, id="full-and-unsteady"),  # mu = sigma = 1
        pytest.param(metrics(Usage(9000, 9000), IDLE), ONE_CORE, 0, id="more-than-there-is-counts-as-all"),
        pytest.param(metrics(Usage(4000), IDLE), NOTHING, 50, id="full-and-steady"),  # mu = 1: risk = 0.5
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
        pytest.param(2.0, 2.0, 78, id="twice-the-square-root"),  # sigma 0.2: risk = 0.225, 77.5
        pytest.param(1.0, 0.5, 87, id="square"),  # sigma 0.0001: risk = 0.12505, 87.495
        pytest.param(0.0, 1.0, 88, id="no-margin"),  # risk = 0.125, 87.5
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
def test_arguments_out_of_range_are_refused(name: str, field: str, value: float) -> None:
    arguments: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=f"^{field}: must be a number from 0, got {value}$"):
        LoadVariationRiskBalancing(**arguments)
