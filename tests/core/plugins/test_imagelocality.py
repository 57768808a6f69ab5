"""ImageLocality: what the images that a node has are worth, and how the states of images are kept.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/imagelocality/image_locality.go.
"""

from random import Random
from typing import Final

import numpy as np
import pytest

from core.events import ClusterEvent
from core.framework.interface import SKIP, Operation, Scope
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.imagelocality import MAX_COLUMNS, ImageLocality, ImageStates
from tests.builders import NodeBuilder, make_node
from tests.core.decoded import mirror_of, node_of, tell
from tests.core.plugins.cached_answers import assert_cached_scores_are_fresh, random_events

MIB: Final = 1024 * 1024
WEB: Final = make_node("web").image(1000 * MIB, "web:1")


def pod_with(*images: str) -> Pod:
    return Pod(uid="incoming", namespace="default", name="incoming", images=images)


def scores(mirror: ClusterMirror, pod: Pod, *names: str, whole: tuple[Node, ...] = ()) -> list[int]:
    """Score a pod over nodes by name, and then over whole ones."""
    plugin = ImageLocality()
    objects = {len(names) + index: node for index, node in enumerate(whole)}
    batch = mirror.batch([*names, *(node.name for node in whole)], objects)
    _, state = plugin.pre_score(mirror, pod, batch)
    assert state is not None
    found: list[int] = plugin.normalize(plugin.score(state, batch)).tolist()
    return found


def test_a_pod_without_containers_is_skipped() -> None:
    mirror = mirror_of(WEB)
    assert ImageLocality().pre_score(mirror, pod_with(), mirror.batch(["web"])) == (SKIP, None)


def test_the_size_is_what_the_node_itself_says() -> None:
    # As in getNodeImageStates; in the cache of upstream it would be the size on the node that came first.
    mirror = mirror_of(make_node("a").image(1000 * MIB, "web:1"), make_node("b").image(23 * MIB, "web:1"))
    assert scores(mirror, pod_with("web:1"), "a", "b") == [100, 0]


def test_a_stranger_counts_as_one_node_more() -> None:
    mirror = mirror_of(WEB, make_node("other"))
    stranger = node_of(make_node("stranger").image(900 * MIB, "web:1").image(300 * MIB, "new:1"))
    # Two of three nodes have web, one of three has new.
    expected = 100 * (600 + 100 - 23) // (2000 - 23)
    assert scores(mirror, pod_with("web:1", "new:1"), "web", whole=(stranger,))[1] == expected


def test_a_name_of_which_nothing_is_known_does_no_harm() -> None:
    assert scores(mirror_of(WEB), pod_with("web:1"), "nobody", "web") == [0, 100]


def test_strangers_can_be_scored_where_no_node_is_known() -> None:
    assert scores(ClusterMirror(), pod_with("web:1"), whole=(node_of(WEB),)) == [100]


def test_an_image_that_comes_to_another_node_is_worth_more_where_it_was() -> None:
    mirror = mirror_of(WEB, make_node("other"))
    before = scores(mirror, pod_with("web:1"), "web")
    tell(mirror, "Update", make_node("other").image(MIB, "web:1"))
    assert [before, scores(mirror, pod_with("web:1"), "web")] == [[48], [100]]


def test_a_node_that_goes_takes_its_images_along() -> None:
    mirror = mirror_of(WEB, make_node("gone").image(1000 * MIB, "web:1", "rare:1"))
    scores(mirror, pod_with("rare:1"), "web")
    tell(mirror, "Delete", make_node("gone"))
    states = mirror.derived(ImageStates)
    assert (states.total, dict(states.holders)) == (1, {"web:1": 1})


def test_more_images_can_be_asked_for_than_are_kept() -> None:
    names = [f"image-{number}:1" for number in range(MAX_COLUMNS + 10)]
    mirror = mirror_of(make_node("n").image(1000 * MIB, *names))
    for start in range(0, len(names), 50):
        some = names[start : start + 50]
        assert scores(mirror, pod_with(*some), "n") == [100]
    assert mirror.derived(ImageStates).columns == MAX_COLUMNS
    assert scores(mirror, pod_with(names[0]), "n") == [100]


