"""Pods with many claims: the volumes that each gets, and what finding them costs."""

from collections.abc import Sequence
from random import Random

import pytest

from core.framework.interface import SUCCESS, Code, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.work import WorkLimitError
from core.objects.labels import parse_selector
from core.objects.node import Node
from core.objects.volumes import CSIDriver, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from core.plugins.volumebinding.filtering import BIND_CONFLICT, NOT_ENOUGH_SPACE
from core.plugins.volumebinding.plugin import VolumeBinding
from tests.core.plugins.told import mirror_of
from tests.core.plugins.volumebinding.values import free_volume, node, pod_with, room, unbound, waiting, within

CLASSES = (waiting("local"), waiting("made", "x.csi"), waiting("measured", "y.csi"))


def verdicts(mirror: ClusterMirror, claims: Sequence[PersistentVolumeClaim], names: Sequence[str]) -> list[Status]:
    plugin = VolumeBinding()
    status, state = plugin.pre_filter(mirror, pod_with(*(claim.name for claim in claims)))
    assert status == SUCCESS
    assert state is not None
    found = plugin.filter(state, mirror.batch(names))
    return [found.status(position) for position in range(len(names))]


class Naive:
    """FindPodVolumes of binder.go, node by node and claim by claim."""

    def __init__(self, volumes: Sequence[PersistentVolume], rooms: Sequence[CSIStorageCapacity]) -> None:
        self._volumes = sorted(volumes, key=lambda volume: (volume.capacity, volume.name))
        self._rooms = rooms

    def reason(self, node: Node, claims: Sequence[PersistentVolumeClaim]) -> str:
        taken: set[str] = set()
        to_make = []
        for claim in sorted(claims, key=lambda claim: claim.requested or 0):
            volume = next((each for each in self._volumes if self._fits(each, claim, node, taken)), None)
            if volume is None:
                to_make.append(claim)
            else:
                taken.add(volume.name)
        return next((reason for reason in (self._conflict(claim, node) for claim in to_make) if reason), "")

    def _fits(self, volume: PersistentVolume, claim: PersistentVolumeClaim, node: Node, taken: set[str]) -> bool:
        return (
            volume.name not in taken
            and volume.storage_class == claim.storage_class
            and volume.capacity >= (claim.requested or 0)
            and claim.selector.matches(volume.labels)
            and (volume.node_affinity is None or volume.node_affinity.matches(node.labels))
        )

    def _conflict(self, claim: PersistentVolumeClaim, node: Node) -> str:
        if claim.storage_class == "local":
            return BIND_CONFLICT
        if claim.storage_class == "made" or claim.requested is None:
            return ""
        enough = [each for each in self._rooms if each.limit is not None and each.limit >= claim.requested]
        return "" if any(each.topology.matches(node.labels) for each in enough) else NOT_ENOUGH_SPACE


@pytest.mark.parametrize("seed", range(30))
def test_claims_get_what_each_would_find_on_each_node(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret; the same in every run
    zones = ("a", "b")
    nodes = [node(f"n{number}", host=f"n{number}", zone=random.choice(zones)) for number in range(6)]
    affinities = [
        None,
        *(within("host", f"n{number}") for number in range(6)),
        *(within("zone", zone) for zone in zones),
    ]
    volumes = [
        free_volume(
            f"pv-{number}",
            random.choice(affinities),
            random.randrange(1, 10),
            random.choice(("local", "local", "made")),
            labels={"tier": random.choice("xy")},
        )
        for number in range(25)
    ]
    rooms = [room(f"r{zone}", random.choice((None, 3, 8)), "measured", zone=zone) for zone in zones]
    selectors = (parse_selector({}, ()), parse_selector({}, ()), parse_selector({"tier": "x"}, ()))
    claims = [
        unbound(
            f"c{number}",
            random.choice(("local", "made", "measured")),
            random.choice((None, 1, 4, 9)),
            selector=random.choice(selectors),
        )
        for number in range(random.randrange(1, 8))
    ]
    mirror = mirror_of(*CLASSES, CSIDriver(name="y.csi", storage_capacity=True), *nodes, *volumes, *rooms, *claims)
    naive = Naive(volumes, rooms)
    reasons = [naive.reason(each, claims) for each in nodes]
    expected = [Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (each,)) if each else SUCCESS for each in reasons]
    assert verdicts(mirror, claims, [each.name for each in nodes]) == expected


def classes_with(*names: str) -> list[StorageClass]:
    return [each for each in CLASSES if each.name in names]


def test_claims_that_find_nothing_end_the_search_on_a_node() -> None:
    nodes = [node(f"n{number}", host=f"n{number}") for number in range(300)]
    volumes = [free_volume(f"pv-{each.name}", within("host", each.name), 1000, "local") for each in nodes]
    claims = [unbound(f"c{number}", "local", number) for number in range(300)]
    mirror = mirror_of(*classes_with("local"), *nodes, *volumes, *claims)
    mirror.work.begin()
    found = verdicts(mirror, claims, [each.name for each in nodes])
    assert set(found) == {Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (BIND_CONFLICT,))}
    looks_of_each_claim_on_each_node = 300 * 300 * 2
    assert mirror.work.spent / 700 < looks_of_each_claim_on_each_node  # one look at the claims, and two claims tried


def test_claims_for_which_alike_volumes_are_made_are_one_step() -> None:
    nodes = [node(f"n{number}", host=f"n{number}") for number in range(50)]
    claims = [unbound(f"c{number}", "made", number) for number in range(500)]
    mirror = mirror_of(*classes_with("made"), *nodes, *claims)
    mirror.work.begin()
    assert verdicts(mirror, claims, [each.name for each in nodes]) == [SUCCESS] * 50
    assert mirror.work.spent / 700 < 10


def test_a_search_over_too_many_volumes_names_the_pods_volumes() -> None:
    nodes = [node(f"n{number}", host=f"n{number}") for number in range(50)]
    volumes = [
        free_volume(f"pv-{number}", within("host", "n0", f"n{number % 50}"), 10, "local") for number in range(200)
    ]
    claims = [unbound(f"c{number}", "local", 1) for number in range(100)]
    mirror = mirror_of(*classes_with("local"), *nodes, *volumes, *claims)
    mirror.work.begin()
    mirror.work.limit = 1_000_000
    with pytest.raises(WorkLimitError) as caught:
        verdicts(mirror, claims, [each.name for each in nodes])
    assert caught.value.field == "Pod.spec.volumes"
