"""What is encoded decodes to equal values: of the pools of random clusters, of full objects, of all golden cases."""

from pathlib import Path
from typing import Final

import pytest
from hypothesis import given

from app.explain.conformance_case.case import ENCODERS
from core.events import Kind
from core.objects.node import Node
from core.objects.node_metrics import NodeMetrics
from core.objects.owner import ReplicaSet
from core.objects.pod import Pod
from core.objects.service import Service
from tests.app.explain.conformance_case.encoded import (
    GOLDEN_MEMBERS,
    again,
    decoded,
    pod_of,
    whole,
)
from tests.app.objects.full_objects import FULL_OBJECTS
from tests.conformance.golden_files import read
from tests.properties import strategies
from tests.properties.scheduling_pool import NAMESPACE_STATES, NODES, OTHERS, PODS, placed

DATA: Final = Path("tests/conformance/data")


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.__name__) for kind in ENCODERS])
def test_an_object_with_every_member_that_is_read_comes_back(kind: Kind) -> None:
    found = decoded(kind, FULL_OBJECTS[kind])
    assert again(found) == found


def test_all_objects_of_the_pools_of_random_clusters_come_back() -> None:
    pods = [placed(template, (f"p{number}", f"u{number}"), "n0") for number, template in enumerate(PODS)]
    others = [each for each in OTHERS if not isinstance(each, Service | ReplicaSet | NodeMetrics)]
    for found in (*pods, *NODES, *others, *NAMESPACE_STATES):
        assert again(found) == found


@given(strategies.clusters())
def test_random_pods_and_nodes_come_back_but_for_what_is_broken(cluster: strategies.Cluster) -> None:
    for found in (*(decoded(Node, each) for each in cluster.nodes), *(decoded(Pod, each) for each in cluster.pods)):
        assert again(whole(found)) == whole(found)


@pytest.mark.parametrize(
    "file",
    [
        "cases.jsonl.gz",
        "volumes.jsonl.gz",
        "preempt.jsonl.gz",
        "v1.37/nominated.jsonl.gz",
        "v1.37/cases.jsonl.gz",
        "v1.37/volumes.jsonl.gz",
    ],
)
def test_all_objects_of_all_golden_cases_come_back(file: str) -> None:
    objects = 0
    for line in read(DATA / file):
        for member, kind in GOLDEN_MEMBERS.items():
            for each in line.content.get(member, ()):
                found = decoded(kind, each)
                assert again(whole(found)) == whole(found), line.content["name"]
                objects += 1
        pod = pod_of(line.content["pod"])
        if not pod.affinity.errors:
            assert again(pod) == pod, line.content["name"]
    assert objects > 1000
