"""How many more pods fit, after those that are pending now: of one template, or of several in turns.

With a node to copy, a node like it is added whenever a pod fits nowhere, until the pods have places or another node
does not help. The new node has a hostname of its own, the pods of DaemonSets that want it, and no taints of its start.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.objects.node import ZONE
from core.objects.pod import Pod, PodClaim, PodVolume
from core.objects.volumes import PersistentVolumeClaim
from core.simulation.facts import copy_of_pod
from core.simulation.kinds import alike
from core.simulation.moves import Basis, Rejected, rejected
from core.simulation.new_nodes import NewNodes, NodeLike
from core.simulation.orders import arrival
from core.simulation.placing import Outcome, Placing, Steps

POOL_LABELS: Final = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "node.kubernetes.io/instance-type",
)
"""Labels whose values are the pools of nodes, the first that a node has counts."""
MOST: Final = 1_000_000
"""How many replicas are placed at most."""
_AT_ONCE: Final = 1_000


class Allowance(NamedTuple):
    """What a quota leaves of a resource, for all replicas together."""

    text: str
    """Which quota and resource it is, and the amounts."""
    left: int
    """In any unit; less than 0 counts as nothing."""


class Template(NamedTuple):
    """What a replica is like."""

    pod: Pod
    """Without a node."""
    share: int = 1
    """How many of a turn are of this template, at least 1."""
    claims: Sequence[PersistentVolumeClaim] = ()
    """Claims that each replica gets for itself, named as in the volumes of `pod`."""
    uses: Sequence[tuple[Allowance, int]] = ()
    """What each replica uses of an allowance, at least 1."""


class Fill(msgspec.Struct, frozen=True, gc=False):
    """How much of a resource is requested, of all nodes together. cpu is in millicores."""

    requested: int
    allocatable: int


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """How many more pods fit."""

    placed: int
    """In the first order, up to the number that was asked for."""
    least: int
    most: int
    """The least and the most over all orders."""
    by_template: Sequence[int]
    by_zone: Mapping[str, int]
    by_pool: Mapping[str, int]
    stopped_at: int = -1
    """The template whose next replica has no place. -1: none."""
    rejected: Rejected | None = None
    """Why it has none."""
    quota: str = ""
    """The quota that allows no more."""
    pending_placed: int = 0
    pending_unplaced: Sequence[tuple[str, Rejected]] = ()
    """NAMESPACE/NAME of the pending pods that find no place, in the first order."""
    fill: Mapping[str, Fill] = {}
    """Resource -> how full the cluster is then, in the first order."""
    added: Sequence[str] = ()
    """The nodes that were added, in the first order."""
    added_zone: str = ""
    orders: int = 1


class _Run(NamedTuple):
    placed: Counter[int]
    """Template -> replicas that have a place."""
    pending: list[Outcome]
    stopped_at: int
    rejected: Rejected | None
    quota: str
    fill: Mapping[str, Fill]
    added: Sequence[str]
    zones: Mapping[str, int]
    pools: Mapping[str, int]


def capacity(
    basis: Basis, templates: Sequence[Template], number: int | None = None, *, like: NodeLike | None = None
) -> Steps[Capacity]:
    """Place replicas after the pending pods, up to a number or until one fits nowhere. Nothing is left of it.

    Without templates, only the pending pods are placed. Raises ForkError if there is no node to copy.
    """
    runs = []
    with basis.mirror.fork(cache_follows=True) as fork:
        for order in range(basis.orders):
            savepoint = fork.savepoint()
            runs.append((yield from _Filling(basis, fork, order, like).run(templates, number)))
            fork.revert_to(savepoint)
    first, counts = runs[0], [run.placed.total() for run in runs]
    return Capacity(
        placed=counts[0],
        least=min(counts),
        most=max(counts),
        by_template=[first.placed[index] for index in range(len(templates))],
        by_zone=first.zones,
        by_pool=first.pools,
        stopped_at=first.stopped_at,
        rejected=first.rejected,
        quota=first.quota,
        pending_placed=sum(each.is_placed for each in first.pending),
        pending_unplaced=[(each.pod.full_name, rejected(each)) for each in first.pending if not each.is_placed],
        fill=first.fill,
        added=first.added,
        added_zone="" if like is None else like.zone_in(basis.mirror),
        orders=basis.orders,
    )


class _Filling:
    """One order."""

    def __init__(self, basis: Basis, fork: Fork, order: int, like: NodeLike | None) -> None:
        self._mirror = basis.mirror
        self._fork = fork
        self._order = order
        self._placing: Placing = basis.placing(fork, order)
        self._new = None if like is None else NewNodes(basis, fork, self._placing, like)
        self._pending: list[Outcome] = []
        self._helped: list[int] = []  # places of pending pods that find no node, and which another pod may help
        self._helped_of: dict[int, list[int]] = {}  # template -> those that a replica of it may help
        self._placed: list[tuple[int, Outcome]] = []
        self._counts: Counter[int] = Counter()  # template -> replicas so far
        self._used: Counter[Allowance] = Counter()

    def run(self, templates: Sequence[Template], number: int | None) -> Steps[_Run]:
        """Place pending pods, then replicas. A replica may help a pending pod, which then comes before the next one."""
        # A scheduler skips a pod that is being deleted (schedule_one.go, skipPodSchedule).
        pending = (each for each in self._mirror.pending if not each.terminating)
        waiting = [each for each in pending if not self._mirror.is_mirrored(each.uid)]
        self._pending = yield from self._all(arrival(waiting, self._order))
        may_be_helped = self._placing.may_be_helped
        self._helped = [at for at, each in enumerate(self._pending) if each.rejection and may_be_helped(each.pod)]
        stopped_at, why, quota = -1, None, ""
        left = MOST if number is None else min(number, MOST)
        turns = _turns(templates)
        while left > 0 and templates:
            template = next(turns)
            helped = self._helped_by(template, templates[template].pod)
            size = 1 if helped or len(templates) > 1 else min(left, _AT_ONCE)
            pods, quota = self._next(template, templates[template], size)
            outcomes = yield from self._all(pods)
            self._placed += [(template, each) for each in outcomes if each.is_placed]
            self._counts[template] += len(pods)
            left -= len(pods)
            yield from self._try_pending(helped)
            over = next((each for each in outcomes if not each.is_placed), None)
            if over is not None or quota:
                stopped_at, why, left = template, None if over is None else rejected(over), 0
        return self._finished(stopped_at, why, "" if why is not None else quota)

    def _next(self, at: int, template: Template, size: int) -> tuple[list[Pod], str]:
        """Return the next replicas of a template, and the quota that allows no more after them."""
        before, allowed, quota = self._counts[at], size, ""
        for allowance, amount in template.uses:
            most = max(0, allowance.left - self._used[allowance]) // amount
            if most < allowed:
                allowed, quota = most, allowance.text
        for allowance, amount in template.uses:
            self._used[allowance] += allowed * amount
        return [self._replica(at, template, before + each) for each in range(allowed)], quota

    def _replica(self, at: int, template: Template, number: int) -> Pod:
        suffix = f"-{at}-{number}"
        pod = copy_of_pod(template.pod, suffix)
        renamed = {each.name: f"{each.name}{suffix}" for each in template.claims}
        if not renamed:
            return pod
        pod = replace(pod, volumes=tuple(_renamed(each, renamed) for each in template.pod.volumes))
        for claim in template.claims:
            owner = None if claim.controller is None else replace(claim.controller, name=pod.name, uid=pod.uid)
            made = replace(claim, name=renamed[claim.name], uid=f"{pod.uid}/{claim.name}", controller=owner)
            self._fork.add_object(made)
        return pod

    def _all(self, pods: Sequence[Pod]) -> Steps[list[Outcome]]:
        """Place pods, and then those without a place with more nodes, where they may be added and help."""
        return (yield from self._with_more_nodes((yield from self._placing.place(pods))))

    def _helped_by(self, at: int, pod: Pod) -> list[int]:
        """Return the places of the pending pods that a replica of a template may help."""
        if at not in self._helped_of:
            pending = ((place, self._pending[place].pod) for place in self._helped)
            self._helped_of[at] = [place for place, each in pending if self._placing.may_help(pod, each)]
        return self._helped_of[at]

    def _try_pending(self, left: list[int]) -> Steps[None]:
        """Try pending pods again after a replica was placed, and all that may be helped after one of them was."""
        while left:
            found = yield from self._placing.again([self._pending[at] for at in left])
            found = yield from self._with_more_nodes(found)
            if not any(each.is_placed for each in found):
                return
            for at, outcome in zip(left, found, strict=True):
                self._pending[at] = outcome
            left = self._helped = [at for at in self._helped if not self._pending[at].is_placed]
            self._helped_of.clear()

    def _with_more_nodes(self, found: list[Outcome]) -> Steps[list[Outcome]]:
        left = [at for at, each in enumerate(found) if each.rejection is not None]
        while self._new is not None and left:
            for at in left:
                if at and not found[at - 1].is_placed and alike(found[at - 1].pod, found[at].pod):
                    continue
                (found[at],) = yield from self._placing.again([found[at]])
                if not found[at].is_placed:
                    found[at] = (yield from self._new.placed(found[at].pod)) or found[at]
            helped = any(found[at].is_placed for at in left)
            rest = [at for at in left if helped and not found[at].is_placed]
            left = [at for at in rest if self._placing.may_be_helped(found[at].pod)]
        return found

    def _finished(self, stopped_at: int, why: Rejected | None, quota: str) -> _Run:
        zones: Counter[str] = Counter()
        pools: Counter[str] = Counter()
        for _, outcome in self._placed:
            info = self._mirror.nodes.infos[outcome.node]
            labels = {} if info.node is None else info.node.labels
            zones[labels.get(ZONE, "")] += 1
            pools[next((labels[key] for key in POOL_LABELS if key in labels), "")] += 1
        added = [] if self._new is None else self._new.names
        fill = _fill(self._mirror, self._fork, added)
        placed = Counter(template for template, _ in self._placed)
        return _Run(placed, self._pending, stopped_at, why, quota, fill, added, dict(zones), dict(pools))


def _renamed(volume: PodVolume, names: Mapping[str, str]) -> PodVolume:
    return replace(volume, name=names.get(volume.name, volume.name)) if isinstance(volume, PodClaim) else volume


def _turns(templates: Sequence[Template]) -> Iterator[int]:
    """Yield the template of each replica, without end."""
    turn = [at for at, template in enumerate(templates) for _ in range(template.share)]
    return (turn[number % len(turn)] for number in count())


def _fill(mirror: ClusterMirror, fork: Fork, added: Sequence[str]) -> dict[str, Fill]:
    """Return how full the cluster is with the placed pods and the added nodes."""
    figures = mirror.figures
    requested: Counter[str] = Counter(figures.guaranteed_requested)
    requested.update(figures.best_effort_requested)
    allocatable: Counter[str] = Counter(figures.guaranteed_allocatable)
    for pod in fork.placed:
        requested.update(pod.requests)
        requested["pods"] += 1
    for name in added:
        node = mirror.nodes.infos[name].node
        allocatable.update({} if node is None else node.allocatable)
    return {name: Fill(requested[name], amount) for name, amount in sorted(allocatable.items())}
