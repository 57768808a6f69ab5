"""Laws of every plugin: events leave the answers of a mirror made anew, and a stranger is a node without pods."""

from collections.abc import Iterable
from random import Random
from typing import Final

import numpy as np
import pytest
from msgspec.structs import replace

from core.events import ClusterEvent, Object
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import Plugin, ScorePlugin
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import InlineDisk, Pod, PodClaim
from core.objects.volumes import ClaimRef, CSINode, PersistentVolume, PersistentVolumeClaim, VolumeSource
from core.plugins import PLUGINS
from core.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from core.plugins.volumebinding.plugin import VolumeBinding
from core.plugins.volumerestrictions import VolumeRestrictions
from core.plugins.volumezone import VolumeZone
from core.profile import Profile, parse_profile
from core.releases.differences import rules_of
from core.releases.release import RELEASES
from tests.core.plugins.values import random_events
from tests.properties import scheduling_pool as pool
from tests.properties.equivalence_machine import rendered

EVERY_PLUGIN: Final[Profile] = parse_profile(
    ",".join((*PLUGINS, "GeneralPredicates")), {"ServiceAffinity": {"affinity_labels": (pool.ZONE,)}}
)
EBS: Final = "kubernetes.io/aws-ebs"
UNTRANSLATABLE: Final = InlineDisk("v", VolumeSource("kubernetes.io/azure-disk", "d", in_tree=True, kind="Dedicated"))
IN_TREE: Final[tuple[Object, ...]] = (
    *(
        PersistentVolume(name=name, source=VolumeSource(EBS, "vol-1", in_tree=True), labels={pool.ZONE: zone})
        for name in ("pv0", "pv1")
        for zone in "ab"
    ),
    *(
        CSINode(name=name, volume_limits={pool.DRIVER: limit}, migrated_plugins=frozenset(plugins))
        for name in (*pool.NODE_NAMES, pool.FOREIGN)
        for limit, plugins in ((0, ()), (2, (EBS,)))
    ),
    *(
        PersistentVolume(
            name="pv0", storage_class="fast", capacity=2**31, phase="Available", claim=ClaimRef(namespace, "c0", "")
        )
        for namespace in pool.NAMESPACES
    ),
    *(
        PersistentVolumeClaim(namespace=namespace, name=name, storage_class="fast", requested=1, selected_node=node)
        for namespace in pool.NAMESPACES
        for name in ("c0", "c1")
        for node in (pool.FOREIGN, "n1")
    ),
    *(PersistentVolume(name="pv1", storage_class="fast", capacity=2**31, phase=phase) for phase in ("Available", "")),
    *(
        Pod("a-p0", "a", "p0", node_name=name, volumes=(UNTRANSLATABLE, PodClaim("c0", ephemeral=False)))
        for name in pool.NODE_NAMES
    ),
)
"""What volumes with an in-tree source, or a reserved one, add to the pool."""
NODES: Final = tuple(Node(f"more-{number}", {pool.ZONE: "b"}) for number in range(20))


def _identity(template: pool.V1, number: int) -> tuple[str, str]:
    """Return a name and a uid: no pod changes its namespace."""
    return f"p{number}", f"{template['metadata']['namespace']}-p{number}"


PLACES: Final = (*pool.NODE_NAMES, "more-19", "nowhere")
POOL: Final[tuple[Object, ...]] = (
    *pool.NODES,
    *NODES,
    *pool.NAMESPACE_STATES,
    *(each for each in (*pool.OTHERS, *IN_TREE) for _ in range(2)),
    *(
        pool.placed(template, _identity(template, number % 9), PLACES[number % len(PLACES)], phase)
        for number, template in enumerate(pool.PODS)
        for phase in ("Running", ("Terminating", "Succeeded", "Running")[number % 3])
    ),
)  # fmt: skip


def reported(objects: Iterable[Object], release: int) -> ClusterMirror:
    mirror = ClusterMirror(rules=rules_of(RELEASES[release]))
    for each in objects:
        mirror.apply(ClusterEvent("Add", each))
    return mirror


