"""Which nodes VolumeRestrictions keeps a pod from, and what changes that.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go.
"""

from functools import partial
from typing import Final

import pytest

from core.events import Object
from core.framework.interface import SUCCESS, Code, InvalidationRule, Scope, Status
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import Pod, PodClaim, PodVolume
from core.objects.volumes import PersistentVolumeClaim
from core.plugins.volumerestrictions import VolumeRestrictions
from tests.core.plugins.cached_answers import assert_cached_verdicts_are_fresh, random_events
from tests.core.plugins.told import filtered, mirror_of, tell
from tests.core.plugins.volumerestrictions.values import azure, claim, gce, pod_with, rbd

NODES: Final = (Node(name="n1"), Node(name="n2"))
DISK: Final = Status(Code.UNSCHEDULABLE, ("node(s) had no available disk",))
CLAIM_IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
IN_USE: Final = Status(Code.UNSCHEDULABLE, (CLAIM_IN_USE,))
ONCE: Final = claim("once", "ReadWriteOncePod")
OFTEN: Final = claim("often", "ReadWriteOnce")


statuses: Final = partial(filtered, VolumeRestrictions(), may_skip=True)


def mirror_with(*objects: Object) -> ClusterMirror:
    return mirror_of(*NODES, *objects)


def test_a_stranger_has_no_disks_in_use() -> None:
    nodes = [Node(name=f"n{number}") for number in range(1, 17)]
    # The last slot, which NO_SLOT would look up, is one with the disk.
    mirror = mirror_with(*nodes, pod_with(gce("d"), name="there", on="n16"))
    assert mirror.nodes.slots["n16"] == mirror.nodes.capacity - 1
    found = statuses(mirror, pod_with(gce("d")), "n16", "nobody", whole=(Node(name="stranger"),))
    assert [found[0], found[2]] == [DISK, SUCCESS]


def test_a_claim_for_one_pod_that_any_pod_uses_fails_every_node() -> None:
    mirror = mirror_with(ONCE, pod_with(PodClaim("once"), name="there", on="n1"))
    found = statuses(mirror, pod_with(PodClaim("once")), "n1", "n2", whole=(Node(name="stranger"),))
    assert found == [IN_USE] * 3


def test_a_missing_claim_fails_all_nodes_and_the_first_one_is_told() -> None:
    wanted = pod_with(gce("d"), PodClaim("often"), PodClaim("gone"), PodClaim("lost"))
    expected = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ('persistentvolumeclaim "gone" not found',))
    assert VolumeRestrictions().pre_filter(mirror_with(OFTEN), wanted) == (expected, None)


def test_pods_whose_claims_of_one_name_are_others_are_of_different_classes() -> None:
    # kubernetes issue 56265: stuck for ten minutes, as the claims' names were all that was looked at.
    mirror, pod = mirror_with(claim("c", uid="1")), pod_with(PodClaim("c"), PodClaim("gone"), gce("d"))
    before = VolumeRestrictions().references(mirror, pod)
    tell(mirror, claim("c", uid="2"))
    assert [before, VolumeRestrictions().references(mirror, pod)] == [("1", None), ("2", None)]


def rule_of(kind: type, scope: Scope) -> InvalidationRule:
    (rule,) = [rule for rule in VolumeRestrictions().invalidated_by if rule.kind is kind and rule.scope is scope]
    return rule


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, pod_with(gce("d")), True, id="a-pod-with-a-disk-came"),
        pytest.param(pod_with(rbd("a")), None, True, id="a-pod-with-a-disk-went"),
        pytest.param(None, pod_with(PodClaim("c"), azure("d")), False, id="a-pod-without-such-a-disk-came"),
        pytest.param(pod_with(gce("d")), pod_with(gce("d"), on="n1"), False, id="the-same-disk"),
        pytest.param(pod_with(gce("d")), pod_with(gce("d", read_only=True)), True, id="read-only-now"),
    ],
)
def test_the_disks_of_a_pod_touch_its_node(before: Pod | None, after: Pod | None, expected: bool) -> None:  # noqa: FBT001 - a column of the table
    assert rule_of(Pod, Scope.NODE).touches(before, after) is expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, OFTEN, True, id="it-came"),
        pytest.param(ONCE, None, True, id="it-went"),
        pytest.param(claim("c", "ReadWriteOnce"), claim("c", "ReadWriteOncePod"), True, id="for-one-pod-now"),
        pytest.param(claim("c", "ReadWriteOnce"), claim("c", "ReadWriteMany"), False, id="another-mode"),
    ],
)
def test_a_claim_s_being_there_and_being_for_one_pod_touch_all_nodes(
    before: PersistentVolumeClaim | None,
    after: PersistentVolumeClaim | None,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert rule_of(PersistentVolumeClaim, Scope.ALL).touches(before, after) is expected


def test_verdicts_follow_from_whether_a_claim_of_the_pod_is_in_use() -> None:
    mirror = mirror_with(ONCE, claim("other", "ReadWriteOncePod"))
    plugin, pod = VolumeRestrictions(), pod_with(gce("d"), PodClaim("once"))
    found = []
    for there in (pod_with(name="a", on="n1"), pod_with(PodClaim("other"), name="b", on="n1")):
        tell(mirror, there)
        found.append(versions(plugin, mirror, pod))
    tell(mirror, pod_with(PodClaim("once"), name="c", on="n1"))
    assert [*found, versions(plugin, mirror, pod)] == [(False,), (False,), (True,)]


def versions(plugin: VolumeRestrictions, mirror: ClusterMirror, pod: Pod) -> tuple[object, ...]:
    _, state = plugin.pre_filter(mirror, pod)
    assert state is not None
    return plugin.filter_versions(state)


def test_cached_verdicts_are_fresh_ones() -> None:
    volumes: list[tuple[PodVolume, ...]] = [
        (gce("d"),),
        (gce("d", read_only=True), PodClaim("once")),
        (rbd("a", "b"), PodClaim("often")),
        (rbd("b", read_only=True),),
        (PodClaim("once"),),
        (),
    ]
    pods: list[Object] = [
        pod_with(*each, name=f"p{number}", on=f"n{number % 2 + 1}") for each in volumes for number in range(4)
    ]
    claims: list[Object] = [ONCE, claim("once", "ReadWriteOnce", uid="2"), OFTEN]
    nodes: list[Object] = [*NODES, NODES[0], NODES[1]]
    asked = [pod_with(*each) for each in volumes]
    assert_cached_verdicts_are_fresh(
        VolumeRestrictions(), random_events(3, [*pods, *claims * 3, *nodes * 2], 600), asked
    )
