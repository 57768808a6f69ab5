"""The cluster mirror: nodes, assigned pods and namespaces as the last events left them."""

from collections.abc import Mapping, Sequence

from core.events import ClusterEvent
from core.mirror.affinity_counts import AffinityCounts
from core.mirror.node_info import NO_SLOT, NodeBatch, NodeInfo, NodeTable
from core.mirror.pod_columns import PodColumns
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.pod import Pod


class ClusterMirror:
    """State of a cluster, changed by `apply` alone, asked by plugins between two events.

    It holds the pods that occupy a node: assigned and not Succeeded or Failed. A pod whose node is not known (yet) is
    held, on no node, and counts from when the node appears. The order of events does not matter: the same objects in
    the end are the same state, counters and answers.
    """

    def __init__(self) -> None:
        self.nodes = NodeTable()
        self.pods = PodColumns()
        self.namespaces: dict[str, Mapping[str, str]] = {}  # name -> labels
        self.affinity = AffinityCounts(self.nodes, self.pods, self.namespaces)

    def apply(self, event: ClusterEvent) -> None:
        """Take over one change. Repeated, missed and unexpected events do no harm (see ClusterEvent)."""
        deleted = event.action == "Delete"
        match event.object:
            case Pod() as pod:
                self._set_pod(pod.uid, pod if pod.assigned and not deleted else None)
            case Node() as node:
                self._set_node(node.name, None if deleted else node)
            case Namespace() as namespace:
                self._set_namespace(namespace.name, None if deleted else namespace.labels)

    def batch(self, names: Sequence[str], objects: Mapping[int, Node] | None = None) -> NodeBatch:
        """Return the nodes of a question. `objects` are whole nodes by position, read only where a name is unknown."""
        return NodeBatch(self.nodes, names, objects or {})

    def _set_pod(self, uid: str, pod: Pod | None) -> None:
        known = self.pods.get(uid)
        if known is not None and pod is not None and _counts_alike(known, pod):
            return  # most updates are of the status
        if known is not None:
            self._remove_pod(known)
        if pod is not None:
            self._add_pod(pod)

    def _add_pod(self, pod: Pod) -> None:
        row = self.pods.insert(pod)
        self.affinity.hold(pod)
        info = self.nodes.info(pod.node_name)
        info.rows.add(row)
        if info.node is not None:
            self._place(row, info.slot)

    def _remove_pod(self, pod: Pod) -> None:
        row = self.pods.rows[pod.uid]
        info = self.nodes.infos[pod.node_name]
        if info.node is not None:
            self._displace(row)
        info.rows.remove(row)
        self.nodes.drop_if_empty(info)
        self.affinity.drop(pod)
        self.pods.remove(pod)

    def _set_node(self, name: str, node: Node | None) -> None:
        if node is None:
            if name in self.nodes.slots:
                self._remove_node(self.nodes.infos[name])
            return
        info = self.nodes.info(name)
        if info.node is None:
            self._add_node(info, node)
        else:
            self._relabel_node(info, node)

    def _add_node(self, info: NodeInfo, node: Node) -> None:
        self.nodes.occupy(info, node)
        self.affinity.columns.grow(self.nodes.capacity)
        for column in self.affinity.columns.changed_by(info.slot, node.labels):
            column.assign(info.slot, node.labels.get(column.key))
        for row in info.rows:
            self._place(row, info.slot)

    def _remove_node(self, info: NodeInfo) -> None:
        for row in info.rows:
            self._displace(row)
        for column in self.affinity.columns.changed_by(info.slot, {}):
            column.assign(info.slot, None)
        self.nodes.vacate(info)

    def _relabel_node(self, info: NodeInfo, node: Node) -> None:
        info.node = node
        changed = self.affinity.columns.changed_by(info.slot, node.labels)
        if not changed:
            return
        # The pods leave their old domains and enter the new ones; nothing may be counted while a slot changes value.
        for row in info.rows:
            self._displace(row)
        for column in changed:
            column.assign(info.slot, node.labels.get(column.key))
        for row in info.rows:
            self._place(row, info.slot)

    def _set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        before = self.namespaces.get(name)
        if before == labels:
            return
        if labels is None:
            del self.namespaces[name]
        else:
            self.namespaces[name] = labels
        self.affinity.namespace_changed(name, before)

    def _place(self, row: int, slot: int) -> None:
        self.pods.slot_of_row[row] = slot
        self.affinity.count(self.pods.pods[row], slot, 1)

    def _displace(self, row: int) -> None:
        self.affinity.count(self.pods.pods[row], int(self.pods.slot_of_row[row]), -1)
        self.pods.slot_of_row[row] = NO_SLOT


def _counts_alike(known: Pod, pod: Pod) -> bool:
    return (
        known.node_name == pod.node_name
        and known.namespace == pod.namespace
        and known.labels == pod.labels
        and known.affinity == pod.affinity
    )
