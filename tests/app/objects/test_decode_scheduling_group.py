"""PodGroups of scheduling.k8s.io, in the form of each version."""

import json
from typing import Any

import pytest

from app.objects.decode_groups import decode_scheduling_group
from core.objects.groups import SchedulingGroup


def decoded(spec: dict[str, Any]) -> SchedulingGroup:
    return decode_scheduling_group(json.dumps({"metadata": {"name": "g", "namespace": "ns"}, "spec": spec}).encode())


@pytest.mark.parametrize(
    ("policy", "minimum"),
    [
        pytest.param({"gang": {"minCount": 3}}, 3, id="gang"),
        pytest.param({"basic": {}}, 1, id="basic"),
        pytest.param({"gang": None, "basic": {}}, 1, id="null"),
        pytest.param({"gang": {"minCount": 0}}, 1, id="which-no-api-server-has"),
    ],
)
def test_the_minimum_is_that_of_a_gang_and_else_one(policy: dict[str, Any], minimum: int) -> None:
    group = decoded({"schedulingPolicy": policy})
    assert (group.minimum, group.full_name) == (minimum, "ns/g")


@pytest.mark.parametrize(
    ("mode", "whole"),
    [
        pytest.param("PodGroup", True, id="v1alpha2"),
        pytest.param("Pod", False, id="v1alpha2-each"),
        pytest.param({"all": {}}, True, id="v1beta1"),
        pytest.param({"single": {}}, False, id="v1beta1-each"),
        pytest.param(None, False, id="absent"),
    ],
)
def test_whether_members_are_disrupted_together(mode: object, whole: bool) -> None:  # noqa: FBT001 - a column of the table
    assert decoded({"disruptionMode": mode}).disrupted_whole is whole


@pytest.mark.parametrize(
    ("spec", "unsupported"),
    [
        pytest.param({}, "", id="neither"),
        pytest.param({"schedulingConstraints": {"topology": []}}, "", id="no-constraint"),
        pytest.param({"schedulingConstraints": {"topology": [{"key": "r"}]}}, "spec.schedulingConstraints", id="rack"),
        pytest.param({"parentCompositePodGroupName": "p"}, "spec.parentCompositePodGroupName", id="a-parent"),
    ],
)
def test_fields_with_which_kube_scheduler_tries_placements(spec: dict[str, Any], unsupported: str) -> None:
    assert decoded(spec).unsupported == unsupported
