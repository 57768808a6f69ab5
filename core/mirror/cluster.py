"""The cluster mirror: nodes, assigned pods, namespaces and all other objects as the last events left them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar, cast

from msgspec.structs import replace

from core.events import ClusterEvent, Kind
from core.mirror.assumed_pods import AssumedPod, AssumedPods
from core.mirror.audit import Auditor
from core.mirror.changes import Listener, ObjectChange
from core.mirror.cluster_figures import ClusterFigures
from core.mirror.dump import Dumper, MirrorCopy, MirrorDump
from core.mirror.generation_store import GenerationCounter
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.object_stores import OF_A_NODE, HeldObject, ObjectStores
from core.mirror.pending_pods import PendingPods
from core.mirror.placement import Placement
from core.mirror.pod_groups import PodGroups
from core.mirror.pod_states import PodState, PodStateCounts, PodStateError, PodTransition
from core.mirror.preemptors import Preemptors
from core.mirror.resource_figures import Figures
from core.mirror.what_if import Supposition
from core.mirror.work import Work
from core.objects.labels import Selector
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.pod import Pod, counted
from core.objects.pod_group import PodGroup
from core.releases import DEFAULT_RELEASE, Rules, rules_of

DerivedState = TypeVar("DerivedState", bound=Listener)


class ClusterMirror:
    """State of a cluster, changed by events and by assumptions, read by plugins between two changes.

    It holds the pods that occupy a node: assigned and not Succeeded or Failed, or assumed. A pod whose node is not
    known (yet) is held, on no node, and counts from when the node appears. The order of events does not matter: the
    same objects in the end are the same state, counters and answers.

    A pod, known by its uid, goes through these states; it is in the mirror, and counts, in Assumed and Added alone:

                           event: assigned                     event: assigned
              +------------------------------------------+     (elsewhere: moves)
              |                                          |     +----+
              |                                          v     |    |
        +---------+  assume   +---------+  event:      +---------+  |
        | Initial |---------->| Assumed |------------->|  Added  |<-+
        +---------+<----------+---------+  assigned    +---------+
              ^      forget     |     |    (elsewhere:      |
              |                 |     |     a mismatch)     | event: deleted, ended, unassigned
              |          expire |     |                     v
        +---------+             |     |                +---------+
        | Expired |<------------+     +--------------->| Deleted |
        +---------+              event: deleted, ended +---------+

    Expired and Deleted are the same as Initial for all that comes after: an event or `assume` takes the pod in again.
    An event of an Assumed pod that is still unassigned changes nothing: it was on its way when the pod was assumed. An
    Assumed pod expires when `assumed_pod_ttl` seconds have passed since `finish_binding`, and never before that call; a
    TTL of 0 keeps it for ever. Time comes from the caller, in seconds; it must not run backwards.
    Source: k8s.io/kubernetes pkg/scheduler/backend/cache (interface.go, cache.go).

    Each change of a NodeInfo or of an object without a rule of its own takes a new generation. Copies and figures find
    the changed nodes and objects by their generations. An event that changes nothing takes no generation.
    """

    def __init__(self, assumed_pod_ttl: float = 30.0, rules: Rules | None = None) -> None:
        """Begin empty. Without `rules`, the rules of DEFAULT_RELEASE hold until `change_rules`."""
        self._generations = GenerationCounter()
        self.work = Work()
        self._placement = Placement(self._generations, self.work, rules or rules_of(DEFAULT_RELEASE))
        self.nodes = self._placement.nodes
        self.pods = self._placement.pods
        self.namespaces = self._placement.namespaces
        self.affinity = self._placement.affinity
        self.pending = PendingPods()
        """The pods that have no node by the watch; an Assumed one stays among them until the watch confirms it."""
        self.preemptors = Preemptors(self.nodes, self.pods, self.pending)
        self.groups = PodGroups()
        """The groups of pods that are placed together, with their members, bound or not."""
        self.pod_states = PodStateCounts()
        self._assumed = AssumedPods(assumed_pod_ttl)
        self._objects = ObjectStores(self._generations)
        self._figures = ClusterFigures()
        self._derived: dict[object, Listener] = {}

    # Changes of the cluster.

    def apply(self, event: ClusterEvent) -> PodTransition | None:
        """Take over one change. Repeated, missed and unexpected events do no harm (see ClusterEvent).

        Returns a pod's transition if it is one that is worth telling (see PodTransition), which is seldom.
        """
        deleted = event.action == "Delete"
        match event.object:
            case Pod() as decoded:
                pod = self.counted(decoded)
                self._see_whether_pending(pod, deleted=deleted)
                if pod.group is not None or pod.uid in self.groups.key_of:
                    self.groups.see(pod, deleted=deleted)
                if pod.uid in self._assumed.by_uid:  # not through `in`: this runs at every event
                    return self._see_assumed_pod(pod, deleted=deleted)
                return self._see_pod(pod, deleted=deleted)
            case Node() as node:
                self._placement.set_node(node.name, None if deleted else node)
            case Namespace() as namespace:
                self._placement.set_namespace(namespace.name, None if deleted else namespace.labels)
            case other:
                before = self._objects.remove(other) if deleted else self._objects.put(other)
                self._tell_of_object(type(other), other.name, before, None if deleted else other)
                if isinstance(other, PodGroup):
                    self.groups.touch(other.full_name)
        return None

    # The release of Kubernetes whose answers are given.

    @property
    def rules(self) -> Rules:
        """The rules of the plugins: a fact of the cluster, which an upgrade changes."""
        return self._placement.rules

    def change_rules(self, rules: Rules) -> None:
        """Let other rules hold. Pods whose requests count otherwise by them change; equal rules change nothing."""
        if rules == self.rules:
            return
        for pod in self._placement.change_rules(rules):
            if pod.uid in self._assumed:
                self._assumed.replace(pod)

    def counted(self, pod: Pod) -> Pod:
        """Return a pod with its requests as the rules count them, which every pod in the mirror has already."""
        return pod if pod.resources is None else counted(pod, self._placement.counting)

    # Decisions made here.

    def assume(self, pod: Pod, node_name: str, now: float) -> Pod:
        """Count a pod on the node that was decided for it, known or not; return it as it is held.

        Raises PodStateError if it is Assumed or Added already or has ended, or if the name is empty.
        """
        tried = f"cannot be assumed on {node_name or 'no node'}"
        if pod.uid in self.pods.rows:
            raise self._state_error(pod.uid, tried)
        if pod.terminal or not node_name:
            raise PodStateError(f"pod {pod.full_name} ({pod.uid}){' has ended and' if pod.terminal else ''} {tried}")
        placed = self.counted(replace(pod, node_name=node_name))
        self._assumed.add(placed, now)
        self._placement.add_pod(placed)
        self.pod_states.assumed += 1
        return placed

    def finish_binding(self, uid: str, now: float) -> None:
        """Let an Assumed pod expire once the TTL has passed from now; said again, it begins anew.

        Nothing happens to a pod that is Added, as the watch may be faster than the binding's answer, or not there.
        """
        self._assumed.finish_binding(uid, now)

    def forget(self, uid: str) -> None:
        """Drop an Assumed pod, whose binding failed. Raises PodStateError if it is Added or not there."""
        if uid not in self._assumed.by_uid:
            raise self._state_error(uid, "cannot be forgotten")
        self._placement.remove_pod(self._assumed.remove(uid).pod)
        self.pod_states.forgotten += 1

    def expire(self, now: float) -> list[Pod]:
        """Drop the Assumed pods whose binding was finished longer ago than the TTL, and return them.

        Costs nothing where none can be due, so it may be called as often as the time is looked at.
        """
        expired = self._assumed.take_overdue(now)
        for pod in expired:
            self._placement.remove_pod(pod)
        self.pod_states.expired += len(expired)
        return expired

    # The present pods and objects.

    @property
    def assumed(self) -> Mapping[str, AssumedPod]:
        """The Assumed pods by uid, read-only; a view, which follows every change."""
        return MappingProxyType(self._assumed.by_uid)

    def is_assumed(self, uid: str) -> bool:
        """Return whether a pod is Assumed, and neither confirmed nor expired."""
        return uid in self._assumed.by_uid

    def is_mirrored(self, uid: str) -> bool:
        """Return whether a pod is in the mirror: Assumed or Added."""
        return uid in self.pods.rows

    def get_pod(self, uid: str) -> Pod | None:
        """Return a pod that is Assumed or Added, as it is held."""
        return self.pods.get(uid)

    def pod_count(self) -> int:
        """Return the number of pods that are Assumed or Added, on unknown nodes too."""
        return len(self.pods)

    def objects(self, kind: type[HeldObject]) -> Mapping[str, HeldObject]:
        """Return the objects of a kind by full name, read-only; a view, which follows every change.

        Raises TypeError for Pod, Node and Namespace, which are not held as they are: see `pods`, `nodes`, `namespaces`.
        """
        if kind in (Pod, Node, Namespace):
            raise TypeError(f"objects of kind {kind.__name__} stand elsewhere in the mirror")
        return self._objects.of(kind).values

    @property
    def figures(self) -> Figures:
        """Resources of the known nodes and requests of their pods; a node's own are its NodeInfo's `figures`.

        The cost of a look is the number of changes since the last one.
        """
        return self._figures.follow(self.nodes.known)

    def follow_figures(self) -> Iterator[None]:
        """Do most of the work of the next look at `figures`, in steps; the mirror may change in between."""
        return self._figures.steps(self.nodes.known)

    # Reads, copies, checks.

    def batch(self, names: Sequence[str], objects: Mapping[int, Node] | None = None) -> NodeBatch:
        """Return the nodes of a request. `objects` are whole nodes by position, read only where a name is unknown."""
        return NodeBatch.of(self.nodes, names, objects or {})

    def all_nodes(self) -> NodeBatch:
        """Return all known nodes as the batch of a request."""
        return NodeBatch.of_slots(self.nodes, self.nodes.all_slots())

    @property
    def generation(self) -> int:
        """The generation of the last change."""
        return self._generations.last

    def suppose(self, *, after_pre_filter: bool = False) -> Supposition:
        """Begin to suppose, in a `with` block, that there are other pods, nodes and objects; see Supposition."""
        return Supposition(self._placement, self._objects, self._derived.values, after_pre_filter=after_pre_filter)

    def dump(self, node: str | None = None, pod: str | None = None) -> MirrorDump:
        """Write out all, or one node by its name, or one pod by its uid or NAMESPACE/NAME; for debugging, expensive."""
        dumper = Dumper(self.nodes, self.pods, self.assumed, self.pending, self.preemptors)
        return dumper.dump(self.figures, self.generation, node, pod)

    def copy(self) -> MirrorCopy:
        """Begin a copy of everything that `dump` shows; see MirrorCopy."""
        parts = self.nodes, self.pods, self.assumed, self.pending
        return MirrorCopy(*parts, preemptors=self.preemptors, figures=self._figures)

    def audit(self) -> list[str]:
        """Recount everything by plain loops; return the differences, none if all is well. For tests, expensive."""
        auditor = Auditor(self.nodes, self.pods)
        return [
            *self.affinity.audit(),
            *auditor.placement(),
            *auditor.figures(self.figures),
            *auditor.partition(),
            *auditor.generations(self.generation),
            *auditor.assumed(self.assumed),
        ]

    # The scheduler's partition of the nodes; the rule is Partition's.

    def set_partition_selector(self, selector: Selector) -> None:
        """Let in the nodes whose labels the selector matches; it leaves names alone that were set explicitly."""
        self.nodes.partition.set_selector(selector)
        self.nodes.partition_changed(self.nodes.slots)

    def set_node_in_partition(self, name: str) -> None:
        """Let a node in, whatever its labels; it need not exist yet."""
        self.nodes.partition.set_name(name, inside=True)
        self.nodes.partition_changed([name])

    def set_node_out_of_partition(self, name: str) -> None:
        """Keep a node out, whatever its labels; it need not exist yet."""
        self.nodes.partition.set_name(name, inside=False)
        self.nodes.partition_changed([name])

    def clear_node_partition(self, name: str) -> None:
        """Leave a node to the selector again; a name that was not set is left to it already."""
        self.nodes.partition.clear_name(name)
        self.nodes.partition_changed([name])

    def node_in_partition(self, name: str, labels: Mapping[str, str] | None = None) -> bool:
        """Return whether a node is in the partition, by the given labels, else its own; an unknown one has none."""
        if labels is None:
            info = self.nodes.known.values.get(name)
            labels = info.node.labels if info is not None and info.node is not None else {}
        return self.nodes.partition.includes(name, labels)

    # Who keeps something that follows from the mirror.

    def listen(self, listener: Listener) -> None:
        """Tell a listener of every change from now on, once the mirror has it; decisions made here are changes, too."""
        self._placement.listeners.add(listener)

    def derived(self, make: Callable[["ClusterMirror"], DerivedState]) -> DerivedState:
        """Return the state that a plugin keeps over the mirror: made from it at first, then told of every change."""
        found = self._derived.get(make)
        if found is None:
            found = self._derived[make] = make(self)
            self.listen(found)
        return cast("DerivedState", found)

    def placed_pods(self) -> Iterator[tuple[int, Pod]]:
        """Yield (slot, pod) of all pods on known nodes."""
        for row in self.pods.rows.values():
            slot = int(self.pods.slot_of_row[row])
            if slot != NO_SLOT:
                yield slot, self.pods.pods[row]

    def _tell_of_object(self, kind: Kind, name: str, before: HeldObject | None, after: HeldObject | None) -> None:
        if before != after and self._placement.listeners:
            slot = self.nodes.slots.get(name, NO_SLOT) if kind in OF_A_NODE else NO_SLOT
            self._placement.listeners.tell(ObjectChange(kind, slot, before, after))

    # Pods.

    def _see_whether_pending(self, pod: Pod, *, deleted: bool) -> None:
        if pod.node_name or pod.terminal or deleted:
            self.pending.remove(pod.uid)
        else:
            self.pending.put(pod)

    def _see_pod(self, pod: Pod, *, deleted: bool) -> PodTransition | None:
        known = self.pods.get(pod.uid)
        if deleted or not pod.assigned:
            if known is not None:
                self._placement.remove_pod(known)
            elif deleted and pod.assigned:  # others are not in the mirror, so that their deletion says nothing
                self.pod_states.unknown_deletes += 1
                return _transition(pod, PodState.INITIAL, PodState.DELETED)
            return None
        if known is None:
            self._placement.add_pod(pod)
            return None
        self._placement.update_pod(known, pod)
        if known.node_name == pod.node_name:
            return None
        self.pod_states.moves += 1
        return _transition(pod, PodState.ADDED, PodState.ADDED, known.node_name, pod.node_name)

    def _see_assumed_pod(self, pod: Pod, *, deleted: bool) -> PodTransition | None:
        if not (deleted or pod.terminal or pod.node_name):
            return None  # an event from before the binding
        known = self._assumed.remove(pod.uid).pod
        if deleted or pod.terminal:
            self._placement.remove_pod(known)
            self.pod_states.deleted_while_assumed += 1
            return _transition(pod, PodState.ASSUMED, PodState.DELETED, known.node_name)
        self._placement.update_pod(known, pod)
        if known.node_name == pod.node_name:
            self.pod_states.confirmed += 1
        else:
            self.pod_states.mismatches += 1
        return _transition(pod, PodState.ASSUMED, PodState.ADDED, known.node_name, pod.node_name)

    def _state_error(self, uid: str, tried: str) -> PodStateError:
        pod = self.pods.get(uid)
        if pod is None:
            return PodStateError(f"pod {uid} is not in the mirror and {tried}")
        state = PodState.ASSUMED if uid in self._assumed else PodState.ADDED
        return PodStateError(f"pod {pod.full_name} ({uid}) is {state.value} on {pod.node_name} and {tried}")


def _transition(
    pod: Pod, from_state: PodState, to_state: PodState, from_node: str = "", to_node: str = ""
) -> PodTransition:
    return PodTransition(
        uid=pod.uid, pod=pod.full_name, from_state=from_state, to_state=to_state, from_node=from_node, to_node=to_node
    )