def random_node(random: Random, number: int) -> NodeBuilder:
    node = make_node(f"n{number}")
    for name in "abcd":
        if random.random() < 0.4:
            node = node.image(random.choice((100, 400, 900)) * MIB, f"{name}:1")
    return node


@pytest.mark.parametrize("seed", range(5))
def test_states_kept_by_events_are_those_made_anew(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret; the same in every run
    mirror = ClusterMirror()
    names = ["a:1", "b:1", "d:1"]
    kept = mirror.derived(ImageStates)
    for event in random_events(seed, [node_of(random_node(random, at % 40)) for at in range(120)], 300):
        mirror.apply(event)
        anew = ImageStates(mirror)
        assert (kept.total, kept.holders) == (anew.total, anew.holders)
        if random.random() < 0.3:
            np.testing.assert_array_equal(kept.sizes(names), anew.sizes(names))


def test_cached_scores_are_fresh_ones() -> None:
    random = Random(7)  # noqa: S311 - no secret; the same in every run
    pool = [node_of(random_node(random, at % 6)) for at in range(40)]
    assert_cached_scores_are_fresh(
        ImageLocality(), random_events(7, pool, 200), [pod_with("a:1"), pod_with("b:1", "c:1")]
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(WEB, WEB.image(1, "new:1"), True, id="an-image-came"),
        pytest.param(WEB, make_node("web"), True, id="an-image-went"),
        pytest.param(WEB, make_node("web").image(1, "web:1"), True, id="an-image-of-another-size"),
        pytest.param(WEB, WEB.label("zone", "a").condition("Ready", "True"), False, id="a-label-and-a-heartbeat"),
    ],
)
def test_a_node_s_images_and_nothing_else_of_it_touch_all_nodes(
    before: NodeBuilder,
    after: NodeBuilder,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    (rule,) = [rule for rule in ImageLocality().invalidated_by if Operation.UPDATE in rule.operations]
    assert rule.scope is Scope.ALL
    assert rule.touches(node_of(before), node_of(after)) is expected


@pytest.mark.parametrize("operation", [Operation.ADD, Operation.DELETE])
def test_a_node_that_comes_or_goes_touches_all_nodes(operation: Operation) -> None:
    (rule,) = [rule for rule in ImageLocality().invalidated_by if operation in rule.operations]
    assert (rule.kind, rule.scope) == (Node, Scope.ALL)
    assert rule.touches(None, node_of(WEB))
    assert rule.touches(node_of(WEB), None)


def test_applying_an_update_that_changes_no_image_recounts_nothing() -> None:
    mirror = mirror_of(WEB)
    kept = mirror.derived(ImageStates)
    mirror.apply(ClusterEvent("Update", node_of(WEB.label("zone", "a"))))
    assert (kept.total, dict(kept.holders)) == (1, {"web:1": 1})


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
    mirror, stranger = mirror_of(*nodes[:10]), node_of(nodes[11])
    pod = pod_with(*random.choices((*names, "rare:1"), k=25))
    found = []
    for many in (0, 1000):
        monkeypatch.setattr("core.plugins.imagelocality.MANY_IMAGES", many)
        found.append(scores(mirror, pod, *(f"n{number}" for number in range(10)), whole=(stranger,)))
    assert found[0] == found[1]
    assert len(set(found[0])) > 1


def test_no_column_is_kept_of_the_images_of_a_pod_with_many() -> None:
    names = [f"image-{number}:1" for number in range(1000)]
    mirror = mirror_of(make_node("n").image(1000 * MIB, *names))
    assert scores(mirror, pod_with(*names), "n") == [100]
    assert not mirror.derived(ImageStates).columns
