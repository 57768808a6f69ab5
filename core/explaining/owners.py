"""Whose pod it is, and in which way it can leave its node so that its owner does not put it back there.

Source: k8s.io/kubernetes v1.36 pkg/controller: daemon/daemon_controller.go (manage: one pod for each node, at once)
and daemon/update.go (with maxSurge, a node's new pod comes before its old one goes),
replicaset/replica_set.go and controller_utils.go (ActivePodsWithRanks: pods without a node are deleted first, then
those that have not started, those that are not ready, those of the least pod-deletion-cost; the mirror does not know
which are ready), statefulset/stateful_set_control.go (the largest ordinal is deleted first, and by default none while
a replica waits), deployment/sync.go (scale: in a rollout the largest ReplicaSet loses a pod, of equal ones the older),
deployment/util/deployment_util.go (ResolveFenceposts: with maxSurge 0, maxUnavailable is at least 1), and
pkg/kubelet/pod/mirror_client.go (the controller of a static pod's mirror is its Node).
"""

from collections.abc import Sequence
from enum import Enum
from functools import cached_property
from itertools import chain
from typing import Final

import msgspec

from core.explaining.pod_names import OwnerName
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import ControllerRef
from core.objects.pod import Pod


class Way(Enum):
    """How a pod leaves its node for good."""

    DELETED = "deleted"
    """It has no owner."""
    SCALED_DOWN = "scaledDown"
    """Its owner has one replica less."""
    ROLLED_OVER = "rolledOver"
    """Its owner, also that of the pending pod, takes an old pod away before it makes a new one."""
    OWNER_ENDS = "ownerEnds"
    """Its owner is no longer there, or is suspended."""
    TERMINATES = "terminates"
    """It is being deleted already."""
    PREEMPTED = "preempted"
    """kube-scheduler evicts it for the pending pod. What its owner makes instead waits behind that pod."""


class Owner(msgspec.Struct, frozen=True, gc=False):
    """The object whose template a pod is made from."""

    kind: str
    name: OwnerName


_OF_NODE: Final = ("DaemonSet", "Node")
"""Controllers that make a deleted pod again, on the same node."""
_REVISIONS: Final = (("pod-template-hash", "Deployment"), ("rollouts-pod-template-hash", "Rollout"))
"""Labels with the suffix that the name of a ReplicaSet has behind its owner's name."""
_REVISION: Final = "controller-revision-hash"
_STATEFUL: Final = "StatefulSet"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost=-2147483648"
"""The annotation of the pod that goes first among those of a controller that have started, and are ready."""
UNRANKED: Final = frozenset({_STATEFUL, "DaemonSet"})
"""Owners that ignore the deletion cost."""
_REPLACING: Final = frozenset({_STATEFUL, "ReplicaSet", "ReplicationController"})
"""Owners that make a deleted pod again from the present template, and replace none by themselves."""
ROLLED: Final = frozenset({"Deployment", "Rollout"})
"""Owners whose old pods are made again from the old template: they leave in a rolling update."""
SCALED: Final = frozenset({*ROLLED, "ReplicaSet", "ReplicationController", "CloneSet", _STATEFUL})
_CONFIG: Final = "DeploymentConfig"
"""It is scaled, too, but its old pods are made again from the old template."""


def owner_of(pod: Pod) -> Owner | None:
    """Return the owner, which of a ReplicaSet with the hash of a revision is the owner of that ReplicaSet.

    Of a ReplicationController of OpenShift it is the DeploymentConfig, which sets its replicas.
    """
    controller = pod.controller
    if controller is None:
        return None
    config = pod.labels.get("deploymentconfig")
    if config and controller.kind == "ReplicationController":
        return Owner(_CONFIG, OwnerName(f"{pod.namespace}/{config}"))
    if controller.kind == "ReplicaSet":
        for label, kind in _REVISIONS:
            revision = pod.labels.get(label)
            if revision and controller.name.endswith(f"-{revision}"):
                return Owner(kind, OwnerName(f"{pod.namespace}/{controller.name.removesuffix(f'-{revision}')}"))
    return Owner(controller.kind, OwnerName(f"{pod.namespace}/{controller.name}"))


def made_again(pod: Pod) -> str:
    """Return how a pod without a node gets the changes of its template. Empty if its owner sees to it.

    A StatefulSet waits for the pod to run (statefulset/stateful_set_control.go, updateStatefulSet), other owners of
    _REPLACING leave the pods that they have, and pkg/apis/batch/validation and pkg/apis/core/validation refuse changes.
    """
    owner = owner_of(pod)
    if owner is None:
        return "make it again: what it asks for cannot be changed"
    if owner.kind in _REPLACING:
        unless = ", unless its partition holds the change back" if owner.kind == _STATEFUL else ""
        return f"delete it: its {owner.kind} makes it again with the change{unless}"
    return "make its Job again: the template cannot be changed" if owner.kind == "Job" else ""


def belongs_to_node(pod: Pod) -> bool:
    """Return whether the pod would be made again on its node at once: a DaemonSet's, or the mirror of a static pod.

    A mirror has its node's name at the end (pkg/kubelet/config/common.go, generatePodName). Since 1.17 it has the Node
    as its controller, which a dump may lack.
    """
    if pod.controller is not None:
        return pod.controller.kind in _OF_NODE
    return bool(pod.node_name) and pod.name.endswith(f"-{pod.node_name}")


