"""A remedy: the steps after which the pod fits on a node, with the details for applying them by hand.

A step changes the pod as a value (pod_steps.py), or the cluster as a fork.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from core.explaining import pod_steps
from core.explaining.claim_steps import ClaimStep, free_claims
from core.explaining.owners import DELETION_COST, ROLLED, UNRANKED, Way, belongs_to_node
from core.explaining.pod_names import PodText
from core.explaining.pod_steps import Changing, Kind, TolerateTaint
from core.explaining.requirements import required_keys
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork, ForkError
from core.objects.devices import ResourceSlice
from core.objects.node import HOSTNAME, UNSCHEDULABLE, ZONE, Node
from core.objects.pod import Pod, Taint
from core.objects.volumes import CSINode

_NEW: Final = "a new one"
"""Value of a label that no node can have, because of its spaces."""
TENTATIVE: Final = "supposed"
"""Name of a supposed pod, and prefix of its UID. No UID of the API server has a slash."""
NO_LABELS: Final[Mapping[str, str]] = {}
_UNINITIALIZED: Final = "node.cloudprovider.kubernetes.io/uninitialized"
_UNREGISTERED: Final = "karpenter.sh/unregistered"
_NO_MACHINE: Final = "node.cluster.x-k8s.io/uninitialized"
_TROUBLES: Final[Mapping[str, str]] = {
    "node.kubernetes.io/not-ready": "is not ready",
    "node.kubernetes.io/unreachable": "does not answer",
    "node.kubernetes.io/memory-pressure": "is short of memory",
    "node.kubernetes.io/disk-pressure": "is short of disk space",
    "node.kubernetes.io/pid-pressure": "has too many processes",
    "node.kubernetes.io/network-unavailable": "has no network",
    "node.kubernetes.io/unschedulable": "has the taint of a cordoned node",
    _UNINITIALIZED: "is not initialized by the cloud controller manager",
    "node.cloudprovider.kubernetes.io/shutdown": "is shut down",
    _UNREGISTERED: "is not registered by Karpenter",
    _NO_MACHINE: "is not initialized by Cluster API",
}
"""Source: k8s.io/api core/v1 well_known_taints.go, k8s.io/cloud-provider api/well_known_taints.go."""
_AGENT: Final = "agent-not-ready"
"""End of the keys of taints that an agent of the node removes when it is ready (Cilium, CSI drivers of AWS)."""
_LEAVES: Final = frozenset(
    {
        "node.kubernetes.io/out-of-service",
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
        "karpenter.sh/disruption",
        "cloud.google.com/impending-node-termination",
    }
)
"""Taints of nodes that are about to be removed."""
_OF_ONE_POD: Final = "eks.amazonaws.com/compute-type"
"""Taint of a node of Fargate, which runs the one pod that it was made for: kubernetes-sigs/karpenter#1857."""
_PLATFORMS: Final = frozenset({"os", "kubernetes.io/os", "node.kubernetes.io/os", "kubernetes.io/arch"})
"""Taints of nodes on which the containers of other pods cannot run: those of Windows, and of arm64 in GKE."""
CONTROL_PLANE: Final = frozenset(
    f"node-role.kubernetes.io/{role}" for role in ("control-plane", "controlplane", "etcd", "master")
)
"""Taints and labels of nodes of the control plane. The second and the third are Rancher's."""
_TERMINATION: Final = "aws-node-termination-handler/"
"""Start of the keys of such taints: github.com/aws/aws-node-termination-handler pkg/node/node.go."""
_STARTUP: Final = ("startup-taint.cluster-autoscaler.kubernetes.io/", "ignore-taint.cluster-autoscaler.kubernetes.io/")
"""Starts of the keys of taints that a new node has: kubernetes/autoscaler cluster-autoscaler/utils/taints/taints.go."""


class SetLabel(Changing, frozen=True, gc=False):
    """Set a label of a node, or remove it."""

    kind = Kind.LABEL_NODE
    node: str
    key: str
    value: str | None
    """None means that the label is removed."""
    had: str | None

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        if self.value is None:
            return f"take the label {self.key}={self.had} from {self.node}"
        instead = f" instead of {self.had}" if self.had else ""
        return f"label {self.node} {self.key}={self.value}{instead}"

    def apply(self, mirror: ClusterMirror, fork: Fork) -> None:
        """Suppose that the node has the label, or does not."""
        node = known(mirror, self.node)
        labels = {key: value for key, value in node.labels.items() if key != self.key}
        if self.value is not None:
            labels[self.key] = self.value
        fork.change_node(replace(node, labels=labels))


