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
