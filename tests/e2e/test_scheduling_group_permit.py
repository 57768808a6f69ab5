"""Kubernetes 1.35: the members of a gang wait for each other in Permit. Their places are theirs meanwhile."""

from collections.abc import Iterator

import pytest

from tests.e2e.api import NODES
from tests.e2e.cluster import PODS, Cluster
from tests.e2e.deciding import assert_followed
from tests.e2e.grouping import (
    Grouping,
    broken_rules,
    members,
    names,
    places,
    rivals,
    served_groups,
    wait_until_members_are_bound,
    wait_until_nominated,
    wait_until_refused,
)
from tests.e2e.groups import has_permit

pytestmark = pytest.mark.skipif(not has_permit(), reason="gangs wait in Permit in 1.35 alone")


@pytest.fixture(autouse=True)
def _groups(cluster: Cluster) -> Iterator[None]:
    with served_groups(cluster):
        yield


def test_members_wait_in_permit_and_kindred_is_killed_meanwhile(cluster: Cluster) -> None:
    cluster.api.create_all(NODES, places(3))
    grouping = Grouping(cluster)
    gang = members(4)
    grouping.create_members("gang", 4, gang)
    nominated = wait_until_nominated(cluster, 3)
    cluster.create_pods(rivals(2))
    wait_until_refused(cluster, rivals(2))
    grouping.restart_kindred()
    cluster.create_pods(rivals(2, 2))
    wait_until_refused(cluster, rivals(2, 2))
    for name in names(rivals(4)):  # they would want the new node, too
        cluster.api.delete(f"{PODS}/{name}")
    cluster.api.create(NODES, places(4)[3])
    wait_until_members_are_bound(cluster, "gang", 4)
    found = {each["metadata"]["name"]: each["spec"]["nodeName"] for each in cluster.pods()}
    assert found.items() >= nominated.items()
    assert broken_rules(cluster) == []
    assert_followed(grouping.kindred)
