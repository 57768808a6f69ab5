"""What a simulation must know of pods and budgets beyond the mirror, asked of the caller; pods that leave and return.

A pod that comes again is its owner's pod, made of the owner's present template, and not a copy of the running one. Only
the caller has the templates. For pods without one, `copied` makes copies, and says so.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from core.explaining.owners import belongs_to_node, owner_of
from core.explaining.remedy import TENTATIVE
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.objects.kinds import PodDisruptionBudget
from core.objects.labels import Operator
from core.objects.node import ZONE
from core.objects.pod import NOT_WAITING, Pod, PodClaim
from core.objects.volumes import PersistentVolume, PersistentVolumeClaim

_BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
STATEFUL: Final = "StatefulSet"
"""The kind whose pods keep their names."""


class PodFacts(msgspec.Struct, frozen=True, gc=False):
    """What the mirror does not know of a pod."""

    local_data: bool = False
    """It has an emptyDir volume, whose data goes with it."""
    node_data: bool = False
    """It has a volume whose data stays on the node: hostPath, or an emptyDir that is not in memory. The annotation
    cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes exempts some."""
    is_ready: bool = True
    """Its condition Ready is True."""
    has_started: bool = True
    """Its phase is not Pending."""
    safe_to_evict: bool | None = None
    """The annotation cluster-autoscaler.kubernetes.io/safe-to-evict. None: it has none, or another value."""
    do_not_disrupt: bool = False
    """The annotation karpenter.sh/do-not-disrupt is true."""
    index_failures: int = 0
    """How often pods of its index of a Job have failed: the annotation batch.kubernetes.io/job-index-failure-count."""


class BudgetFacts(msgspec.Struct, frozen=True, gc=False):
    """What the mirror does not know of a PodDisruptionBudget."""

    lacks: int = 0
    """How many healthy pods it lacks: status.desiredHealthy without status.currentHealthy, at least 0."""
    wants_any: bool = True
    """status.desiredHealthy is more than 0."""
    always_allows_unhealthy: bool = False
    """spec.unhealthyPodEvictionPolicy is AlwaysAllow."""
    sync_failed: bool = False
    """The disruption controller cannot count its pods, so it allows no disruption, whatever comes."""


class Again(msgspec.Struct, frozen=True, gc=False):
    """The pod that an owner makes instead of one that leaves."""

    of_template: Pod | None = None
    """A pod of the owner's template. None: the template is not known, so that it is a copy of the pod that leaves."""
    denied: str = ""
    """Why the API server does not make it."""

    def like(self, pod: Pod) -> Pod:
        """Return what it is like, instead of a pod, but for its name and UID."""
        return self.of_template or pod

    def instead_of(self, pod: Pod) -> Pod:
        """Return it, without a node, with a UID that no pod of the mirror has. It is made anew at each call."""
        if self.of_template is None:
            return copy_of_pod(pod)
        return replace(self.of_template, name=pod.name, uid=new_uid(pod.uid))


_A_COPY: Final = Again()


class Facts(Protocol):
    """What the caller knows."""

    def prepare(self, pods: Sequence[Pod]) -> None:
        """Hear of pods that leave together, before each of them is asked about."""

    def comes_again(self, pod: Pod) -> Again | str:
        """Return the pod that comes instead of one that leaves its node, or why none comes elsewhere."""

    def of_pod(self, pod: Pod) -> PodFacts:
        """Return what the mirror does not know of a pod."""

    def of_budget(self, budget: PodDisruptionBudget) -> BudgetFacts:
        """Return what the mirror does not know of a budget."""


OF_NODE: Final = "it belongs to its node"
"""Of the pods of DaemonSets, and of static pods."""
UNMANAGED: Final = "no controller makes it again"
REPLACED: Final = "it is being deleted, and its owner has made another one already"


def copied(pod: Pod) -> Again | str:
    """Return a copy of a pod instead of one that leaves its node, or why none comes elsewhere."""
    if belongs_to_node(pod):
        return OF_NODE
    owner = owner_of(pod)
    if owner is None:
        return UNMANAGED
    return REPLACED if is_replaced(pod) else _A_COPY


def is_replaced(pod: Pod) -> bool:
    """Return whether a pod is being deleted, so that its controller has made another one. A StatefulSet waits."""
    return pod.terminating and (pod.controller is None or pod.controller.kind != STATEFUL)


def new_uid(uid: str) -> str:
    """Return the UID of the pod that comes instead of another one."""
    return f"{TENTATIVE}/{uid}"


