"""Which pods occupy a node, and what their images are called."""

import pytest

from core.objects.pod import Pod, normalized_image_name
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
