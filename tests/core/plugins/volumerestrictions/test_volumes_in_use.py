"""How the volumes in use are kept."""

import pytest

from core.events import ClusterEvent, Object
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import PodClaim, PodVolume
from core.plugins.volumerestrictions import VolumesInUse
from tests.core.plugins.cached_answers import random_events
from tests.core.plugins.volumerestrictions.values import azure, ebs, gce, pod_with, rbd

VOLUMES: list[tuple[PodVolume, ...]] = [
    (gce("d"), gce("d")),
    (gce("d", read_only=True), PodClaim("c")),
    (rbd("a", "b"), PodClaim("p1-v", ephemeral=True)),
    (rbd("b", read_only=True), ebs("e")),
    (azure("d"), PodClaim("c"), PodClaim("c")),
    (),
]


@pytest.mark.parametrize("seed", range(5))
def test_volumes_kept_by_events_are_those_counted_anew(seed: int) -> None:
    pods: list[Object] = [
        pod_with(*each, name=f"p{number}", on=f"n{(number + at) % 3}", namespace="ab"[number % 2])
        for at, each in enumerate(VOLUMES)
        for number in range(6)
    ]
    nodes: list[Object] = [Node(name=f"n{number}") for number in range(3)]
    mirror = ClusterMirror()
    kept = mirror.derived(VolumesInUse)
    for event in random_events(seed, [*pods, *nodes * 3], 300):
        mirror.apply(event)
        anew = VolumesInUse(mirror)
        assert (kept.disks, kept.claims) == (anew.disks, anew.claims)


def test_nothing_is_left_of_a_pod_that_is_gone() -> None:
    mirror = ClusterMirror()
    kept = mirror.derived(VolumesInUse)
    pod = pod_with(*VOLUMES[2], *VOLUMES[1], on="n")
    for event in (ClusterEvent("Add", Node(name="n")), ClusterEvent("Add", pod), ClusterEvent("Delete", pod)):
        mirror.apply(event)
    assert (dict(kept.disks), dict(kept.claims)) == ({}, {})


def test_asking_for_a_disk_that_nobody_uses_leaves_nothing_behind() -> None:
    kept = ClusterMirror().derived(VolumesInUse)
    assert kept.conflicts([gce("d"), rbd("a")]) == set()
    assert not kept.disks