class Siblings(msgspec.Struct):
    """The pods of one controller, of a StatefulSet also those that terminate."""

    controller: ControllerRef | None
    owner: Owner | None
    number: int = 0
    waiting: int = 0
    """Those without a node."""
    not_started: int = 0
    """Those that the kubelet of their node has not accepted yet."""
    largest: int = -1
    """The largest ordinal."""

    @property
    def placed(self) -> int:
        """Those with a node."""
        return self.number - self.waiting

    def count(self, pod: Pod) -> None:
        """Count a pod."""
        if pod.terminating and pod.controller is not None and pod.controller.kind != _STATEFUL:
            return
        self.number += 1
        self.waiting += not pod.node_name
        self.not_started += bool(pod.node_name) and not pod.start_time
        self.largest = max(self.largest, ordinal(pod))


class Leaving:
    """The ways in which pods can leave their nodes, for one pending pod. Stale after the next event."""

    def __init__(self, mirror: ClusterMirror, pod: Pod) -> None:
        self._mirror = mirror
        self._pod = pod
        self._owner = owner_of(pod)
        self._found: dict[str, dict[ControllerRef | None, Siblings]] = {}  # by namespace
        self._of_owner: dict[Owner | None, list[Siblings]] = {}  # of these namespaces

    def way(self, gone: Pod) -> Way | None:
        """Return how the pod can leave for good, or None if it would come back, or is like the pending pod."""
        controller, owner = gone.controller, owner_of(gone)
        if controller is None or owner is None:
            ends = Way.TERMINATES if gone.terminating else Way.DELETED
            return None if belongs_to_node(gone) else ends
        if gone.namespace == self._pod.namespace and controller == self._pod.controller:
            # With maxSurge, the new pod of a DaemonSet for a node is made before the old one has gone.
            older = self._pod.of_daemon_set and gone.labels.get(_REVISION) != self._pod.labels.get(_REVISION)
            return Way.ROLLED_OVER if older else None
        if belongs_to_node(gone) or (gone.terminating and controller.kind == _STATEFUL):
            return None  # a StatefulSet makes the same pod again as soon as it has ended
        return Way.TERMINATES if gone.terminating else self._way_of(gone, controller, owner)

    def _way_of(self, gone: Pod, controller: ControllerRef, owner: Owner) -> Way | None:
        made_it = controller.kind in ROLLED  # as Flink's does: its scale does not count the pod
        if owner == self._owner and (made_it or not self._is_rolled):
            return None
        if made_it:
            return Way.OWNER_ENDS
        if owner == self._owner:
            old = [each for each in self._of_pods_owner if each.controller != self._pod.controller and each.placed]
            return Way.ROLLED_OVER if len(old) == 1 and self._started_as_others(gone) else None
        if owner.kind not in {*SCALED, _CONFIG}:
            return Way.OWNER_ENDS
        siblings = self.siblings(gone)
        if controller.kind == _STATEFUL:
            first = ordinal(gone) == siblings.largest
        else:
            first = self._started_as_others(gone) and self._are_largest(siblings)
        return Way.SCALED_DOWN if first and not siblings.waiting else None

    @property
    def _is_rolled(self) -> bool:
        """Whether a rolling update made the pending pod."""
        controller, owner = self._pod.controller, self._owner
        return owner is not None and owner.kind in ROLLED and controller is not None and controller.kind != owner.kind

    def _are_largest(self, siblings: Siblings) -> bool:
        """Return whether no other revision of the owner loses a pod first. Of one pod each, all go: to 0 replicas."""
        others = (each.number for each in self._of_owner.get(siblings.owner, ()) if each is not siblings)
        return all(number < max(siblings.number, 2) for number in others)

    def _started_as_others(self, gone: Pod) -> bool:
        """Return whether no pod of the controller goes first because it has a node, but has not started."""
        return not gone.start_time or not self.siblings(gone).not_started

    def siblings(self, gone: Pod) -> Siblings:
        """Return the pods of a pod's controller."""
        return self._siblings_in(gone.namespace).get(gone.controller, Siblings(None, None))

    def max_unavailable(self) -> int:
        """Return the maxUnavailable with which an old pod of the pending one's Deployment goes.

        Source: deployment/rolling.go (reconcileOldReplicaSets). There are at least as many pods as replicas, so one
        more than the unavailable pods is enough, and for one replica 1.
        """
        of_owner = self._of_pods_owner
        old = sum(each.number for each in of_owner if each.controller != self._pod.controller)
        waiting = sum(each.waiting for each in of_owner) + (self._pod.uid not in self._mirror.pending)
        return 1 if old == waiting == 1 else waiting + 1

    @cached_property
    def _of_pods_owner(self) -> Sequence[Siblings]:
        """The pods of each controller with the pending pod's owner."""
        self._siblings_in(self._pod.namespace)
        return self._of_owner.get(self._owner, ())

    def _siblings_in(self, namespace: str) -> dict[ControllerRef | None, Siblings]:
        """Return the pods of a namespace by controller."""
        if namespace in self._found:
            return self._found[namespace]
        found: dict[ControllerRef | None, Siblings] = {}
        pending = (pod for pod in self._mirror.pending if pod.namespace == namespace)
        for pod in chain(self._mirror.pods.in_namespace(namespace), pending):
            if pod.controller is not None:
                if pod.controller not in found:
                    found[pod.controller] = made = Siblings(pod.controller, owner_of(pod))
                    self._of_owner.setdefault(made.owner, []).append(made)
                found[pod.controller].count(pod)
        self._found[namespace] = found
        return found


def ordinal(pod: Pod) -> int:
    """Return the number at the end of a pod's name, -1 if there is none."""
    number = pod.name.rpartition("-")[2]
    return int(number) if number.isascii() and number.isdigit() else -1
