"""Which pods occupy a node."""

import pytest

from core.objects.pod import Pod
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


def test_the_full_name_is_what_people_write() -> None:
    assert pod_of(make_pod("web-1").in_namespace("shop").uid("u")).full_name == "shop/web-1"


def test_a_pod_without_more_than_its_identity_asks_nothing_and_is_nowhere() -> None:
    pod = Pod("u", "default", "p")
    assert (pod.labels, pod.node_name, pod.terminal, pod.affinity.parse_error) == ({}, "", False, "")