class Uncordon(Changing, frozen=True, gc=False):
    """Uncordon a node: reset spec.unschedulable, and remove the taint node.kubernetes.io/unschedulable."""

    kind = Kind.UNCORDON_NODE
    node: str

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        return f"uncordon {self.node}"

    def apply(self, mirror: ClusterMirror, fork: Fork) -> None:
        """Suppose that the node is not cordoned."""
        node = known(mirror, self.node)
        taints = tuple(taint for taint in node.taints if taint != UNSCHEDULABLE)
        fork.change_node(replace(node, unschedulable=False, taints=taints))


class RepairNode(Changing, frozen=True, gc=False):
    """Repair a node, so that the control plane, or the agent that set them, removes the taints of its state."""

    kind = Kind.REPAIR_NODE
    node: str
    taints: Sequence[str]
    """Keys of the taints."""

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        troubles = dict.fromkeys(trouble_text(key) for key in self.taints)
        return f"repair {self.node}: it {' and '.join(troubles)}"

    def apply(self, mirror: ClusterMirror, fork: Fork) -> None:
        """Suppose that the node has none of the taints."""
        node = known(mirror, self.node)
        fork.change_node(replace(node, taints=tuple(each for each in node.taints if each.key not in self.taints)))


class RunPod(Changing, frozen=True, gc=False):
    """Run another pod with certain labels and without requests on the node."""

    kind = Kind.RUN_POD
    namespace: str
    labels: Mapping[str, str]
    node: str
    domains: Mapping[str, str]
    """Topology key -> the domain in which the pod must run. Any node in all of these domains is suitable."""

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        labels = ",".join(f"{key}={value}" for key, value in sorted(self.labels.items()))
        which = f" with {labels}" if labels else ""
        where = " and ".join(f"{key}={value}" for key, value in sorted(self.domains.items()))
        return f"run a pod{which} in namespace {self.namespace} where {where}"

    def apply(self, _mirror: ClusterMirror, fork: Fork) -> None:
        """Suppose that the pod is on the node. A remedy has at most one such step."""
        fork.place(Pod(f"{TENTATIVE}/pod", self.namespace, TENTATIVE, self.labels), self.node)


class RemovePod(Changing, frozen=True, gc=False):
    """Take a pod from its node, in a way in which its owner does not put it back there."""

    kind = Kind.REMOVE_POD
    pod: str
    """NAMESPACE/NAME"""
    uid: str
    node: str
    budgets: Sequence[str] = ()
    """NAMESPACE/NAME of the mirrored PodDisruptionBudgets that forbid its eviction now."""
    way: Way = Way.DELETED
    owner: str = ""
    """NAMESPACE/NAME of its owner. Empty if it has none."""
    owner_kind: str = ""
    siblings: int = 0
    """The other pods of its controller. Without a deletion cost, these may leave instead of it."""
    max_unavailable: int = 0
    """The maxUnavailable with which a rolling update takes the pod away. The API server refuses 0 beside maxSurge 0."""

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        owner = PodText(f"{self.owner_kind} ", self.owner)
        match self.way:
            case Way.SCALED_DOWN:
                less = f" {'down by one' if self.siblings else 'to 0'}, which an operator or autoscaler may undo,"
                text = PodText(*self._first, "scale ", owner, f"{less} so that its pod ", self.pod)
                text = PodText(text, f" leaves {self.node}")
            case Way.ROLLED_OVER:
                most = f" and its maxUnavailable to {self.max_unavailable}"
                text = PodText(*self._first, "set maxSurge of ", owner, f" to 0{most}, so that its old pod ", self.pod)
                text = PodText(text, f" leaves {self.node} first")
            case Way.OWNER_ENDS:
                text = PodText("end or suspend ", owner, ", so that its pod ", self.pod, f" leaves {self.node}")
            case Way.TERMINATES:
                text = PodText("wait until pod ", self.pod, f", which is being deleted, has left {self.node}")
            case Way.PREEMPTED:
                text = PodText("let kube-scheduler preempt pod ", self.pod, f" of lower priority on {self.node}")
            case Way.DELETED:
                text = PodText("remove pod ", self.pod, f", which no owner makes again, from {self.node}")
        forbids = "forbids" if len(self.budgets) == 1 else "forbid"
        names = [piece for budget in self.budgets for piece in (" and ", budget)][1:]
        return PodText(text, ", though ", *names, f" {forbids} its eviction now") if names else text

    @property
    def _first(self) -> Sequence[str]:
        """What lets the controller choose this pod."""
        if not self.siblings or self.owner_kind in UNRANKED:
            return ()
        return "annotate pod ", self.pod, f" {DELETION_COST}, and "

    def apply(self, mirror: ClusterMirror, fork: Fork) -> None:
        """Suppose that the pod is gone, and what happens to its claims."""
        pod = mirror.get_pod(self.uid)
        if pod is None:
            raise ForkError(f"pod {self.pod} is not there")
        fork.remove(pod)
        free_claims(mirror, fork, pod)


