"""Which nodes NodeVolumeLimits keeps a pod from.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodevolumelimits/csi.go (PreFilter, Filter).
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

import pytest

from core.events import Object
from core.framework.interface import SKIP, SUCCESS, Code, Status
from core.objects.node import Node
from core.objects.pod import Pod, PodClaim
from core.plugins.nodevolumelimits.plugin import LIMIT_EXCEEDED, NodeVolumeLimits
from tests.core.plugins.nodevolumelimits.values import (
    attachment,
    claim,
    csi_node,
    csi_volume,
    disk,
    pod_with,
)
from tests.core.plugins.told import filtered, mirror_of

NODE: Final = Node(name="n1")
STORAGE: Final[tuple[Object, ...]] = (
    *(claim(name, f"pv-{name}") for name in "abc"),
    *(csi_volume(f"pv-{name}") for name in "abc"),
    csi_volume("pv-other", "pv-other", "other.example.com"),
    claim("other", "pv-other"),
)


statuses: Final = partial(filtered, NodeVolumeLimits())


@pytest.mark.parametrize("pod", [pod_with(), pod_with(disk("iscsi", "i"))], ids=["no-volumes", "none-that-counts"])
def test_a_pod_without_volumes_that_count_is_skipped(pod: Pod) -> None:
    assert NodeVolumeLimits().pre_filter(mirror_of(NODE), pod) == (SKIP, None)


def test_a_missing_claim_fails_every_node_whatever_its_limits() -> None:
    mirror = mirror_of(NODE, Node(name="n2"), csi_node("n2", 5))
    expected = Status(
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ('looking up PVC default/gone: persistentvolumeclaim "gone" not found',)
    )
    assert statuses(mirror, pod_with("gone"), "n1", "n2") == [expected, expected]


def test_a_disk_at_fault_is_an_error_where_it_would_be_attached_by_csi() -> None:
    mirror = mirror_of(NODE, Node(name="n2"), csi_node("n2"))
    missing, broken = statuses(mirror, pod_with(disk("azure-disk", "d", kind="Dedicated"), "gone"), "n1", "n2")
    assert missing.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    expected = "converting volume(data) from inline to csi: kind(Dedicated) is not supported in csi migration"
    assert broken == Status(Code.ERROR, (expected,))


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (None, SUCCESS),
        (9, Status(Code.ERROR, ("PVC default/a was not created for pod default/p (pod is not owner)",))),
    ],
    ids=["no-limit", "limit"],
)
def test_an_existing_pod_at_fault_is_an_error_where_there_are_limits(limit: int | None, expected: Status) -> None:
    there = pod_with(PodClaim("a", ephemeral=True), name="p", on="n1")
    assert statuses(mirror_of(NODE, *STORAGE, csi_node("n1", limit), there), pod_with("b"), "n1") == [expected]


@pytest.mark.parametrize("known", [(), (NODE, csi_node("n1", 0))], ids=["no-node-is-known", "another-is"])
def test_a_stranger_is_judged_by_its_csi_node_and_attachments(known: Sequence[Object]) -> None:
    strangers = [Node(name=name) for name in ("full", "free", "bare")]
    attached = attachment("att", "pv-c", "full")
    mirror = mirror_of(*known, *STORAGE, csi_node("full", 1), csi_node("free", 1), attached)
    assert statuses(mirror, pod_with("b"), whole=strangers) == [LIMIT_EXCEEDED, SUCCESS, SUCCESS]
    assert {each.code for each in statuses(mirror, pod_with("gone"), whole=strangers)} == {
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    }


def test_strangers_and_known_nodes_of_one_question_do_not_mix() -> None:
    mirror = mirror_of(NODE, Node(name="n2"), *STORAGE, csi_node("n1", 0), csi_node("n3", 0))
    expected = [LIMIT_EXCEEDED, SUCCESS, LIMIT_EXCEEDED]
    assert statuses(mirror, pod_with("b"), "n1", "n2", whole=[Node(name="n3")]) == expected


def test_no_counters_are_read() -> None:
    _, state = NodeVolumeLimits().pre_filter(mirror_of(), pod_with("a"))
    assert state is not None
    assert NodeVolumeLimits().filter_versions(state) == ()
