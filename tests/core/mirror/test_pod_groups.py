"""Which pods belong to which group, and what rule their group has, after events in any order."""

import pytest

from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.mirror.pending_pods import Group, Rule
from core.objects.groups import DEFAULT_TIMEOUT, SPREAD, Packing, PackingWay, PodGroup
from tests.builders import PodBuilder, make_pod
from tests.core.decoded import pod_of, tell


def member(name: str, group: str = "train", minimum: int | str = 2) -> PodBuilder:
    return make_pod(name).of_group(group, minimum)


def of_object(name: str) -> PodBuilder:
    return make_pod(name).label("scheduling.x-k8s.io/pod-group", "train")


def seen(*pods: PodBuilder) -> ClusterMirror:
    mirror = ClusterMirror()
    tell(mirror, "Update", *pods)
    return mirror


def group_of(mirror: ClusterMirror, key: str = "default/train") -> Group:
    group = mirror.groups.get(key)
    assert group is not None
    return group


def rule_of(mirror: ClusterMirror) -> Rule:
    return group_of(mirror).rule(mirror.objects(PodGroup))


def names(mirror: ClusterMirror) -> dict[str, list[str]]:
    return {group.key: [pod.name for pod in group.members.values()] for group in mirror.groups}


def test_members_are_kept_by_namespace_and_name_of_their_group() -> None:
    mirror = seen(member("a"), member("b"), member("c", "other"), member("d").in_namespace("shop"), make_pod("e"))
    assert names(mirror) == {"default/train": ["a", "b"], "default/other": ["c"], "shop/train": ["d"]}
    assert mirror.groups.key_of == {
        "default/a": "default/train",
        "default/b": "default/train",
        "default/c": "default/other",
        "shop/d": "shop/train",
    }


def test_a_group_goes_with_its_last_member() -> None:
    mirror = seen(member("a"), member("b"))
    tell(mirror, "Delete", member("a"))
    assert names(mirror) == {"default/train": ["b"]}
    tell(mirror, "Update", member("b").on("n1").phase("Succeeded"))
    assert names(mirror) == {}
    assert not mirror.groups.key_of
    assert len(mirror.groups) == 0


def test_members_that_had_a_node_and_are_gone_are_counted_as_long_as_others_are_there() -> None:
    mirror = seen(member("a").on("n1"), member("b"), member("c"))
    tell(mirror, "Delete", member("a").on("n1"), member("b"))
    assert group_of(mirror).ended == 1


def test_a_member_may_change_its_group_or_leave_it() -> None:
    mirror = seen(member("a"), member("b"), member("a", "other"))
    assert names(mirror) == {"default/train": ["b"], "default/other": ["a"]}
    tell(mirror, "Update", make_pod("a"))
    assert names(mirror) == {"default/train": ["b"]}


def test_repeated_and_unknown_events_do_no_harm() -> None:
    mirror = seen(member("a"), member("a"))
    version = group_of(mirror).version
    tell(mirror, "Delete", member("z"))
    tell(mirror, "Update", member("a"))
    assert ({"default/train": ["a"]}, version) == (names(mirror), group_of(mirror).version)


def test_the_condition_of_a_failed_attempt_is_no_change_of_the_group() -> None:
    mirror = seen(member("a"))
    before = group_of(mirror).version
    tell(mirror, "Update", member("a").unschedulable("0/3 nodes are available"))
    assert group_of(mirror).version == before
    tell(mirror, "Update", member("a").gated("later"))
    assert group_of(mirror).version > before


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([member("a", minimum=3)], Rule(3, DEFAULT_TIMEOUT)),
        ([make_pod("a").of_group("train", 3, 20), member("b", minimum="")], Rule(3, 20)),
        ([make_pod("a").of_group("train", 3, 20), make_pod("b").of_group("train", 5, 10)], Rule(5, 10)),
        ([member("a", minimum="")], Rule(0, 0, "no member has the annotation kindred.dev/group-minimum")),
    ],
)
def test_annotations_make_the_rule(pods: list[PodBuilder], expected: Rule) -> None:
    assert expected == rule_of(seen(*pods))


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", "501", "9999999999", "٣"])
def test_a_minimum_that_is_none_is_told_with_its_annotation(text: str) -> None:
    problem = rule_of(seen(member("a"), member("b", minimum=text))).problem
    assert problem == f"metadata.annotations[kindred.dev/group-minimum]: expected a number 1..500, got {text!r}"