class RemakePod(Changing, frozen=True, gc=False):
    """Let the same owner make a placed pod again from the changed template, maybe on the same node.

    A StatefulSet makes a deleted pod from its present template (k8s.io/kubernetes pkg/controller/statefulset/
    stateful_set_utils.go, newVersionedStatefulSetPod). A Deployment's old pod leaves in the rolling update.
    """

    kind = Kind.REMAKE_POD
    pod: str
    """NAMESPACE/NAME"""
    uid: str
    node: str
    owner: str
    """NAMESPACE/NAME"""
    owner_kind: str
    max_unavailable: int = 0
    """The maxUnavailable with which a rolling update takes the pod away."""

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        if self.owner_kind in ROLLED:
            owner = PodText(
                f"(maxSurge 0 and maxUnavailable {self.max_unavailable} of {self.owner_kind} ", self.owner, ")"
            )
            return PodText("let its old pod ", self.pod, " go first ", owner)
        return PodText("delete pod ", self.pod, f", which {self.owner_kind} ", self.owner, " makes again like that")


class AddNode(Changing, frozen=True, gc=False):
    """Add a node that is like an existing one, with its devices, its pods of DaemonSets and its static pods.

    It has the labels, allocatable amounts, conditions, images and declared features of that node.
    kubernetes.io/hostname is its own name, and `labels` has other differing labels. It has the same taints, except for
    the taints of that node's trouble, and the same limits of volumes.
    """

    kind = Kind.ADD_NODE
    name: str
    like: str
    zone: str
    """Value of topology.kubernetes.io/zone. Empty if the node has none."""
    zones: Sequence[str] = ()
    """The other zones with nodes of this kind. One more node there would also help."""
    labels: Mapping[str, str] = {}
    """Labels that differ from that node's, because bound volumes of the pod require them."""
    new_domains: Sequence[str] = ()
    """Topology keys for which the node has a value that no other node has."""

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        if self.new_domains:
            where = " and ".join("in a new zone" if key == ZONE else f"with a new {key}" for key in self.new_domains)
            return f"add a node like {self.like} {where}"
        more = f", or in {' or '.join(self.zones)}" if self.zones else ""
        labels = ",".join(f"{key}={value}" for key, value in sorted(self.labels.items()) if key != ZONE)
        other = "" if self.name.startswith(f"{self.like}-copy") else f" named {self.name}"
        other += f" with {labels}" if labels else ""
        return f"add a node like {self.like}{other}" + (f" in zone {self.zone}{more}" if self.zone else "")

    def apply(self, mirror: ClusterMirror, fork: Fork) -> None:
        """Suppose that the node is there, with the pods that come with each node, and with the same devices."""
        labels = {**self.labels, **dict.fromkeys(self.new_domains, _NEW)}
        pods = filter(belongs_to_node, mirror.pods_on(self.like))
        add_copy(mirror, fork, self.like, copy_of(known(mirror, self.like), self.name, labels), pods)


Step: TypeAlias = (
    pod_steps.LowerRequest
    | TolerateTaint
    | pod_steps.DropRequirement
    | pod_steps.CorrectRequirement
    | pod_steps.HonorPolicy
    | pod_steps.MatchRevision
    | pod_steps.ChangeTopologyKey
    | pod_steps.CorrectSelector
    | pod_steps.PreferTerm
    | pod_steps.SelectNamespace
    | RemakePod
    | ClaimStep
    | SetLabel
    | Uncordon
    | RepairNode
    | pod_steps.RaiseMaxSkew
    | pod_steps.RelaxSpread
    | RunPod
    | RemovePod
    | AddNode
)


