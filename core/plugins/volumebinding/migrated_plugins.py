"""The in-tree plugins that each node attaches by CSI, according to its CSINode, updated by events."""

from typing import Final, TypeAlias

from core.mirror.changes import Change, NodeChange, ObjectChange
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.topology import DistinctValues, Int32Array
from core.objects.volumes import CSINode

Plugins: TypeAlias = frozenset[str]

_NONE: Plugins = frozenset()


class MigratedPlugins:
    """Node slot -> the plugins. A node without any has no value."""

    hears: Final = (NodeChange, ObjectChange)

    def __init__(self, mirror: ClusterMirror) -> None:
        self._mirror = mirror
        self._column: DistinctValues[Plugins] = DistinctValues(mirror.nodes.capacity)
        for slot, node in mirror.nodes:
            self._column.assign(slot, self._of(node.name) or None)

    def changed(self, change: Change) -> None:
        """Handle a node or CSINode that is added, removed or changed."""
        if isinstance(change, NodeChange):
            self._column.grow(change.slot + 1)
            self._column.assign(change.slot, None if change.after is None else self._of(change.after.name) or None)
        elif isinstance(change, ObjectChange) and change.kind is CSINode and change.slot != NO_SLOT:
            self._column.assign(change.slot, None if change.after is None else change.after.migrated_plugins or None)

    def of(self, batch: NodeBatch) -> tuple[Int32Array, list[Plugins]]:
        """Return for each node the index of its plugins in the returned list."""
        places: Int32Array = self._column.of_slot[batch.slots] + 1  # ABSENT gives 0; NO_SLOT is corrected below
        plugins = [_NONE, *self._column.values]
        for position, node in batch.strangers.items():
            places[position] = len(plugins)
            plugins.append(_NONE if node is None else self._of(node.name))
        return places, plugins

    def _of(self, name: str) -> Plugins:
        csi_node = self._mirror.objects(CSINode).get(name)
        return _NONE if csi_node is None else csi_node.migrated_plugins
