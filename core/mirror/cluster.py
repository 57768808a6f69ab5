"""The cluster mirror: nodes, assigned pods, namespaces and all other objects after the last events."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from msgspec.structs import replace

from core.events import ClusterEvent, Kind, Object
from core.mirror.changes import Listener, Listeners, PodChange, add_listener
from core.mirror.cluster_figures import ClusterFigures
from core.mirror.dump import Dumper, MirrorCopy, MirrorDump
from core.mirror.fork import Fork
from core.mirror.generation_store import GenerationCounter, ObjectStores, StoredObject
from core.mirror.node_figures import Figures
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.pending_pods import PendingPods, PodGroups, Preemptors, SchedulingGroups
from core.mirror.placement import AssumedPod, AssumedPods, Placement, PodState, PodStateError, PodTransition
from core.mirror.work import Work
from core.objects.groups import PodGroup, SchedulingGroup
from core.objects.kinds import Namespace
from core.objects.labels import Selector
from core.objects.node import Node
from core.objects.pod import NOT_WAITING, Pod, counted
from core.releases.differences import rules_of
from core.releases.release import DEFAULT_RELEASE, Rules

DerivedState = TypeVar("DerivedState", bound=Listener)


class ClusterMirror:
    """State of a cluster. Events and assumptions change it, and plugins read it between two changes.

    It holds the pods that occupy a node: assumed pods, and assigned pods that are not Succeeded or Failed. A pod on an
    unknown node is held, and counts as soon as the node appears. The order of events does not matter: the same final
    objects give the same state, counters and results.

    A pod, identified by its UID, has one of these states. It is in the mirror, and counts, only in Assumed and Added:

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

    Expired and Deleted behave like Initial: an event or `assume` adds the pod again. An event that shows an Assumed pod
    unassigned changes nothing, because it predates the binding. An Assumed pod expires when `assumed_pod_ttl` seconds
    have passed since `finish_binding`, and never before that call. With a TTL of 0 it never expires. The caller passes
    the time, in seconds, which must not run backwards. Source: k8s.io/kubernetes pkg/scheduler/backend/cache
    (interface.go, cache.go).

    Each change of a NodeInfo, or of an object without a rule of its own, takes a new generation. Copies and figures
    find the changed nodes and objects by their generations. An event that changes nothing takes no generation.
    """

    def __init__(self, assumed_pod_ttl: float = 30.0, rules: Rules | None = None) -> None:
        """Create an empty mirror. Without `rules`, the rules of DEFAULT_RELEASE apply until `change_rules`."""
        self._generations = GenerationCounter()
        self.work = Work()
        self._placement = Placement(self._generations, self.work, rules or rules_of(DEFAULT_RELEASE))
        self.nodes = self._placement.nodes
        self.pods = self._placement.pods
        self.namespaces = self._placement.namespaces
        self.affinity = self._placement.affinity
        self.pending = PendingPods()
        """The pods without a node in the watch. An Assumed pod stays among them until the watch confirms it."""
        self.preemptors = Preemptors(self.nodes, self.pods, self.pending)
        self.groups = PodGroups()
        """The groups of pods that are placed together, with all their members."""
        self.scheduling_groups = SchedulingGroups()
        """The groups that kube-scheduler schedules together, with all their members."""
        self._assumed = AssumedPods(assumed_pod_ttl)
        self.assumed: Mapping[str, AssumedPod] = MappingProxyType(self._assumed.by_uid)
        """The Assumed pods by UID, as a read-only live view."""
        self._objects = ObjectStores(self._generations)
        self._figures = ClusterFigures()
        self._all_nodes = NodeBatch.of_slots(self.nodes, self.nodes.all_slots())
        self._derived: dict[object, Listener] = {}
        self._derived_states: Listeners = {}

    # Changes of the cluster.

    def apply(self, event: ClusterEvent) -> PodTransition | None:
        """Apply one change. Repeated, missed and unexpected events are safe (see ClusterEvent).

        Returns a pod's transition if it is worth reporting (see PodTransition), which is rare.
        """
        deleted = event.action == "Delete"
        match event.object:
            case Pod() as decoded:
                pod = self.counted(decoded)
                if pod.node_name or pod.terminal or deleted:
                    self.pending.remove(pod.uid)
                else:
                    self.pending.put(pod)
                if pod.group is not None or pod.uid in self.groups.key_of:
                    self.groups.see(pod, deleted=deleted)
                if pod.scheduling_group or pod.uid in self.scheduling_groups.key_of:
                    self.scheduling_groups.see(pod, deleted=deleted, counted=pod.uid in self.pods.rows)
                if pod.uid in self._assumed.by_uid:
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
                elif isinstance(other, SchedulingGroup):
                    self.scheduling_groups.see_group(other, deleted=deleted)
        return None

    def add(self, objects: Sequence[Object]) -> Sequence[Object]:
        """Add those unknown pods that only run on a node, at once. Return the other objects, which `apply` has to add.

        It takes less than half the time of `apply`. Once somebody hears of pods, `apply` adds all of them.
        """
        if PodChange in self._placement.listeners or len({each.uid for each in objects}) < len(objects):
            return objects
        running: list[Pod] = []
        others: list[Object] = []
        for each in objects:
            if isinstance(each, Pod) and self._only_runs(each):
                running.append(each)
            else:
                others.append(each)
        if running:
            self._placement.add_pods(running)
        return others

    def _only_runs(self, pod: Pod) -> bool:
        """Return whether an unknown pod changes nothing but its node, and the counts of its terms."""
        if not pod.assigned or pod.group is not None or pod.scheduling_group or pod.demand.resources is not None:
            return False
        uid, grouped, scheduled = pod.uid, self.groups.key_of, self.scheduling_groups.key_of
        return not (uid in self.pods.rows or uid in self.pending or uid in grouped or uid in scheduled)

    # The release of Kubernetes whose rules apply.

    @property
    def rules(self) -> Rules:
        """The rules of the plugins. They depend on the cluster's release, so an upgrade changes them."""
        return self._placement.rules

    def change_rules(self, rules: Rules) -> None:
        """Apply other rules, and update the pods whose requests they count differently. Equal rules change nothing."""
        if rules == self.rules:
            return
        for pod in self._placement.change_rules(rules):
            assumed = self._assumed.by_uid.get(pod.uid)
            if assumed is not None:
                self._assumed.by_uid[pod.uid] = replace(assumed, pod=pod)

    def counted(self, pod: Pod) -> Pod:
        """Return a pod with its requests as the rules count them. Pods in the mirror already have these requests."""
        return pod if pod.demand.resources is None else counted(pod, self._placement.counting)

    # Decisions made here.

    def assume(self, pod: Pod, node_name: str, now: float, *, wait: float | None = None) -> Pod:
        """Count a pod on the node that was decided for it, known or not. Return the pod as the mirror holds it.

        With `wait`, the TTL starts at once, as by `finish_binding`: nobody reports the end of the binding, which may
        wait for so many seconds.
        Raises PodStateError if the pod is already Assumed or Added, if it has ended, or if the name is empty.
        """
        tried = f"cannot be assumed on {node_name or 'no node'}"
        if pod.uid in self.pods.rows:
            raise self._state_error(pod.uid, tried)
        if pod.terminal or not node_name:
            raise PodStateError(f"pod {pod.full_name} ({pod.uid}){' has ended and' if pod.terminal else ''} {tried}")
        # As the watch will show it: then the event that confirms the pod changes nothing that anybody reads.
        placed = self.counted(replace(pod, node_name=node_name, waiting=NOT_WAITING))
        self._assumed.add(placed, now, wait)
        self._placement.add_pod(placed)
        return placed

    def assume_placed(self, fork: Fork, now: float) -> list[Pod]:
        """Assume all pods that a fork has placed, and return them with their nodes, in the order of placing.

        The state is as after `assume` of each. Listeners get no change: they have the pods already. The end of the
        block undoes none of them, so it must not be inside of another block. Supposed changes of objects are undone:
        they are kube-scheduler's to make. Raises ForkError if anything else is supposed, or without `cache_follows`.
        """
        placed = fork.commit()
        for pod in placed:
            self._assumed.add(pod, now)
        return placed

    def finish_binding(self, uid: str, now: float, *, is_known: bool = True) -> None:
        """Start the TTL of an Assumed pod. Another call restarts it.

        `is_known`: whether the pod is bound for certain. A pod that is Added or not in the mirror is ignored: the watch
        may be faster than the response to the binding.
        """
        self._assumed.finish_binding(uid, now, is_known=is_known)

    def forget(self, uid: str) -> None:
        """Remove an Assumed pod whose binding failed. Raises PodStateError if it is Added or not in the mirror."""
        self.give_up(self.release(uid))

    def release(self, uid: str) -> Pod:
        """Remove an Assumed pod that is only reserved, or assumed anew at once. Raises PodStateError as `forget`."""
        if uid not in self._assumed.by_uid:
            raise self._state_error(uid, "cannot be forgotten")
        pod = self._assumed.by_uid.pop(uid).pod
        self._placement.remove_pod(pod)
        return pod

    def give_up(self, pod: Pod) -> None:
        """Note that a pod that was assumed is not, and not bound, so that its group sees to its other members."""
        self.groups.touch_member(pod.uid)
        if not (pod.uid in self.pending or self.is_mirrored(pod.uid)):  # a request showed it, so no event would end it
            self.groups.see(pod, deleted=True)

    def expire(self, now: float) -> list[Pod]:
        """Remove the Assumed pods whose binding was finished longer ago than the TTL, and return them.

        A pod that is still nominated for its node stays: kube-scheduler nominates a pod while its binding waits
        (NominatedNodeNameForExpectation, from 1.35 on). Unless it terminates, as no API server binds it any more, or
        the end of its binding is reported. The call is cheap while no pod can be due, so the caller may call it at any
        rate.
        """

        def is_nominated(assumed: Pod) -> bool:
            pod = self.pending.nominated_for(assumed.node_name).get(assumed.uid)
            return pod is not None and not pod.terminating and not self._assumed.by_uid[assumed.uid].is_reported

        expired = self._assumed.take_overdue(now, is_nominated)
        for pod in expired:
            self._placement.remove_pod(pod)
            self.give_up(pod)
        return expired

    # The present pods and objects.

    def is_assumed(self, uid: str) -> bool:
        """Return whether a pod is Assumed: decided for, and neither confirmed nor expired."""
        return uid in self._assumed.by_uid

    def is_doubtful(self, uid: str) -> bool:
        """Return whether a pod is Assumed of which nobody here knows whether it is bound, if it is decided for again.

        Not a member of a scheduling group: a second request for it shows no failure, and there may be very many.
        """
        assumed = self._assumed.by_uid.get(uid)
        if assumed is None:
            return False
        return assumed.is_doubtful or not (assumed.is_reported or assumed.pod.in_scheduling_group)

    def is_mirrored(self, uid: str) -> bool:
        """Return whether a pod is in the mirror: Assumed or Added."""
        return uid in self.pods.rows

    def get_pod(self, uid: str) -> Pod | None:
        """Return an Assumed or Added pod as the mirror holds it, or None."""
        return self.pods.get(uid)

    def pods_on(self, node: str) -> list[Pod]:
        """Return the pods on a node, known or not, in the order of their rows. Raises KeyError for an unused name.

        Pods that a fork supposes gone from a known node are left out, and so are those that it supposes there.
        """
        info, slots = self.nodes.infos[node], self.pods.slot_of_row
        return [self.pods.pods[row] for row in sorted(info.rows) if slots[row] == info.slot]

    def pod_count(self) -> int:
        """Return the number of Assumed and Added pods, including pods on unknown nodes."""
        return len(self.pods)

    def objects(self, kind: type[StoredObject]) -> Mapping[str, StoredObject]:
        """Return the objects of a kind by full name, as a read-only live view.

        Raises TypeError for Pod, Node and Namespace, which the mirror stores otherwise: see `pods`, `nodes`,
        `namespaces`.
        """
        if kind in (Pod, Node, Namespace):
            raise TypeError(f"objects of kind {kind.__name__} are elsewhere in the mirror")
        return self._objects.of(kind).values

    @property
    def figures(self) -> Figures:
        """Resources of the known nodes and requests of their pods. For one node, see `NodeInfo.figures`.

        The cost of a read is proportional to the changes since the last read.
        """
        return self._figures.follow(self.nodes.known)

    def follow_figures(self) -> Iterator[None]:
        """Do most of the work of the next read of `figures`, in steps. The mirror may change in between."""
        return self._figures.steps(self.nodes.known)

    # Reads, copies, checks.

    def batch(self, names: Sequence[str], objects: Mapping[int, Node] | None = None) -> NodeBatch:
        """Return the nodes of a request. `objects` are whole nodes by position, read only where a name is unknown."""
        return NodeBatch.of(self.nodes, names, objects or {})

    def all_nodes(self) -> NodeBatch:
        """Return all known nodes as the batch of a request."""
        slots = self.nodes.all_slots()
        if self._all_nodes.slots is not slots:
            self._all_nodes = NodeBatch.of_slots(self.nodes, slots)
        return self._all_nodes

    @property
    def generation(self) -> int:
        """The generation of the last change."""
        return self._generations.last

    def fork(self, *, after_pre_filter: bool = False, cache_follows: bool = False) -> Fork:
        """Begin to suppose, in a `with` block, that there are other pods and nodes; see Fork."""
        followers = self._placement.listeners if cache_follows else self._derived_states
        return Fork(
            self._placement,
            self._objects,
            followers,
            after_pre_filter=after_pre_filter,
            cache_follows=cache_follows,
        )

    def dump(self, node: str | None = None, pod: str | None = None) -> MirrorDump:
        """Return all contents, one node's, or one pod by UID or NAMESPACE/NAME. For debugging, expensive."""
        return Dumper(self).dump(self.figures, self.generation, node, pod)

    def copy(self) -> MirrorCopy:
        """Begin a copy of everything that `dump` shows. See MirrorCopy."""
        return MirrorCopy(self)

    # The scheduler's partition of the nodes. Partition has the rule.

    def set_partition_selector(self, selector: Selector) -> None:
        """Include the nodes whose labels match the selector. Names that were set explicitly are not affected."""
        self.nodes.partition.set_selector(selector)
        self.nodes.partition_changed(self.nodes.slots)

    def set_node_in_partition(self, name: str) -> None:
        """Include a node regardless of its labels. The node need not exist yet."""
        self.nodes.partition.set_name(name, inside=True)
        self.nodes.partition_changed([name])

    def set_node_out_of_partition(self, name: str) -> None:
        """Exclude a node regardless of its labels. The node need not exist yet."""
        self.nodes.partition.set_name(name, inside=False)
        self.nodes.partition_changed([name])

    # State that is derived from the mirror.

    def listen(self, listener: Listener) -> None:
        """Send later changes to a listener, after the mirror has made them. Decisions made here are changes, too."""
        add_listener(self._placement.listeners, listener)

    def derived(self, make: Callable[["ClusterMirror"], DerivedState]) -> DerivedState:
        """Return a plugin's derived state. The first call creates it, and then it receives every change."""
        found = self._derived.get(make)
        if found is None:
            found = self._derived[make] = make(self)
            add_listener(self._derived_states, found)
            self.listen(found)
        return found  # type: ignore[return-value]  # what `make` returned; a `cast` would be called each time

    def placed_pods(self, where: Callable[[Pod], object] = lambda _: True) -> Iterator[tuple[int, Pod]]:
        """Yield (slot, pod) of all pods on known nodes, or of those that a condition accepts.

        The condition gets what a pod is like (see PodStore.like). Pods that it rejects are not made.
        """
        pods, slot_of = self.pods.pods, self.pods.slot_of_row.item
        for row in self.pods.rows.values():
            slot = slot_of(row)
            if slot != NO_SLOT and where(pods.like(row)):
                yield slot, pods[row]

    def _tell_of_object(self, kind: Kind, name: str, before: StoredObject | None, after: StoredObject | None) -> None:
        if before != after and self._placement.listeners:
            self._placement.tell(self._placement.object_change(kind, name, before, after))

    # Pods.

    def _see_pod(self, pod: Pod, *, deleted: bool) -> PodTransition | None:
        known = self.pods.get(pod.uid)
        if deleted or not pod.assigned:
            if known is not None:
                self._placement.remove_pod(known)
            elif deleted and pod.assigned:  # other pods are not in the mirror, so their deletion is not worth reporting
                return _transition(pod, PodState.INITIAL, PodState.DELETED)
            return None
        if known is None:
            self._placement.add_pod(pod)
            return None
        self._placement.update_pod(known, pod)
        if known.node_name == pod.node_name:
            return None
        return _transition(pod, PodState.ADDED, PodState.ADDED, known.node_name, pod.node_name)

    def _see_assumed_pod(self, pod: Pod, *, deleted: bool) -> PodTransition | None:
        if not (deleted or pod.terminal or pod.node_name):
            return None  # the event predates the binding
        known = self._assumed.by_uid.pop(pod.uid).pod
        if deleted or pod.terminal:
            self._placement.remove_pod(known)
            return _transition(pod, PodState.ASSUMED, PodState.DELETED, known.node_name)
        self._placement.update_pod(known, pod)
        return _transition(pod, PodState.ASSUMED, PodState.ADDED, known.node_name, pod.node_name)

    def _state_error(self, uid: str, tried: str) -> PodStateError:
        pod = self.pods.get(uid)
        if pod is None:
            return PodStateError(f"pod {uid} is not in the mirror and {tried}")
        state = PodState.ASSUMED if uid in self._assumed.by_uid else PodState.ADDED
        return PodStateError(f"pod {pod.full_name} ({uid}) is {state.value} on {pod.node_name} and {tried}")


def _transition(
    pod: Pod, from_state: PodState, to_state: PodState, from_node: str = "", to_node: str = ""
) -> PodTransition:
    return PodTransition(
        uid=pod.uid, pod=pod.full_name, from_state=from_state, to_state=to_state, from_node=from_node, to_node=to_node
    )
