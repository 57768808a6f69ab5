"""Mirrors of core values, random lives of them, and the statuses that a plugin gives nodes."""

from collections.abc import Sequence
from random import Random
from typing import Any

from core.events import ClusterEvent, Object
from core.framework.interface import SKIP, SUCCESS, Status
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import Pod


def random_events(seed: int, pool: Sequence[Object], length: int) -> list[ClusterEvent]:
    """Return a life in which the objects of a pool come, turn into others of their name, and go."""
    random = Random(seed)  # noqa: S311 - no secret; the same in every run
    return [ClusterEvent(random.choice(("Update", "Update", "Delete")), random.choice(pool)) for _ in range(length)]


def mirror_of(*objects: Object) -> ClusterMirror:
    """Return a mirror that was told of the objects, in their order."""
    mirror = ClusterMirror()
    tell(mirror, *objects)
    return mirror


def tell(mirror: ClusterMirror, *objects: Object) -> None:
    """Apply one event for each of the objects: it is there, and so."""
    for each in objects:
        mirror.apply(ClusterEvent("Update", each))


def delete(mirror: ClusterMirror, *objects: Object) -> None:
    """Apply one event for each of the objects: it is gone."""
    for each in objects:
        mirror.apply(ClusterEvent("Delete", each))


def filtered(
    plugin: Any,  # noqa: ANN401 - any filter, whatever its state is
    mirror: ClusterMirror,
    pod: Pod,
    *names: str,
    whole: Sequence[Node] = (),
    may_skip: bool = False,
) -> list[Status]:
    """Filter a pod over nodes by name, and then over whole ones; a pod that the filter may skip fits everywhere."""
    status, state = plugin.pre_filter(mirror, pod)
    objects = {len(names) + index: node for index, node in enumerate(whole)}
    batch = mirror.batch([*names, *(node.name for node in whole)], objects)
    if state is None and may_skip:
        return [SUCCESS if status == SKIP else status] * len(batch)
    assert (status, state is not None) == (SUCCESS, True)
    verdicts = plugin.filter(state, batch)
    return [verdicts.status(position) for position in range(len(batch))]
