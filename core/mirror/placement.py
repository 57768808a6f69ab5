"""The pods on each node with all derived counts. One module updates all of them, so that they stay consistent."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from math import inf
from typing import Any, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from core.events import Kind
from core.mirror.affinity_counts import AffinityCounts
from core.mirror.changes import Change, Listeners, NamespaceChange, NodeChange, ObjectChange, PodChange, RulesChange
from core.mirror.generation_store import OF_A_NODE, GenerationCounter
from core.mirror.node_info import NO_SLOT, NodeInfo, NodeTable
from core.mirror.pod_columns import PodColumns
from core.mirror.work import Work
from core.objects.node import Node
from core.objects.pod import Pod, counted
from core.releases.release import Rules


class Placement:
    """Nodes, pods and namespaces, with their term counters, requests and generations. All pods here are placed."""

    def __init__(self, generations: GenerationCounter, work: Work, rules: Rules) -> None:
        self.rules = rules
        self.counting = rules.request_counting
        self.listeners: Listeners = {}
        self.nodes = NodeTable(generations)
        self.pods = PodColumns()
        self.namespaces: dict[str, Mapping[str, str]] = {}  # name -> labels
        self.affinity = AffinityCounts(self.nodes, self.pods, self.namespaces, work)

    def add_pod(self, pod: Pod) -> None:
        """Add a new pod to the node that it names."""
        self._tell_of_pod(self._enter(pod), None, pod)

    def add_pods(self, pods: Sequence[Pod]) -> None:
        """Add new pods to the nodes that they name. No listener hears it."""
        if self.pods.has_free_rows:
            for pod in pods:
                self._enter(pod)
            return
        infos = [self.nodes.info(pod.node_name) for pod in pods]
        rows = self.pods.extend(pods, [*map(self.affinity.hold, pods)], [info.slot for info in infos])
        for row, pod, info in zip(rows, pods, infos, strict=True):
            info.rows.append(row)
            info.requested.count(pod, 1)
            if info.slot != NO_SLOT:
                self.affinity.count(pod, info.slot, 1)
        for info in dict.fromkeys(infos):
            self.nodes.touch(info)

    def remove_pod(self, pod: Pod) -> None:
        """Remove a pod. `pod` is the object that the mirror holds."""
        self._tell_of_pod(self._leave(pod), pod, None)

    def update_pod(self, known: Pod, pod: Pod) -> None:
        """Replace a pod by its newer state, which may be on another node."""
        if known.node_name != pod.node_name:
            self.remove_pod(known)
            self.add_pod(pod)
        elif not _counts_alike(known, pod):
            self._leave(known)
            self._tell_of_pod(self._enter(pod), known, pod)
        elif known.resource_version != pod.resource_version or known != pod:
            self.pods.pods[self.pods.rows[pod.uid]] = pod
            info = self.nodes.infos[pod.node_name]
            # Most updates change only parts of the status that nobody reads.
            if replace(known, resource_version=pod.resource_version) == pod:
                self.nodes.touch(info)
                return
            if known.requests != pod.requests or known.best_effort != pod.best_effort:
                info.requested.count(known, -1)
                info.requested.count(pod, 1)
            self.nodes.touch(info)
            self._tell_of_pod(info.slot, known, pod)

    def change_rules(self, rules: Rules) -> list[Pod]:
        """Count all pods by other rules. Return the new state of the pods whose counted requests change."""
        before, self.rules = self.rules, rules
        self.counting = rules.request_counting
        recounted = []
        pods = self.pods.pods
        resized = [pods[row] for row in self.pods.rows.values() if pods.like(row).demand.resources is not None]
        for known in resized:
            pod = counted(known, self.counting)
            if pod != known:
                self.update_pod(known, pod)
                recounted.append(pod)
        self.tell(RulesChange(before, rules))
        return recounted

    # For Fork, which informs the listeners. Nothing here takes a generation, except `join`.

    def add_tentative_pod(self, pod: Pod) -> tuple[int, int | None]:
        """Count a supposed pod on the known node that it names. Return its row, and the one that it covers, if any."""
        covered = self.pods.rows.get(pod.uid)
        row = self.pods.insert(pod, self.affinity.hold(pod))
        self.place(row, self.nodes.slots[pod.node_name])
        return row, covered

    def withdraw_pod(self, pod: Pod, covered: int | None) -> None:
        """Remove a tentative pod. `covered` is the row that it covers."""
        self.displace(self.pods.rows[pod.uid])
        self.affinity.drop(pod)
        if covered is None:
            self.pods.remove(pod)
        else:
            self.pods.uncover(pod.uid, covered)

    def join(self, row: int, pod: Pod) -> NodeInfo:
        """Add a pod to the NodeInfo of the node that it names, with a generation. No listener hears it."""
        info = self.nodes.info(pod.node_name)
        info.rows.append(row)
        info.requested.count(pod, 1)
        self.nodes.touch(info)
        return info

    def place(self, row: int, slot: int) -> None:
        """Count the pod of a row on the node of a slot."""
        self.pods.slot_of_row[row] = slot
        self.affinity.count(self.pods.pods.like(row), slot, 1)

    def displace(self, row: int) -> None:
        """Stop counting the pod of a row, but keep holding it."""
        self.affinity.count(self.pods.pods.like(row), int(self.pods.slot_of_row[row]), -1)
        self.pods.slot_of_row[row] = NO_SLOT

    def add_tentative_node(self, node: Node) -> NodeInfo:
        """Make an unknown node known, with the pods that wait for it."""
        info = self.nodes.info(node.name)
        self.nodes.add_tentative(info, node)
        self._enter_domains(info, node, info.rows)
        return info

    def replace_node(self, info: NodeInfo, node: Node) -> Node | None:
        """Replace the state of a known node without a generation, and return the state before. No listener hears it."""
        before = self.nodes.replace(info, node)
        changed = self.affinity.columns.changed_by(info.slot, before.labels if before is not None else {}, node.labels)
        if changed:
            # The pods leave their old domains and enter the new ones, as no pod may be counted while a slot changes its
            # value. Not the rows of the NodeInfo: some of its pods may be supposed gone, and other pods supposed here.
            rows = np.flatnonzero(self.pods.slot_of_row == info.slot).tolist()
            for row in rows:
                self.displace(row)
            for column in changed:
                column.assign(info.slot, node.labels.get(column.key))
            for row in rows:
                self.place(row, info.slot)
        return before

    def withdraw_node(self, info: NodeInfo) -> None:
        """Make a supposed node unknown again. Supposed nodes must be withdrawn in reverse order."""
        self._leave_domains(info, info.rows)
        self.nodes.withdraw(info)

    def take_out_node(self, info: NodeInfo) -> list[int]:
        """Make a node unknown until `bring_node_back`. Return the rows of the pods that counted there.

        Not the rows of the NodeInfo: see `replace_node`.
        """
        rows: list[int] = np.flatnonzero(self.pods.slot_of_row == info.slot).tolist()
        self._leave_domains(info, rows)
        self.nodes.take_out_tentatively(info)
        return rows

    def bring_node_back(self, node: Node, slot: int, rows: Sequence[int], order: Sequence[str]) -> None:
        """Undo `take_out_node`. `order` are the names of the known nodes before it, in order."""
        info = self.nodes.infos[node.name]
        self.nodes.bring_back(info, node, slot, order)
        self._enter_domains(info, node, rows)

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
            before = self.replace_node(info, node)
            self.nodes.touch(info)
            if self.listeners:
                self.tell(NodeChange(info.slot, before, node))

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """Replace the labels of a namespace. None means that there is no such Namespace (any more)."""
        before = self.namespaces.get(name)
        if before == labels:
            return
        if labels is None:
            del self.namespaces[name]
        else:
            self.namespaces[name] = labels
        self.affinity.namespace_changed(name, before)
        if self.listeners:
            self.tell(NamespaceChange(name, before, labels))

    def _enter(self, pod: Pod) -> int:
        """Return the slot of the pod's node, NO_SLOT if it is unknown."""
        row = self.pods.insert(pod, self.affinity.hold(pod))
        slot = self.join(row, pod).slot
        if slot != NO_SLOT:
            self.place(row, slot)
        return slot

    def _leave(self, pod: Pod) -> int:
        """Return the slot of the pod's node, NO_SLOT if it is unknown."""
        row = self.pods.rows[pod.uid]
        info = self.nodes.infos[pod.node_name]
        if info.node is not None:
            self.displace(row)
        info.rows.remove(row)
        info.requested.count(pod, -1)
        self.nodes.touch(info)
        self.nodes.drop_if_empty(info)
        self.affinity.drop(pod)
        self.pods.remove(pod)
        return info.slot

    def _add_node(self, info: NodeInfo, node: Node) -> None:
        self.nodes.occupy(info, node)
        self._enter_domains(info, node, info.rows)
        if self.listeners:
            self.tell(NodeChange(info.slot, None, node))
            for row in info.rows:
                self.tell(PodChange(info.slot, None, self.pods.pods[row]))

    def _remove_node(self, info: NodeInfo) -> None:
        node, slot = info.node, info.slot
        pods = [self.pods.pods[row] for row in info.rows]
        self._leave_domains(info, info.rows)
        self.nodes.vacate(info)
        if self.listeners:
            for pod in pods:
                self.tell(PodChange(slot, pod, None))
            self.tell(NodeChange(slot, node, None))

    def _enter_domains(self, info: NodeInfo, node: Node, rows: Iterable[int]) -> None:
        self.affinity.columns.grow(self.nodes.capacity)
        for column in self.affinity.columns.changed_by(info.slot, {}, node.labels):
            column.assign(info.slot, node.labels.get(column.key))
        for row in rows:
            self.place(row, info.slot)

    def _leave_domains(self, info: NodeInfo, rows: Iterable[int]) -> None:
        for row in rows:
            self.displace(row)
        labels = info.node.labels if info.node is not None else {}
        for column in self.affinity.columns.changed_by(info.slot, labels, {}):
            column.assign(info.slot, None)

    def tell(self, change: Change) -> None:
        """Send a change to the listeners that hear of its type, in the order in which they were added."""
        for listener in self.listeners.get(type(change), ()):
            listener.changed(change)

    def object_change(self, kind: Kind, name: str, before: Any, after: Any) -> ObjectChange:  # noqa: ANN401  # of the kind
        """Describe a change of an object of a kind without a rule of its own, by its full name."""
        slot = self.nodes.slots.get(name, NO_SLOT) if kind in OF_A_NODE else NO_SLOT
        return ObjectChange(kind, slot, before, after)

    def _tell_of_pod(self, slot: int, before: Pod | None, after: Pod | None) -> None:
        if slot != NO_SLOT and self.listeners:
            self.tell(PodChange(slot, before, after))