def copy_of_pod(pod: Pod, suffix: str = "") -> Pod:
    """Return a pod like another one that has no node yet. Its ephemeral claims have its own name."""
    name = f"{pod.name}{suffix}" if suffix else pod.name  # not a copy of the text
    volumes = pod.volumes
    if suffix and any(isinstance(each, PodClaim) and each.ephemeral for each in volumes):
        volumes = tuple(
            replace(each, name=f"{name}{each.name.removeprefix(pod.name)}")
            if isinstance(each, PodClaim) and each.ephemeral
            else each
            for each in volumes
        )
    return replace(
        pod,
        uid=f"{new_uid(pod.uid)}{suffix}",
        name=name,
        volumes=volumes,
        node_name="",
        resource_version="",
        start_time="",
        nominated_node_name="",
        terminating=False,
        preempted=False,
        waiting=NOT_WAITING,
    )


class Leaving(msgspec.Struct, frozen=True, gc=False):
    """A pod that has left its node, and what comes instead. It holds no pod, because a loss has 50,000 of these."""

    mirror: ClusterMirror
    uid: str
    again: Again | None
    why_not: str = ""
    """Why none comes instead."""
    ephemeral: Sequence[PersistentVolumeClaim] = ()
    """Its own claims, which have gone with it, in the order of its volumes."""

    @property
    def pod(self) -> Pod:
        """The pod that has left, as the mirror still holds it. It is made anew at each call."""
        return self.mirror.pods.pods[self.mirror.pods.rows[self.uid]]

    @property
    def coming(self) -> Pod | None:
        """The pod that a scheduler sees instead. It is made anew at each call."""
        return None if self.again is None or self.again.denied else self.again.instead_of(self.pod)


def leave(mirror: ClusterMirror, fork: Fork, pods: Sequence[Pod], facts: Facts) -> list[Leaving]:
    """Suppose that pods leave their nodes, with the claims of their ephemeral volumes.

    `facts` are prepared for all that leave together, of which these may be a part.
    """
    found = []
    for pod in pods:
        again = facts.comes_again(pod)
        fork.remove(pod)
        own = _own_claims(mirror, pod)
        for claim in own:
            fork.remove_object(claim)
        why_not = again if isinstance(again, str) else ""
        found.append(Leaving(mirror, pod.uid, None if isinstance(again, str) else again, why_not, own))
    return found


def bring_claims(mirror: ClusterMirror, fork: Fork, leaving: Iterable[Leaving]) -> None:
    """Suppose that the pods that come again have claims of their own, without volumes yet."""
    claims = mirror.objects(PersistentVolumeClaim)
    for each in leaving:
        pod = each.coming if each.ephemeral else None
        if pod is None:
            continue
        for claim in each.ephemeral:
            name = f"{pod.name}{claim.name.removeprefix(each.pod.name)}"
            made = unbound(claim, name, pod)
            if made.full_name not in claims:
                fork.add_object(made)


def _own_claims(mirror: ClusterMirror, pod: Pod) -> Sequence[PersistentVolumeClaim]:
    named = [each.name for each in pod.volumes if isinstance(each, PodClaim) and each.ephemeral]
    if not named:
        return ()
    claims = mirror.objects(PersistentVolumeClaim)
    found = (claims.get(f"{pod.namespace}/{name}") for name in named)
    return [each for each in found if each is not None and each.controller and each.controller.uid == pod.uid]


def unbound(claim: PersistentVolumeClaim, name: str, pod: Pod) -> PersistentVolumeClaim:
    """Return a claim like another one for a pod, of its name and without a volume."""
    owner = None if claim.controller is None else replace(claim.controller, name=pod.name, uid=pod.uid)
    return replace(
        claim,
        name=name,
        uid=f"{TENTATIVE}/{pod.uid}/{name}",
        resource_version="",
        volume="",
        bind_completed=False,
        selected_node=None,
        phase="Pending",
        deleting=False,
        controller=owner,
    )


def zones_of_volumes(mirror: ClusterMirror, pod: Pod) -> frozenset[str] | None:
    """Return the zones that the volumes of a pod's bound claims can be reached from, None if they set no bound."""
    claims, volumes = mirror.objects(PersistentVolumeClaim), mirror.objects(PersistentVolume)
    zones: frozenset[str] | None = None
    for each in pod.volumes:
        claim = claims.get(f"{pod.namespace}/{each.name}") if isinstance(each, PodClaim) else None
        volume = volumes.get(claim.volume) if claim is not None and claim.volume else None
        found = None if volume is None else _zones(volume)
        if found is not None:
            zones = found if zones is None else zones & found
    return zones


def _zones(volume: PersistentVolume) -> frozenset[str] | None:
    if volume.node_affinity is None:
        return frozenset({volume.labels[ZONE]}) if ZONE in volume.labels else None
    found: set[str] = set()
    for term in volume.node_affinity.terms:
        bound = [each for each in term.requirements if each.operator is Operator.IN and is_of_zone(each.key)]
        if not bound:
            return None
        found |= frozenset(bound[0].values)
    return frozenset(found)


def is_of_zone(key: str) -> bool:
    """Return whether a label has the zone of a node, of Kubernetes or of a CSI driver."""
    return key in (ZONE, _BETA_ZONE) or (key.startswith("topology.") and key.endswith("/zone"))
