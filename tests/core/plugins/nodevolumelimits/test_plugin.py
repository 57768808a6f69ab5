"""Which nodes NodeVolumeLimits keeps a pod from.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodevolumelimits/csi.go (PreFilter, Filter).
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

import pytest

from core.events import Object
from core.framework.status import SKIP, SUCCESS, Code, Status
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.pod_volumes import PodClaim
from core.plugins.nodevolumelimits.plugin import LIMIT_EXCEEDED, NodeVolumeLimits
from tests.core.plugins.nodevolumelimits.values import (
    DRIVER,
    EBS_DRIVER,
    attachment,
    claim,
    csi_node,
    csi_volume,
    disk,
    in_tree_volume,
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
RUNNING: Final = pod_with("a", name="p", on="n1")


statuses: Final = partial(filtered, NodeVolumeLimits())


@pytest.mark.parametrize("pod", [pod_with(), pod_with(disk("iscsi", "i"))], ids=["no-volumes", "none-that-counts"])
def test_a_pod_without_volumes_that_count_is_skipped(pod: Pod) -> None:
    assert NodeVolumeLimits().pre_filter(mirror_of(NODE), pod) == (SKIP, None)


@pytest.mark.parametrize(
    ("there", "pod", "expected"),
    [
        pytest.param([csi_node("n1", 2), RUNNING], pod_with("b"), SUCCESS, id="room-for-one-more"),
        pytest.param([csi_node("n1", 1), RUNNING], pod_with("b"), LIMIT_EXCEEDED, id="no-room"),
        pytest.param([csi_node("n1", 2), RUNNING], pod_with("b", "c"), LIMIT_EXCEEDED, id="no-room-for-two"),
        pytest.param([csi_node("n1", 1), RUNNING], pod_with("a"), SUCCESS, id="a-volume-in-use-is-not-new"),
        pytest.param([csi_node("n1", 1), RUNNING], pod_with("a", "b"), LIMIT_EXCEEDED, id="the-other-one-is-new"),
        pytest.param([csi_node("n1", 0)], pod_with("b"), LIMIT_EXCEEDED, id="0-is-a-limit"),
        pytest.param([csi_node("n1")], pod_with("b"), SUCCESS, id="no-limit"),
        pytest.param([], pod_with("b"), SUCCESS, id="no-csi-node"),
        pytest.param([csi_node("n1", 0)], pod_with("other"), SUCCESS, id="the-limit-of-another-driver"),
        pytest.param(
            [csi_node("n1", 1), pod_with("other", name="p", on="n1")],
            pod_with("b"),
            SUCCESS,
            id="volumes-of-another-driver-take-no-room",
        ),
        pytest.param(
            [csi_node("n1", 1), attachment("att", "pv-c", "n1")],
            pod_with("b"),
            LIMIT_EXCEEDED,
            id="attached-without-a-pod",
        ),
        pytest.param(
            [csi_node("n1", 2), RUNNING, attachment("att", "pv-a", "n1")],
            pod_with("b"),
            SUCCESS,
            id="attached-for-a-pod-counts-once",
        ),
        pytest.param(
            [csi_node("n1", 1), attachment("att", "pv-b", "n1")],
            pod_with("b"),
            LIMIT_EXCEEDED,
            id="its-own-attachment-counts-and-its-volume-again",
        ),
        pytest.param(
            [csi_node("n1", 1), attachment("att", "pv-c", "n2")], pod_with("b"), SUCCESS, id="attached-to-another-node"
        ),
        pytest.param(
            [csi_node("n1", 1), attachment("att", "gone", "n1"), attachment("inline", "", "n1")],
            pod_with("b"),
            SUCCESS,
            id="attachments-without-a-volume",
        ),
        pytest.param(
            [csi_node("n1", 1), attachment("att", "pv-c", "n1", "")], pod_with("b"), SUCCESS, id="without-an-attacher"
        ),
        pytest.param(
            [
                csi_node("n1", 1, EBS_DRIVER),
                in_tree_volume("pv-e", "aws-ebs", "vol-1"),
                attachment("e", "pv-e", "n1", EBS_DRIVER),
            ],
            pod_with(disk("aws-ebs", "vol-2")),
            SUCCESS,
            id="attachment-of-an-in-tree-volume",
        ),
        pytest.param(
            [csi_node("n1", 0, EBS_DRIVER)], pod_with(disk("aws-ebs", "v")), LIMIT_EXCEEDED, id="in-tree-disk"
        ),
        pytest.param(
            [csi_node("n1", 0), pod_with("gone", name="p", on="n1")],
            pod_with("b"),
            LIMIT_EXCEEDED,
            id="a-missing-claim-of-an-existing-pod-is-no-fault",
        ),
    ],
)
def test_a_node_takes_no_more_volumes_than_its_drivers_attach(there: list[Object], pod: Pod, expected: Status) -> None:
    assert statuses(mirror_of(NODE, *STORAGE, *there), pod, "n1") == [expected]


def test_volumes_of_two_drivers_have_two_limits() -> None:
    limits = csi_node("n1", 1)
    both = type(limits)(name="n1", volume_limits={DRIVER: 1, "other.example.com": 1})
    pod = pod_with("b", "other")
    assert statuses(mirror_of(NODE, *STORAGE, both), pod, "n1") == [SUCCESS]
    assert statuses(mirror_of(NODE, *STORAGE, both, pod_with("other", name="p", on="n1")), pod, "n1") == [SUCCESS]
    assert statuses(mirror_of(NODE, *STORAGE, both, RUNNING), pod, "n1") == [LIMIT_EXCEEDED]


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
