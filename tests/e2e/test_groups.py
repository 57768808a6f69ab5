"""The judge of gangs finds those of which a part is there, and no others."""

from typing import Any

import pytest

from tests.e2e.api import Manifest
from tests.e2e.groups import bound_members, gangs_in_part
from tests.e2e.shapes import on, pod


def group(name: str, **policy: Any) -> Manifest:  # noqa: ANN401  # JSON
    return {"metadata": {"name": name}, "spec": {"schedulingPolicy": policy}}


def workload(name: str, **policy: Any) -> Manifest:  # noqa: ANN401  # JSON
    return {"metadata": {"name": name}, "spec": {"podGroups": [{"name": "part", "policy": policy}]}}


def in_group(name: str, group: str) -> Manifest:
    return pod(name, schedulingGroup={"podGroupName": group})


def of_workload(name: str, workload: str) -> Manifest:
    return pod(name, workloadRef={"name": workload, "podGroup": "part"})


PODS = [
    on(in_group("a-0", "a"), "node-0000"),
    on(in_group("a-1", "a"), "node-0001"),
    in_group("a-2", "a"),
    on(of_workload("b-0", "b"), "node-0000"),
    on(pod("other"), "node-0000"),
]


@pytest.mark.parametrize(
    ("group", "found"),
    [
        (group("a", gang={"minCount": 3}), ["2 members of a have a node, which needs 3"]),
        (group("a", gang={"minCount": 2}), []),
        (group("a", basic={}), []),
        (group("none", gang={"minCount": 3}), []),
        (workload("b", gang={"minCount": 2}), ["1 members of b have a node, which needs 2"]),
        (workload("b", basic={}), []),
    ],
)
def test_a_gang_is_there_in_part_with_fewer_members_than_its_minimum(group: Manifest, found: list[str]) -> None:
    assert [*gangs_in_part([group], PODS)] == found


def test_members_with_a_node_are_counted_by_group() -> None:
    assert bound_members(PODS) == {"a": 2, "b": 1}
