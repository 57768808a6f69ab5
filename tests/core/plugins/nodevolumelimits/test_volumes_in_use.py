"""The volumes of every node: counted again after the events that change them, and after no others."""

from typing import Final

import numpy as np
import pytest

from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.plugins.nodevolumelimits.volumes_in_use import NO_LIMIT, VolumesInUse
from tests.core.plugins.cached_answers import random_events
from tests.core.plugins.nodevolumelimits.test_caching import POOL
from tests.core.plugins.nodevolumelimits.values import DRIVER, attachment, claim, csi_node, csi_volume, pod_with
from tests.core.plugins.told import delete, mirror_of, tell

CLUSTER: Final = (Node(name="n1"), csi_node("n1", 5), claim("a", "pv-a"), csi_volume("pv-a"))


def counted(mirror: ClusterMirror, name: str = "n1") -> int:
    """Return how many volumes of the driver a node has attached."""
    in_use = mirror.derived(VolumesInUse)
    in_use.refresh()
    column = in_use.attached.get(DRIVER)
    return 0 if column is None else int(column[mirror.nodes.slots[name]])


def told(in_use: VolumesInUse) -> dict[str, object]:
    """Return all that is read of the columns, without the drivers that no node has any more."""
    in_use.refresh()
    return {
        "migration": in_use.migration.tolist(),
        "limited": in_use.limited.tolist(),
        "limits": {driver: each.tolist() for driver, each in in_use.limits.items() if (each != NO_LIMIT).any()},
        "attached": {driver: each.tolist() for driver, each in in_use.attached.items() if each.any()},
        "users": {volume: slots for volume, slots in in_use.users.items() if slots},
        "errors": in_use.errors.keys(),  # of two pods at fault, either may be told of
    }


@pytest.mark.parametrize("seed", range(3))
def test_columns_that_were_kept_equal_columns_made_anew(seed: int) -> None:
    mirror = ClusterMirror()
    kept = mirror.derived(VolumesInUse)
    for number, event in enumerate(random_events(seed, POOL, 400)):
        mirror.apply(event)
        if number % 3 == 0:
            assert told(VolumesInUse(mirror)) == told(kept)


def test_columns_grow_with_the_nodes() -> None:
    mirror = mirror_of(*CLUSTER, pod_with("a", name="p", on="n40"))
    assert counted(mirror) == 0
    tell(mirror, *(Node(name=f"n{number}") for number in range(2, 41)), csi_node("n40", 7))
    assert counted(mirror, "n40") == 1
    in_use = mirror.derived(VolumesInUse)
    assert in_use.limits[DRIVER][[mirror.nodes.slots["n1"], mirror.nodes.slots["n40"]]].tolist() == [5, 7]
    assert len(in_use.limited) == mirror.nodes.capacity


def test_a_volume_of_two_pods_counts_once_until_both_are_gone() -> None:
    first, second = (pod_with("a", name=name, on="n1") for name in ("p", "q"))
    mirror = mirror_of(*CLUSTER, first, second)
    assert counted(mirror) == 1
    delete(mirror, first)
    assert counted(mirror) == 1
    delete(mirror, second)
    assert counted(mirror) == 0


def test_a_pod_that_moves_takes_its_volumes_along() -> None:
    mirror = mirror_of(*CLUSTER, Node(name="n2"), pod_with("a", name="p", on="n1"))
    assert (counted(mirror), counted(mirror, "n2")) == (1, 0)
    tell(mirror, pod_with("a", name="p", on="n2"))
    assert (counted(mirror), counted(mirror, "n2")) == (0, 1)


def test_a_claim_that_turns_up_after_its_pod_counts() -> None:
    mirror = mirror_of(Node(name="n1"), pod_with("a", name="p", on="n1"), csi_volume("pv-a"))
    assert counted(mirror) == 0
    tell(mirror, claim("a", "pv-a"))
    assert counted(mirror) == 1


def test_a_volume_that_turns_up_after_its_attachment_counts() -> None:
    mirror = mirror_of(Node(name="n1"), attachment("att", "pv-a", "n1"))
    assert counted(mirror) == 0
    tell(mirror, csi_volume("pv-a"))
    assert counted(mirror) == 1


def test_an_attachment_that_turns_up_before_its_node_counts() -> None:
    mirror = mirror_of(csi_volume("pv-a"), attachment("att", "pv-a", "n1"))
    mirror.derived(VolumesInUse).refresh()
    tell(mirror, Node(name="n1"))
    assert counted(mirror) == 1


def test_a_new_node_in_the_slot_of_another_has_none_of_its_volumes() -> None:
    mirror = mirror_of(*CLUSTER, pod_with("a", name="p", on="n1"))
    assert counted(mirror) == 1
    slot = mirror.nodes.slots["n1"]
    delete(mirror, Node(name="n1"))
    tell(mirror, Node(name="other"))
    assert mirror.nodes.slots["other"] == slot
    assert counted(mirror, "other") == 0
    assert not mirror.derived(VolumesInUse).limited[slot]


def test_what_no_node_follows_from_any_more_is_forgotten() -> None:
    running = pod_with("a", name="p", on="n1")
    mirror = mirror_of(*CLUSTER, running, attachment("att", "pv-a", "n1"))
    assert counted(mirror) == 1
    delete(mirror, running, attachment("att", "pv-a", "n1"), Node(name="n1"))
    in_use = mirror.derived(VolumesInUse)
    in_use.refresh()
    assert not in_use.users
    assert not in_use.errors
    assert not np.concatenate([*in_use.attached.values()]).any()
