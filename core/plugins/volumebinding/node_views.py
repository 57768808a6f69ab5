"""The nodes of a batch, grouped by the fields that a pod's volumes read."""

from collections.abc import Sequence

import numpy as np

from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.node_values import LabelProjections, LabelValues, labels_of
from core.mirror.topology import BoolArray, Int64Array, IntpArray
from core.plugins.volumebinding.filtering import NodeView, PodVolumes
from core.plugins.volumebinding.migrated_plugins import MigratedPlugins


def node_views(mirror: ClusterMirror, volumes: PodVolumes, batch: NodeBatch) -> tuple[IntpArray, Sequence[NodeView]]:
    """Return for each node the index of its view in the returned list of distinct views."""
    keys = volumes.keys
    combined, labels = _label_values(mirror, keys, batch)
    plugins = [frozenset[str]()]
    if volumes.reads_migration:
        places, plugins = mirror.derived(MigratedPlugins).of(batch)
        combined = combined * len(plugins) + places
    selected = volumes.selected_nodes
    combined = combined * 2 + (_named(mirror, selected, batch) if selected else 0)
    distinct, places_of_views = np.unique(combined, return_inverse=True)
    views = [
        NodeView(labels_of(keys, labels[each // 2 // len(plugins)]), plugins[each // 2 % len(plugins)], bool(each % 2))
        for each in distinct.tolist()
    ]
    return places_of_views, views


def _label_values(
    mirror: ClusterMirror, keys: tuple[str, ...], batch: NodeBatch
) -> tuple[Int64Array, list[LabelValues | None]]:
    values: list[LabelValues | None] = []

    def number(each: LabelValues | None) -> int:
        values.append(each)
        return len(values) - 1

    return mirror.derived(LabelProjections).of(keys).judged(batch, number), values


def _named(mirror: ClusterMirror, names: set[str | None], batch: NodeBatch) -> BoolArray:
    """Return for each node whether `names` has its name and no other."""
    if len(names) > 1:
        return np.zeros(len(batch), np.bool_)
    (name,) = names
    named: BoolArray = batch.slots == mirror.nodes.slots.get(name or "", NO_SLOT)  # NO_SLOT is corrected below
    for position in batch.strangers:
        named[position] = batch.names[position] == name
    return named