class Remedy(msgspec.Struct, frozen=True, gc=False):
    """Steps that together, without any other change, let the pod fit."""

    kind: Kind
    node: str
    """A node on which the pod then fits."""
    steps: Sequence[Step]
    text: str
    """The remedy in one line."""
    then: str = ""
    """What has to be done after the steps, because no controller makes the pod again by itself. Empty for nothing."""


def is_trouble(taint: Taint) -> bool:
    """Return whether a taint is there because something is wrong with the node, and goes when that is mended."""
    return taint.key in _TROUBLES or taint.key.endswith(_AGENT) or taint.key.startswith(_STARTUP)


def is_leaving(taint: Taint) -> bool:
    """Return whether a taint says that the node is about to be removed."""
    return taint.key in _LEAVES or taint.key.startswith(_TERMINATION)


def keeps_others_off(taint: Taint, pod: Pod) -> bool:
    """Return whether a taint stands for what no toleration changes: a node that is going, of one pod, or unlike.

    A node of another platform has such a taint, unless the pod asks for the platform.
    """
    if taint.key in _PLATFORMS:
        label = f"kubernetes.io/{taint.key.rpartition('/')[2]}"
        return not any(key.endswith(label) for key in required_keys(pod))
    return is_leaving(taint) or taint.key == _OF_ONE_POD


def _is_of_new_nodes(taint: Taint) -> bool:
    """Return whether each new node has the taint, until a controller or an agent removes it."""
    kinds = _UNINITIALIZED, _UNREGISTERED, _NO_MACHINE
    return taint.key in kinds or taint.key.endswith(_AGENT) or taint.key.startswith(_STARTUP)


def trouble_text(key: str) -> str:
    """Return what is wrong with a node that has a taint."""
    return _TROUBLES.get(key, f"has the taint {key}")


def copy_of(node: Node, name: str, labels: Mapping[str, str] = NO_LABELS) -> Node:
    """Return a new node like `node`, with another name and other labels. See AddNode."""
    own = {HOSTNAME: name} if HOSTNAME in node.labels else NO_LABELS
    labels = {**node.labels, **own, **labels}
    taints = tuple(each for each in node.taints if _is_of_new_nodes(each) or not (is_trouble(each) or is_leaving(each)))
    return replace(node, name=name, labels=labels, taints=taints, unschedulable=False, uid="", resource_version="")


def add_copy(mirror: ClusterMirror, fork: Fork, like: str, copy: Node, pods: Iterable[Pod]) -> None:
    """Suppose a copy of the node `like`, with the same limits of volumes and devices, and with copies of some pods."""
    fork.add_node(copy)
    limits = mirror.objects(CSINode).get(like)
    if limits is not None and copy.name not in mirror.objects(CSINode):
        fork.add_object(replace(limits, name=copy.name))
    for each in slices_of_copy(mirror.objects(ResourceSlice).values(), like, copy.name):
        fork.add_object(each)
    for pod in pods:
        fork.place(replace(pod, uid=f"{TENTATIVE}/{pod.uid}/{copy.name}", volumes=()), copy.name)


def slices_of_copy(slices: Iterable[ResourceSlice], like: str, name: str) -> Iterator[ResourceSlice]:
    """Yield the slices that a copy of a node brings: those for that node alone, as pools of their own."""
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for each in slices:
        if each.nodes.node_name == like:
            pools.setdefault((each.driver, each.pool), []).append(each)
    for alike in pools.values():
        newest = max(each.generation for each in alike)
        copied = [each for each in alike if each.generation == newest]
        for each in copied:
            nodes = replace(each.nodes, node_name=name)
            yield replace(each, name=f"{each.name}/{name}", pool=f"{each.pool}/{name}", nodes=nodes)


def known(mirror: ClusterMirror, name: str) -> Node:
    """Return a node. Raises ForkError if there is no such node."""
    info = mirror.nodes.infos.get(name)
    if info is None or info.node is None:
        raise ForkError(f"node {name} is not there")
    return info.node
