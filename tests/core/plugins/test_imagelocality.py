"""ImageLocality: what the images that a node has are worth, and how the states of images are kept.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/imagelocality/image_locality.go.
"""

from random import Random
from typing import Final

import pytest

from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import Demand, Pod
from core.plugins.imagelocality import MAX_COLUMNS, ImageLocality, ImageStates
from core.releases.differences import rules_of
from core.releases.release import Release
from tests.builders import make_node
from tests.core.decoded import mirror_of, node_of

MIB: Final = 1024 * 1024
WEB: Final = make_node("web").image(1000 * MIB, "web:1")


def pod_with(*images: str) -> Pod:
    return Pod(uid="incoming", namespace="default", name="incoming", demand=Demand(images=images))


def scores(mirror: ClusterMirror, pod: Pod, *names: str, whole: tuple[Node, ...] = ()) -> list[int]:
    """Score a pod over nodes by name, and then over whole ones."""
    plugin = ImageLocality()
    objects = {len(names) + index: node for index, node in enumerate(whole)}
    batch = mirror.batch([*names, *(node.name for node in whole)], objects)
    _, state = plugin.pre_score(mirror, pod, batch)
    assert state is not None
    found: list[int] = plugin.normalize(plugin.score(state, batch)).tolist()
    return found


def test_strangers_can_be_scored_where_no_node_is_known() -> None:
    assert scores(ClusterMirror(), pod_with("web:1"), whole=(node_of(WEB),)) == [100]


def test_a_pod_without_containers_has_a_score_by_upstreams_order_of_limits() -> None:
    """calculatePriority: below the least it is the least, and only else the highest, which is 0 for no container."""
    mirror = mirror_of(WEB, make_node("bare"))
    assert scores(mirror, pod_with(), "web", "bare") == [0, 0]
    mirror.change_rules(rules_of(Release(1, 36)))  # image volumes count, but not for the number of images
    volume = Pod(uid="incoming", namespace="default", name="incoming", demand=Demand(image_volumes=("web:1",)))
    assert scores(mirror, volume, "web", "bare") == [100, 0]


def test_more_images_can_be_asked_for_than_are_kept() -> None:
    names = [f"image-{number}:1" for number in range(MAX_COLUMNS + 10)]
    mirror = mirror_of(make_node("n").image(1000 * MIB, *names))
    for start in range(0, len(names), 50):
        some = names[start : start + 50]
        assert scores(mirror, pod_with(*some), "n") == [100]
    assert len(mirror.derived(ImageStates).columns) == MAX_COLUMNS
    assert scores(mirror, pod_with(names[0]), "n") == [100]


@pytest.mark.parametrize("seed", range(5))
def test_many_images_are_added_up_as_few_are(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret; the same in every run
    names = [f"image-{number}:1" for number in range(30)]
    nodes = []
    for number in range(12):
        node = make_node(f"n{number}")
        for name in random.sample(names, 20):
            node = node.image(random.randrange(300 * MIB), name)
        nodes.append(node)
    mirror, foreign = mirror_of(*nodes[:10]), node_of(nodes[11])
    pod = pod_with(*random.choices((*names, "rare:1"), k=25))
    found = []
    for many in (0, 1000):
        monkeypatch.setattr("core.plugins.imagelocality.MANY_IMAGES", many)
        found.append(scores(mirror, pod, *(f"n{number}" for number in range(10)), whole=(foreign,)))
    assert found[0] == found[1]
    assert len(set(found[0])) > 1


def test_no_column_is_kept_of_the_images_of_a_pod_with_many() -> None:
    names = [f"image-{number}:1" for number in range(1000)]
    mirror = mirror_of(make_node("n").image(1000 * MIB, *names))
    assert scores(mirror, pod_with(*names), "n") == [100]
    assert not mirror.derived(ImageStates).columns
