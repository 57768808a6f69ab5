"""What the annotations of a member, or of a PodGroup, say about packing."""

import msgspec
import pytest

from app.objects.decode_groups import decode_pod_group
from core.objects.groups import SPREAD, Packing, PackingWay
from tests.builders import make_pod
from tests.core.decoded import pod_of

PACKING = "kindred.dev/group-packing"
KEY = "kindred.dev/group-topology-key"
RACK = "example.com/rack"

CASES = [
    pytest.param({PACKING: "spread"}, SPREAD, id="spread"),
    pytest.param({PACKING: "pack"}, Packing(PackingWay.PACK), id="pack"),
    pytest.param({PACKING: "near", KEY: RACK}, Packing(PackingWay.NEAR, RACK), id="near"),
    pytest.param(
        {PACKING: "Pack"},
        Packing(problem=f"metadata.annotations[{PACKING}]: expected spread, pack or near, got 'Pack'"),
        id="unknown-way",
    ),
    pytest.param(
        {PACKING: "near"},
        Packing(problem=f"metadata.annotations[{KEY}]: missing, and near needs the key of a node label"),
        id="near-without-key",
    ),
    pytest.param(
        {PACKING: "near", KEY: "/rack"},
        Packing(problem=f"metadata.annotations[{KEY}]: prefix part must be non-empty, got '/rack'"),
        id="no-label-key",
    ),
    pytest.param(
        {PACKING: "pack", KEY: RACK},
        Packing(problem=f"metadata.annotations[{KEY}]: is read with near alone, not with pack"),
        id="key-without-near",
    ),
    pytest.param({KEY: RACK}, Packing(problem=f"metadata.annotations[{PACKING}]: missing beside {KEY}"), id="key"),
]


@pytest.mark.parametrize(("annotations", "packing"), CASES)
def test_a_member_and_a_pod_group_say_it_in_the_same_annotations(annotations: dict[str, str], packing: Packing) -> None:
    member = pod_of(make_pod("p").of_group("g").packed(annotations.get(PACKING, ""), annotations.get(KEY, ""))).group
    assert member is not None
    assert member.packing == packing
    wire = {"metadata": {"namespace": "shop", "name": "train", "annotations": annotations}}
    assert decode_pod_group(msgspec.json.encode(wire)).packing == packing


def test_without_annotations_a_pod_group_is_spread_and_a_member_says_nothing() -> None:
    member = pod_of(make_pod("p").of_group("g", 2)).group
    assert member is not None
    assert member.packing is None
    assert decode_pod_group(b'{"metadata": {"name": "train"}}').packing == SPREAD