def test_a_timeout_that_is_none_is_told_with_its_annotation() -> None:
    problem = rule_of(seen(make_pod("a").of_group("train", 2, "soon"))).problem
    assert problem == "metadata.annotations[kindred.dev/group-timeout]: expected a number 1..3600, got 'soon'"


@pytest.mark.parametrize(
    ("minimum", "timeout", "expected"),
    [
        (3, 0, Rule(3, DEFAULT_TIMEOUT)),
        (3, 10, Rule(3, 10)),
        (0, 0, Rule(0, 0, "PodGroup default/train: spec.minMember must be 1..500, got 0")),
        (-1, 0, Rule(0, 0, "PodGroup default/train: spec.minMember must be 1..500, got -1")),
        (501, 0, Rule(0, 0, "PodGroup default/train: spec.minMember must be 1..500, got 501")),
        (3, -1, Rule(0, 0, "PodGroup default/train: spec.scheduleTimeoutSeconds must be 1..3600, got -1")),
    ],
)
def test_a_pod_group_has_the_rule_of_its_members(minimum: int, timeout: int, expected: Rule) -> None:
    mirror = seen(of_object("a"))
    group = PodGroup(namespace="default", name="train", minimum=minimum, timeout=timeout)
    before = group_of(mirror).version
    mirror.apply(ClusterEvent("Add", group))
    assert expected == rule_of(mirror)
    assert group_of(mirror).version > before


def test_without_its_pod_group_no_rule_is_known() -> None:
    mirror = seen(of_object("a"))
    mirror.apply(ClusterEvent("Add", PodGroup(namespace="shop", name="train", minimum=3)))
    assert Rule(0, 0, "PodGroup default/train does not exist") == rule_of(mirror)


def test_the_label_of_kindred_comes_before_that_of_a_pod_group() -> None:
    pod = pod_of(of_object("a").of_group("mine", 2))
    assert pod.group is not None
    assert (pod.group.group, pod.group.by_object) == ("mine", False)


def test_a_group_of_upstream_is_none_of_these() -> None:
    pod = make_pod("a").obj()
    pod["spec"]["schedulingGroup"] = {"podGroupName": "train"}
    mirror = seen(make_pod("b"))
    assert pod_of(make_pod("b")).group is None
    assert len(mirror.groups) == 0


@pytest.mark.parametrize(
    ("said", "packing"),
    [
        pytest.param(["", ""], SPREAD, id="no-member"),
        pytest.param(["", "pack"], Packing(PackingWay.PACK), id="one-member"),
        pytest.param(["pack", "pack"], Packing(PackingWay.PACK), id="all-members"),
        pytest.param(
            ["pack", "spread"],
            Packing(problem="metadata.annotations[kindred.dev/group-packing]: members differ: pack, spread"),
            id="members-differ",
        ),
        pytest.param(
            ["pack", "dense"],
            Packing(
                problem="metadata.annotations[kindred.dev/group-packing]: expected spread, pack or near, got 'dense'"
            ),
            id="a-wrong-one",
        ),
    ],
)
def test_the_packing_is_what_members_say(said: list[str], packing: Packing) -> None:
    mirror = seen(*(member(f"m{number}").packed(way) for number, way in enumerate(said)))
    assert group_of(mirror).packing(mirror.objects(PodGroup)) == packing


def test_the_packing_of_a_pod_group_is_that_of_the_object() -> None:
    mirror = seen(of_object("a").packed("pack"))
    assert group_of(mirror).packing(mirror.objects(PodGroup)) == SPREAD
    near = Packing(PackingWay.NEAR, "rack")
    mirror.apply(ClusterEvent("Add", PodGroup(namespace="default", name="train", packing=near)))
    assert group_of(mirror).packing(mirror.objects(PodGroup)) == near
