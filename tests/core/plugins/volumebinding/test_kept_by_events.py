"""What VolumeBinding keeps over the mirror: after any events it is as if made anew."""

from typing import Final

import pytest

from core.events import Object
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.volumes import CSINode
from core.plugins.volumebinding.claims import MigratedPlugins, Offers
from tests.core.plugins.cached_answers import random_events
from tests.core.plugins.told import delete, mirror_of, tell
from tests.core.plugins.volumebinding.test_caching import CLAIMS, CLASSES, POOL
from tests.core.plugins.volumebinding.values import free_volume, reserved_volume, room, unbound

NODES: Final = ("n1", "n2", "n3")


def offered(offers: Offers) -> object:
    """Return all that is offered, without an order."""
    return (
        {name: {each.full_name: each for each in offers.free(name).by_topology} for name in CLASSES},
        {claim: {each.full_name: each for each in offers.reserved(claim)} for claim in CLAIMS},
        {name: {each.full_name: each for each in offers.room(name)} for name in CLASSES},
    )


def migrated(kept: MigratedPlugins, mirror: ClusterMirror) -> list[frozenset[str]]:
    places, plugins = kept.of(mirror.batch(NODES, {at: Node(name=name) for at, name in enumerate(NODES)}))
    return [plugins[place] for place in places.tolist()]


@pytest.mark.parametrize("seed", range(3))
def test_what_was_kept_equals_what_is_made_anew(seed: int) -> None:
    mirror = ClusterMirror()
    offers, plugins = mirror.derived(Offers), mirror.derived(MigratedPlugins)
    for event in random_events(seed, POOL, 400):
        mirror.apply(event)
        assert offered(Offers(mirror)) == offered(offers)
        assert migrated(MigratedPlugins(mirror), mirror) == migrated(plugins, mirror)


@pytest.mark.parametrize(
    "offer", [free_volume("pv"), reserved_volume("pv", "a"), room("c", 5)], ids=["free", "reserved", "capacity"]
)
def test_an_offer_that_is_gone_is_not_made_again(offer: Object) -> None:
    mirror = mirror_of(offer)
    offers = mirror.derived(Offers)
    delete(mirror, offer)
    assert offered(offers) == offered(Offers(mirror_of()))


def test_a_volume_that_is_bound_is_offered_to_its_claim_alone() -> None:
    mirror = mirror_of(free_volume("pv"))
    offers = mirror.derived(Offers)
    assert [volume.name for volume in offers.free("wait").by_topology] == ["pv"]
    tell(mirror, reserved_volume("pv", "a"))
    assert list(offers.free("wait").by_topology) == []
    assert [volume.name for volume in offers.reserved(unbound("a"))] == ["pv"]


def test_migrated_plugins_are_there_for_nodes_beyond_the_first_slots() -> None:
    mirror = mirror_of()
    kept = mirror.derived(MigratedPlugins)
    names = [f"n{number}" for number in range(40)]
    csi_node = CSINode(name="n39", migrated_plugins=frozenset({"x"}))
    tell(mirror, *(Node(name=name) for name in names), csi_node)
    places, plugins = kept.of(mirror.batch(names))
    assert [plugins[place] for place in places.tolist()] == [frozenset()] * 39 + [frozenset({"x"})]
