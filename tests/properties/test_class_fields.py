"""Whatever field of a pod is another one: it is of another class, or no plugin answers it otherwise."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from core.equivalence.classes import ALL_FIELDS, Classifier, Mode
from core.events import ClusterEvent, Object
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import ControllerRef, ReplicaSet
from core.objects.labels import parse_selector
from core.objects.node import Node, NodeMetrics, Usage
from core.objects.pod import Pod, PodClaim
from core.objects.volumes import PersistentVolumeClaim
from core.plugins import PLUGINS
from core.plugins.in_tree import DeviceSchedulers
from core.profile import Arguments, Profile, parse_profile
from core.releases.differences import rules_of
from core.releases.release import RELEASES
from tests.core.decoded import demanding
from tests.depth import tries
from tests.properties import scheduling_pool as pool
from tests.properties.equivalence_machine import Afresh, Rendered, rendered

ARGUMENTS: Final[Arguments] = {
    "ServiceAffinity": {"affinity_labels": (pool.ZONE,)},
    "NodeResourcesFit": {"device_schedulers": DeviceSchedulers(frozenset({pool.DEVICE_SCHEDULER}), others=False)},
}
PROFILE: Final = parse_profile(",".join(PLUGINS), ARGUMENTS)
"""Every plugin that there is."""

_EPHEMERAL: Final = replace(
    pool.incoming(pool.PODS[0], "e", "rs-1"), volumes=(PodClaim("e-scratch", ephemeral=True),), namespace="a"
)
ASKING: Final = (*(pool.incoming(each, "q", "rs-1") for each in pool.PODS), _EPHEMERAL)
"""Pods that are to be scheduled, one of them with an ephemeral volume."""
_MADE_FOR_IT: Final = PersistentVolumeClaim(
    namespace="a",
    name="e-scratch",
    uid="made",
    storage_class="fast",
    controller=ControllerRef(kind="Pod", name="e", uid="e"),
)
_OWNERS: Final = tuple(
    ReplicaSet(namespace, "own", selector=parse_selector({"app": "x"}, ())) for namespace in pool.NAMESPACES
)
OTHER_VALUES: Final[dict[str, Sequence[Any]]] = {
    "uid": ("other",),
    "name": ("other",),
    "namespace": pool.NAMESPACES,
    "node_name": ("", *pool.NODE_NAMES),
    "terminal": (False, True),
    "terminating": (False, True),
    "best_effort": (False, True),
    "of_daemon_set": (False, True),
    "resource_version": ("7",),
    "controller": (
        None,
        ControllerRef("ReplicaSet", "rs0", "rs-2", "apps/v1"),
        ControllerRef("ReplicaSet", "own", "rs-1", "apps/v1"),
    ),
}
"""What a field can be instead; the others are taken from other pods of the pool."""

DECLARED: Final = Classifier(PROFILE.plugins, "spec").fields

fields = st.sampled_from(ALL_FIELDS)
indices = st.integers(0, len(ASKING) - 1)


@st.composite
def clusters(draw: st.DrawFn) -> ClusterMirror:
    """Draw a small cluster of any release with everything in it, the claim of the ephemeral volume among them."""
    mirror = ClusterMirror(rules=rules_of(draw(st.sampled_from(RELEASES))))
    objects: list[Object] = [_MADE_FOR_IT, *_OWNERS, *pool.NAMESPACE_STATES[:2]]
    objects += draw(st.lists(st.sampled_from(pool.NODES), min_size=1, max_size=5))
    objects += draw(st.lists(st.sampled_from(pool.OTHERS), max_size=12))
    for number in range(draw(st.integers(0, 6))):
        node = draw(st.sampled_from(pool.NODE_NAMES))
        objects.append(pool.placed(pool.PODS[draw(indices) % len(pool.PODS)], (f"p{number}", f"p{number}"), node))
    for each in objects:
        mirror.apply(ClusterEvent("Add", each))
    return mirror


def everything() -> ClusterMirror:
    """Return a cluster of the newest release with all objects of the pool."""
    mirror = ClusterMirror(rules=rules_of(RELEASES[-1]))
    pressed = Node("pressed", conditions={"MemoryPressure": "True"}, allocatable={"cpu": 16_000})
    idle = NodeMetrics(name="pressed", measured_at=0, covers_pods_until="", cpu=Usage(0), memory=Usage(0))
    for each in (_MADE_FOR_IT, *_OWNERS, *pool.NAMESPACE_STATES, *pool.NODES, pressed, idle, *pool.OTHERS):
        mirror.apply(ClusterEvent("Add", each))
    for number, template in enumerate(pool.PODS[::4]):
        placed = pool.placed(template, (f"p{number}", f"p{number}"), pool.NODE_NAMES[number % 4])
        mirror.apply(ClusterEvent("Add", placed))
    return mirror


def responses(mirror: ClusterMirror, pod: Pod, profile: Profile = PROFILE) -> Rendered:
    """Ask the plugins afresh, about all nodes."""
    batch = mirror.batch(list(mirror.nodes.slots))
    return rendered(profile, Afresh(mirror, pod, batch), batch)


def otherwise(pod: Pod, field: str, choice: int) -> Pod:
    """Return a pod with another value in one field."""
    values = OTHER_VALUES.get(field) or [attrgetter(field)(each) for each in ASKING]
    member = field.removeprefix("demand.")
    other = {member: values[choice % len(values)]}
    return replace(pod, **other) if member == field else demanding(pod, **other)


@pytest.mark.parametrize("mode", ["controller", "spec"])
@settings(max_examples=tries(default=300, full=700))
@given(mirror=clusters(), asking=indices, field=fields, choice=indices)
def test_a_field_makes_another_class_or_changes_no_answer(
    mode: Mode, mirror: ClusterMirror, asking: int, field: str, choice: int
) -> None:
    pod = ASKING[asking]
    other = otherwise(pod, field, choice)
    classifier = Classifier(PROFILE.plugins, mode)
    # The cache, too, counts the requests of a pod by the release before it looks for the class.
    if classifier.key(mirror, mirror.counted(pod)) == classifier.key(mirror, mirror.counted(other)):
        assert responses(mirror, pod) == responses(mirror, other)


@settings(max_examples=tries(default=300, full=700))
@given(mirror=clusters(), asking=indices)
def test_the_fields_that_plugins_declare_are_all_that_they_need(mirror: ClusterMirror, asking: int) -> None:
    pod = ASKING[asking]
    representative = Classifier(PROFILE.plugins, "spec").representative(mirror, mirror.counted(pod))

    assert responses(mirror, pod) == responses(mirror, representative)


@pytest.mark.parametrize("field", DECLARED)
def test_some_answer_follows_from_every_field_that_is_declared(field: str) -> None:
    """Or the tests above would find nothing if it were not declared, and classes would be smaller than they need be."""
    mirror = everything()

    assert any(
        responses(mirror, pod) != responses(mirror, otherwise(pod, field, choice))
        for choice in range(60)
        for pod in ASKING[choice % 7 :: 7]
    )


@pytest.mark.parametrize("name", PLUGINS)
def test_every_plugin_needs_no_field_but_its_own(name: str) -> None:
    """The tests above hold the fields of all plugins together: one may lack a field that another one declares."""
    mirror, profile = everything(), parse_profile(name, ARGUMENTS)
    classifier = Classifier(profile.plugins, "spec")
    for pod in ASKING:
        counted = mirror.counted(pod)
        representative = classifier.representative(mirror, counted)
        assert responses(mirror, counted, profile) == responses(mirror, representative, profile)


NOT_SEEN: Final = {
    "NodeUnschedulable": {"tolerations"},
    "ServiceAffinity": {"namespace", "node_affinity"},
    "VolumeRestrictions": {"namespace"},
    "VolumeZone": {"namespace", "volumes"},
}
"""Fields that a plugin needs, though no answer about this one cluster follows from them."""


@pytest.mark.parametrize("name", PLUGINS)
def test_no_plugin_declares_a_field_without_need(name: str) -> None:
    mirror, profile = everything(), parse_profile(name, ARGUMENTS)
    needless = {
        field
        for field in Classifier(profile.plugins, "spec").fields
        if all(
            responses(mirror, pod, profile) == responses(mirror, otherwise(pod, field, choice), profile)
            for choice in range(60)
            for pod in ASKING[choice % 7 :: 7]
        )
    }
    assert needless == NOT_SEEN.get(name, set())
