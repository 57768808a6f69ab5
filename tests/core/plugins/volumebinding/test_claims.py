"""Which claims let a pod be scheduled at all, and what has to be done about them.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding/volume_binding.go (PreFilter, podHasPVCs) and
binder.go (GetPodVolumeClaims).
"""

from typing import Final

import pytest
from msgspec.structs import replace

from core.events import Object
from core.framework.interface import Code, Status
from core.objects.kinds import ControllerRef
from core.objects.pod import Pod, PodClaim
from core.objects.volumes import StorageClass
from core.plugins.volumebinding.claims import UNBOUND_IMMEDIATE, ClaimError, claims_of
from tests.core.plugins.told import mirror_of
from tests.core.plugins.volumebinding.values import bound, pod_with, unbound, waiting

NO_MODE: Final = StorageClass(name="no-mode", provisioner="p")
IMMEDIATE: Final = StorageClass(name="now", provisioner="p", volume_binding_mode="Immediate")
NO_MODE_ERROR: Final = Status(Code.ERROR, ('VolumeBindingMode not set for StorageClass "no-mode"',))
EPHEMERAL: Final = PodClaim("incoming-v", ephemeral=True)


def unresolvable(reason: str) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))


def test_claims_are_told_apart_in_the_order_of_the_volumes() -> None:
    mirror = mirror_of(waiting(), *(bound(name, "pv") for name in "ad"), *(unbound(name) for name in "bc"))
    found = claims_of(mirror, pod_with("d", "c", "a", "b"))
    assert [claim.name for claim in found.bound] == ["d", "a"]
    assert [claim.name for claim in found.unbound] == ["c", "b"]


def test_an_ephemeral_claim_that_was_made_for_the_pod_is_one_of_its_claims() -> None:
    mirror = mirror_of(waiting(), unbound(EPHEMERAL.name, controller=ControllerRef("Pod", "incoming", "incoming")))
    assert [claim.name for claim in claims_of(mirror, pod_with(EPHEMERAL)).unbound] == [EPHEMERAL.name]


@pytest.mark.parametrize(
    ("pod", "objects", "expected"),
    [
        pytest.param(pod_with("a"), [], unresolvable('persistentvolumeclaim "a" not found'), id="missing"),
        pytest.param(
            pod_with(EPHEMERAL),
            [],
            unresolvable('waiting for ephemeral volume controller to create the persistentvolumeclaim "incoming-v"'),
            id="ephemeral-not-made-yet",
        ),
        pytest.param(
            pod_with(EPHEMERAL),
            [unbound(EPHEMERAL.name, controller=ControllerRef("Pod", "incoming", "an-earlier-uid"))],
            unresolvable("PVC default/incoming-v was not created for pod default/incoming (pod is not owner)"),
            id="ephemeral-of-an-earlier-pod-of-the-name",
        ),
        pytest.param(
            pod_with("a"),
            [replace(bound("a", "pv"), phase="Lost")],
            unresolvable('persistentvolumeclaim "a" bound to non-existent persistentvolume "pv"'),
            id="lost",
        ),
        pytest.param(
            pod_with("a"),
            [replace(bound("a", "pv"), deleting=True)],
            unresolvable('persistentvolumeclaim "a" is being deleted'),
            id="being-deleted",
        ),
        pytest.param(pod_with("a"), [IMMEDIATE, unbound("a", "now")], UNBOUND_IMMEDIATE, id="immediate"),
        pytest.param(pod_with("a"), [unbound("a", "")], UNBOUND_IMMEDIATE, id="no-class"),
        pytest.param(pod_with("a"), [unbound("a", "gone")], UNBOUND_IMMEDIATE, id="class-missing"),
        pytest.param(
            pod_with("a"), [waiting(), unbound("a", volume="pv")], UNBOUND_IMMEDIATE, id="volume-not-yet-bound-to-it"
        ),
        pytest.param(
            pod_with("a"),
            [waiting(), unbound("a", bind_completed=True, volume="pv", phase="Lost")],
            unresolvable('persistentvolumeclaim "a" bound to non-existent persistentvolume "pv"'),
            id="bound-and-lost",
        ),
        pytest.param(pod_with("a"), [NO_MODE, unbound("a", "no-mode")], NO_MODE_ERROR, id="no-binding-mode"),
        pytest.param(
            pod_with("a", "b"),
            [NO_MODE, unbound("a", ""), unbound("b", "no-mode")],
            NO_MODE_ERROR,
            id="an-error-comes-before-immediate-claims",
        ),
        pytest.param(
            pod_with("a", "gone"),
            [NO_MODE, unbound("a", "no-mode")],
            unresolvable('persistentvolumeclaim "gone" not found'),
            id="a-missing-claim-comes-before-all-else",
        ),
    ],
)
def test_a_pod_fails_on_all_nodes_for_a_claim_that_none_can_help(
    pod: Pod, objects: list[Object], expected: Status
) -> None:
    with pytest.raises(ClaimError) as caught:
        claims_of(mirror_of(*objects), pod)
    assert caught.value.status == expected