def _counts_alike(known: Pod, pod: Pod) -> bool:
    return (
        known.node_name == pod.node_name
        and known.namespace == pod.namespace
        and known.labels == pod.labels
        and known.affinity == pod.affinity
    )


class PodState(Enum):
    """The state of a pod in the mirror. ClusterMirror has the diagram."""

    INITIAL = "Initial"
    """Not in the mirror."""
    ASSUMED = "Assumed"
    """Counted on the node that was decided for it. The watch has not shown it there yet."""
    ADDED = "Added"
    """Shown on its node by the watch."""
    EXPIRED = "Expired"
    """Not in the mirror: it was assumed, and the watch did not confirm it in time."""
    DELETED = "Deleted"
    """Not in the mirror: it was deleted, or is Succeeded or Failed."""


class PodStateError(Exception):
    """The operation is not possible in the pod's present state. The pod was not changed."""


class PodTransition(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A transition, caused by an event, that is worth reporting.

    - Assumed -> Added: confirmed. It is a *mismatch* if the nodes differ.
    - Added -> Added: the pod *moved*, which no API server allows.
    - Assumed -> Deleted: the pod was deleted before the watch showed it on its node.
    - Initial -> Deleted: an assigned pod was deleted that was not in the mirror.
    """

    uid: str
    pod: str
    """NAMESPACE/NAME"""
    from_state: PodState
    to_state: PodState
    from_node: str = ""
    """The node in the mirror before. Empty for none."""
    to_node: str = ""
    """The node in the mirror now. Empty for none."""


_RENEWED: Final = 10.0  # seconds until a pod that was due and stays is due again


class AssumedPod(msgspec.Struct, frozen=True, gc=False):
    """A pod as it was assumed, with its node. Times are seconds on the caller's clock."""

    pod: Pod
    assumed_at: float
    deadline: float | None = None
    """The pod expires after this time. None while its binding is not finished: then the pod never expires."""
    is_reported: bool = True
    """Whether the end of its binding is reported: it is being bound or, since `finish_binding`, is or may be bound."""
    is_doubtful: bool = False
    """Whether its binding has ended without a known result."""


class AssumedPods:
    """The assumed pods by UID.

    `ttl` is how many seconds a pod may stay assumed after its binding. 0 means without limit, as upstream (cache.go
    finishBinding). Raises ValueError if `ttl` is negative or nan.
    """

    def __init__(self, ttl: float) -> None:
        if not ttl >= 0:
            raise ValueError(f"the TTL of an assumed pod is {ttl} s, but must be 0 or more")
        self.by_uid: dict[str, AssumedPod] = {}
        self._ttl = ttl
        self._earliest = inf  # lower bound of all deadlines

    def add(self, pod: Pod, now: float, wait: float | None = None) -> None:
        """Add a pod whose binding begins, or is reported by nobody: then it may wait for `wait` seconds."""
        deadline = None if wait is None else self._deadline(now, wait)
        self.by_uid[pod.uid] = AssumedPod(pod, now, deadline, wait is None)

    def finish_binding(self, uid: str, now: float, *, is_known: bool = True) -> None:
        """Set a pod's deadline to `now` plus the TTL. A pod not assumed is ignored. `is_known`: see AssumedPod."""
        known = self.by_uid.get(uid)
        if known is not None:
            self.by_uid[uid] = replace(known, deadline=self._deadline(now), is_doubtful=not is_known)

    def _deadline(self, now: float, wait: float = 0.0) -> float | None:
        """Return `now` plus the TTL, or plus `wait` if that is more."""
        if not self._ttl:
            return None
        deadline = now + max(self._ttl, wait)
        self._earliest = min(self._earliest, deadline)
        return deadline

    def take_overdue(self, now: float, stays: Callable[[Pod], bool] = lambda _: False) -> list[Pod]:
        """Remove the pods past their deadline, and return them. A pod that `stays` is due again ten seconds later.

        Loops over the pods only if the earliest deadline of the last loop has passed: about once per TTL if bindings
        are confirmed.
        """
        if now <= self._earliest:
            return []
        overdue, earliest = [], inf
        renewed = []
        for assumed in self.by_uid.values():
            if assumed.deadline is None:
                continue
            if now <= assumed.deadline:
                earliest = min(earliest, assumed.deadline)
            elif stays(assumed.pod):
                renewed.append(assumed.pod.uid)
            else:
                overdue.append(assumed.pod)
        for pod in overdue:
            del self.by_uid[pod.uid]
        for uid in renewed:
            earliest = min(earliest, now + _RENEWED)
            self.by_uid[uid] = replace(self.by_uid[uid], deadline=now + _RENEWED)
        self._earliest = earliest
        return overdue
