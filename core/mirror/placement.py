"""The pods on each node with all derived counts. One module updates all of them, so that they stay consistent."""

from collections.abc import Collection, Mapping

import numpy as np
from msgspec.structs import replace

from core.mirror.affinity_counts import AffinityCounts
from core.mirror.changes import Listeners, NamespaceChange, NodeChange, PodChange, RulesChange
from core.mirror.generation_store import GenerationCounter
from core.mirror.node_info import NO_SLOT, NodeInfo, NodeTable
from core.mirror.pod_columns import PodColumns
from core.mirror.topology import TopologyColumn
from core.mirror.work import Work
from core.objects.node import Node
from core.objects.pod import Pod, counted
from core.releases import Rules


class Placement:
    """Nodes, pods and namespaces, with their term counters, requests and generations. All pods here are placed."""

    def __init__(self, generations: GenerationCounter, work: Work, rules: Rules) -> None:
        self.rules = rules
        self.counting = rules.request_counting
        self.listeners = Listeners()
        self.nodes = NodeTable(generations)
        self.pods = PodColumns()
        self.namespaces: dict[str, Mapping[str, str]] = {}  # name -> labels
        self.affinity = AffinityCounts(self.nodes, self.pods, self.namespaces, work)

    def add_pod(self, pod: Pod) -> None:
        """Add a new pod to the node that it names."""
        self._enter(pod)
        self._tell_of_pod(pod.node_name, None, pod)

    def remove_pod(self, pod: Pod) -> None:
        """Remove a pod. `pod` is the object that the mirror holds."""
        slot = self.nodes.infos[pod.node_name].slot
        self._leave(pod)
        if slot != NO_SLOT and self.listeners:
            self.listeners.tell(PodChange(slot, pod, None))

    def update_pod(self, known: Pod, pod: Pod) -> None:
        """Replace a pod by its newer state, which may be on another node."""
        if known.node_name != pod.node_name:
            self.remove_pod(known)
            self.add_pod(pod)
        elif not _counts_alike(known, pod):
            self._leave(known)
            self._enter(pod)
            self._tell_of_pod(pod.node_name, known, pod)
        elif known.resource_version != pod.resource_version or known != pod:
            self.pods.replace(pod)
            info = self.nodes.infos[pod.node_name]
            # Most updates change only parts of the status that nobody reads.
            if replace(known, resource_version=pod.resource_version) == pod:
                self.nodes.touch(info)
                return
            if known.requests != pod.requests or known.best_effort != pod.best_effort:
                info.requested.count(known, -1)
                info.requested.count(pod, 1)
            self.nodes.touch(info)
            self._tell_of_pod(pod.node_name, known, pod)

    def change_rules(self, rules: Rules) -> list[Pod]:
        """Count all pods by other rules. Return the new state of the pods whose counted requests change."""
        before, self.rules = self.rules, rules
        self.counting = rules.request_counting
        recounted = []
        resized = [pod for row in self.pods.rows.values() if (pod := self.pods.pods[row]).resources is not None]
        for known in resized:
            pod = counted(known, self.counting)
            if pod != known:
                self.update_pod(known, pod)
                recounted.append(pod)
        self.listeners.tell(RulesChange(before, rules))
        return recounted

    # For Supposition, which informs the listeners. Nothing here takes a generation, except `keep_pod`.

    def suppose_deleted(self, uid: str) -> None:
        """Stop counting a placed pod, but keep holding it."""
        self._displace(self.pods.rows[uid])

    def suppose_back(self, uid: str, slot: int) -> None:
        """Undo `suppose_deleted`: count the pod on the node of its slot."""
        self._place(self.pods.rows[uid], slot)

    def suppose_pod(self, pod: Pod) -> int | None:
        """Count a supposed pod on the known node that it names. Return its row if the mirror also holds the pod."""
        held = self.pods.rows.get(pod.uid)
        row = self.pods.insert(pod, self.affinity.hold(pod))
        self._place(row, self.nodes.slots[pod.node_name])
        return held

    def withdraw_pod(self, pod: Pod, held: int | None) -> None:
        """Remove a supposed pod. `held` is the result of `suppose_pod`."""
        self._displace(self.pods.rows[pod.uid])
        self.affinity.drop(pod)
        if held is None:
            self.pods.remove(pod)
        else:
            self.pods.uncover(pod.uid, held)

    def keep_pod(self, pod: Pod) -> None:
        """Add a supposed pod to its NodeInfo, with a generation. Listeners have the change already."""
        self._join(self.pods.rows[pod.uid], pod)

    def suppose_node(self, node: Node) -> NodeInfo:
        """Make an unknown node known, with the pods that wait for it."""
        info = self.nodes.info(node.name)
        self.nodes.suppose(info, node)
        self._enter_domains(info, node)
        return info

    def suppose_state(self, info: NodeInfo, node: Node) -> Node:
        """Replace the state of a known node, and return the state before. Raises ValueError for an unknown node."""
        before = self.nodes.suppose_state(info, node)
        changed = self.affinity.columns.changed_by(info.slot, before.labels, node.labels)
        if changed:
            # Not the rows of the NodeInfo: some of its pods may be supposed gone, and other pods supposed here.
            rows = np.flatnonzero(self.pods.slot_of_row == info.slot).tolist()
            self._move_domains(info, node, changed, rows)
        return before

    def withdraw_node(self, info: NodeInfo) -> None:
        """Make a supposed node unknown again. Supposed nodes must be withdrawn in reverse order."""
        self._leave_domains(info)
        self.nodes.withdraw(info)

    # Nodes and namespaces.

    def set_node(self, name: str, node: Node | None) -> None:
        """Replace the state of a node. None means that the node does not exist (any more)."""
        if node is None:
            if name in self.nodes.slots:
                self._remove_node(self.nodes.infos[name])
            return
        info = self.nodes.info(name)
        if info.node is None:
            self._add_node(info, node)
        elif info.node != node:
            self._update_node(info, node)

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Replace the labels of a namespace. None means that there is no such Namespace (any more)."""
        before = self.namespaces.get(name)
        if before == labels:
            return
        if labels is None:
            del self.namespaces[name]
        else:
            self.namespaces[name] = labels
        # Owner counters need no update: a request reads the labels of the incoming pod's namespace.
        self.affinity.matches.namespace_changed(name, before)
        if self.listeners:
            self.listeners.tell(NamespaceChange(name, before, labels))

    def _enter(self, pod: Pod) -> None:
        row = self.pods.insert(pod, self.affinity.hold(pod))
        info = self._join(row, pod)
        if info.node is not None:
            self._place(row, info.slot)

    def _join(self, row: int, pod: Pod) -> NodeInfo:
        """Add a pod to the NodeInfo of the node that it names."""
        info = self.nodes.info(pod.node_name)
        info.rows.add(row)
        info.requested.count(pod, 1)
        self.nodes.touch(info)
        return info

    def _leave(self, pod: Pod) -> None:
        row = self.pods.rows[pod.uid]
        info = self.nodes.infos[pod.node_name]
        if info.node is not None:
            self._displace(row)
        info.rows.remove(row)
        info.requested.count(pod, -1)
        self.nodes.touch(info)
        self.nodes.drop_if_empty(info)
        self.affinity.drop(pod)
        self.pods.remove(pod)

    def _add_node(self, info: NodeInfo, node: Node) -> None:
        self.nodes.occupy(info, node)
        self._enter_domains(info, node)
        if self.listeners:
            self.listeners.tell(NodeChange(info.slot, None, node))
            for row in info.rows:
                self.listeners.tell(PodChange(info.slot, None, self.pods.pods[row]))

    def _remove_node(self, info: NodeInfo) -> None:
        node, slot = info.node, info.slot
        pods = [self.pods.pods[row] for row in info.rows]
        self._leave_domains(info)
        self.nodes.vacate(info)
        if self.listeners:
            for pod in pods:
                self.listeners.tell(PodChange(slot, pod, None))
            self.listeners.tell(NodeChange(slot, node, None))

    def _enter_domains(self, info: NodeInfo, node: Node) -> None:
        self.affinity.columns.grow(self.nodes.capacity)
        for column in self.affinity.columns.changed_by(info.slot, {}, node.labels):
            column.assign(info.slot, node.labels.get(column.key))
        for row in info.rows:
            self._place(row, info.slot)

    def _leave_domains(self, info: NodeInfo) -> None:
        for row in info.rows:
            self._displace(row)
        labels = info.node.labels if info.node is not None else {}
        for column in self.affinity.columns.changed_by(info.slot, labels, {}):
            column.assign(info.slot, None)

    def _update_node(self, info: NodeInfo, node: Node) -> None:
        before = info.node
        self.nodes.update(info, node)
        changed = self.affinity.columns.changed_by(info.slot, before.labels if before is not None else {}, node.labels)
        if changed:
            self._move_domains(info, node, changed, info.rows)
        if self.listeners:
            self.listeners.tell(NodeChange(info.slot, before, node))

    def _move_domains(self, info: NodeInfo, node: Node, changed: list[TopologyColumn], rows: Collection[int]) -> None:
        # The pods leave their old domains and enter the new ones. No pod may be counted while a slot changes its value.
        for row in rows:
            self._displace(row)
        for column in changed:
            column.assign(info.slot, node.labels.get(column.key))
        for row in rows:
            self._place(row, info.slot)

    def _tell_of_pod(self, node_name: str, before: Pod | None, after: Pod) -> None:
        slot = self.nodes.slots.get(node_name)
        if slot is not None and self.listeners:
            self.listeners.tell(PodChange(slot, before, after))

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
