"""TargetLoadPacking: scores computed by hand from the formula of KEP-61, with the arithmetic beside them.

score(u) = (100 - t) * u / t + t up to the target t, t * (100 - u) / (100 - t) up to 100 %, and 0 beyond, where u is
the predicted utilisation: (usage + predicted usage of the pod + that of pods not measured yet) / capacity.
"""

from typing import Any, Final

import pytest

from core.objects.node import Usage
from core.plugins.load.targetloadpacking import TargetLoadPacking
from tests.builders import PodBuilder, make_node, make_pod
from tests.core.decoded import mirror_of
from tests.core.plugins.load.values import AFTER, BEFORE, COVERED, FOUR_CORES, GIB, measured_mirror, metrics, score_of

NOTHING: Final = make_pod("p")
"""A pod without containers: it is predicted to use nothing."""
LIMITED: Final = make_pod("p").image("a").limits(cpu="400m")


@pytest.mark.parametrize(
    ("usage", "pod", "expected"),
    [
        # Of 4000m, t = 40.
        pytest.param(0, NOTHING, 40, id="idle"),  # 60 * 0 / 40 + 40 = 40
        pytest.param(800, NOTHING, 70, id="half-of-the-target"),  # u = 20: 60 * 20 / 40 + 40 = 70
        pytest.param(1600, NOTHING, 100, id="at-the-target"),  # u = 40: 60 * 40 / 40 + 40 = 100
        pytest.param(800, LIMITED, 85, id="with-the-pod"),  # u = (800 + 400) / 40 = 30: 60 * 30 / 40 + 40 = 85
        pytest.param(1640, NOTHING, 39, id="just-beyond"),  # u = 41: 40 * 59 / 60 = 39.33
        pytest.param(2800, NOTHING, 20, id="half-way-down"),  # u = 70: 40 * 30 / 60 = 20
        pytest.param(2825, NOTHING, 20, id="a-fraction"),  # u = 70.625: 40 * 29.375 / 60 = 19.58, rounded
        pytest.param(4000, NOTHING, 0, id="full"),  # u = 100: 40 * 0 / 60 = 0
        pytest.param(3900, LIMITED, 0, id="beyond-full-with-the-pod"),  # u = 107.5
        pytest.param(9999, NOTHING, 0, id="more-than-there-is"),
        pytest.param(1, NOTHING, 40, id="rounds-down"),  # u = 0.025: 60 * 0.025 / 40 + 40 = 40.0375
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
        pytest.param(make_pod("p").image("a").limits(cpu="800m").requests(cpu="200m"), {}, 70, id="limit"),  # u = 20
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
        pytest.param(make_pod("p").image("a").requests(cpu="400m"), {"default_requests_multiplier": 2.0}, 70, id="x2"),
        pytest.param(make_pod("p").image("a"), {"default_request": 400}, 55, id="other-default"),  # u = 10
        pytest.param(
            make_pod("p").image("a").limits(cpu="800m"),
            {"target_utilization": 80},
            85,  # 20 * 20 / 80 + 80 = 85
            id="other-target",
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


def test_a_node_that_does_not_say_its_capacity_has_what_is_allocatable() -> None:
    node = make_node("n1").allocatable(cpu="4")
    assert score_of(TargetLoadPacking(), measured_mirror(node, metrics(Usage(800))), NOTHING) == 70


@pytest.mark.parametrize(
    "measured",
    [
        pytest.param(None, id="not-measured"),
        pytest.param(metrics(Usage(1600), too_old=True), id="measured-too-long-ago"),
        pytest.param(metrics(memory=Usage(GIB)), id="without-cpu"),
    ],
)
def test_a_node_without_a_usable_measurement_gets_the_least(measured: Any) -> None:  # noqa: ANN401 - drawn above
    assert score_of(TargetLoadPacking(), measured_mirror(FOUR_CORES, measured), NOTHING) == 0


def test_a_node_that_only_the_question_knows_gets_the_least() -> None:
    assert score_of(TargetLoadPacking(), mirror_of(), NOTHING, "stranger") == 0


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
def test_arguments_out_of_range_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is compared
        TargetLoadPacking(**arguments)
    assert message == str(caught.value)