@pytest.mark.parametrize("release", range(len(RELEASES)))
def test_answers_after_any_events_are_those_of_a_mirror_made_anew(release: int) -> None:
    random = Random(release)  # noqa: S311 - no secret; the same in every run
    mirror, present = reported((), release), dict[tuple[type, str], Object]()
    for number, event in enumerate(random_events(release, POOL, 1000)):
        mirror.apply(event)
        each = event.object
        key = type(each), each.uid if isinstance(each, Pod) else each.full_name
        present.pop(key, None)
        if event.action != "Delete":
            present[key] = each
        if number % 10 == 0:
            objects = list(present.values())
            random.shuffle(objects)
            anew, names = reported(objects, release), list(mirror.nodes.slots)
            pod = pool.incoming(random.choice(pool.PODS), "q", random.choice(("", "rs-1")))
            retained = rendered(EVERY_PLUGIN, FreshEvaluation(mirror, pod), mirror.batch(names))
            assert retained == rendered(EVERY_PLUGIN, FreshEvaluation(anew, pod), anew.batch(names))


@pytest.mark.parametrize("seed", range(24))
def test_a_stranger_is_judged_as_a_node_without_pods(seed: int) -> None:
    random, release = Random(seed), seed % len(RELEASES)  # noqa: S311 - no secret; the same in every run
    unmirrored = [each for each in pool.NODES if each.name == pool.FOREIGN]
    others = [each for each in POOL if not (isinstance(each, Node) and each.name == pool.FOREIGN)]
    mirror = reported(random.sample(others, 120), release)
    names = [*mirror.nodes.slots, pool.FOREIGN]
    random.shuffle(names)
    for _ in range(5):
        templates = random.choice((pool.PODS, [each for each in pool.PODS if "volumes" in each["spec"]]))
        foreign, pod = random.choice(unmirrored), pool.incoming(random.choice(templates), "q", "rs-1")
        pod = random.choice((pod, replace(pod, node_name=pool.FOREIGN)))
        at = names.index(pool.FOREIGN)
        found = rendered(EVERY_PLUGIN, FreshEvaluation(mirror, pod), mirror.batch(names, {at: foreign}))
        mirror.apply(ClusterEvent("Add", foreign))
        expected = rendered(EVERY_PLUGIN, FreshEvaluation(mirror, pod), mirror.batch(names))
        mirror.apply(ClusterEvent("Delete", foreign))
        assert {side: each[at] for side, each in found.items()} == {side: each[at] for side, each in expected.items()}


@pytest.mark.parametrize("plugin", [VolumeRestrictions(), VolumeZone(), NodeVolumeLimits(), VolumeBinding()])
def test_pods_whose_claims_of_one_name_are_others_are_of_different_classes(plugin: Plugin) -> None:
    # kubernetes issue 56265: pods were stuck for ten minutes, as the names of their claims were all that was read.
    pod = Pod("p", "default", "p", volumes=(PodClaim("c"), PodClaim("gone")))
    mirror = ClusterMirror()
    for uid in "12":
        mirror.apply(ClusterEvent("Update", PersistentVolumeClaim(namespace="default", name="c", uid=uid)))
        assert plugin.references(mirror, pod) == (uid, None)


ALONE: Final = [name for name, each in PLUGINS.items() if issubclass(each, ScorePlugin) and each.normalizes_alone]


@pytest.mark.parametrize("name", ALONE)
def test_a_score_that_is_normalised_alone_is_so_in_any_company(name: str) -> None:
    plugin, random = PLUGINS[name](), Random(name)  # noqa: S311  # no secret
    assert isinstance(plugin, ScorePlugin)
    for _ in range(50):
        raw = np.array([random.randint(0, 100) for _ in range(random.randint(1, 6))], np.int64)
        part = raw[: random.randint(1, len(raw))]
        assert plugin.normalize(part.copy()).tolist() == plugin.normalize(raw.copy())[: len(part)].tolist()
