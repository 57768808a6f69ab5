"""The plugin DynamicResources: which nodes have the devices that the claims of a pod request.

It judges, and allocates nothing: kube-scheduler's own plugin alone does that. Source: k8s.io/kubernetes
pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go.
"""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from core.events import Kind
from core.framework.claims import ClaimError
from core.framework.interface import SKIP, SUCCESS, Code, FilterPlugin, ScorePlugin, Status, Verdicts, Versions
from core.framework.invalidation import InvalidationRule, Scope, differs, node_update
from core.framework.scores import default_normalize
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.topology import Int64Array, IntpArray
from core.objects.devices import MAX_ALTERNATIVES, DeviceTaintRule, ResourceClaim, ResourceSlice
from core.objects.kinds import DeviceClass
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.pod_requests import may_be_devices
from core.plugins.dynamicresources.alike import Aspect, Outcomes
from core.plugins.dynamicresources.allocator import (
    MAX_STEPS,
    AllocationError,
    OnThisNodeError,
    Result,
    Search,
    UndecidedError,
)
from core.plugins.dynamicresources.claims import aspects_of_claims, claims_of, refuse_unknown_classes
from core.plugins.dynamicresources.constraints import ClaimNeeds
from core.plugins.dynamicresources.explaining import ExplainedDevices
from core.plugins.dynamicresources.extended import claim_for_extended, extended, lacking_on, provided_on, requests_for
from core.plugins.dynamicresources.gates import gates_of, unsupported
from core.plugins.dynamicresources.inventory import Inventory
from core.plugins.dynamicresources.outcomes import TO_JUDGE, TO_SCORE, Bound, CompileBudget, Outcome
from core.plugins.dynamicresources.pools import Pool, PoolError
from core.releases.release import DeviceClassResources, Rules

if TYPE_CHECKING:
    from core.plugins.dynamicresources.survey import Survey

NAME: Final = "DynamicResources"
_REJECTED: Final = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
CANNOT_ALLOCATE: Final = Status(_REJECTED, ("cannot allocate all claims",))
NOT_AVAILABLE: Final = Status(_REJECTED, ("resourceclaim not available on the node",))
STALE_CLAIM: Final = Status(_REJECTED, ("cannot schedule extended resource claim",))
CANNOT_FIT: Final = Status(_REJECTED, ("cannot fit resource",))
_OPTIONAL_OPERATIONS: Final = "DRAOptionalNodeOperations"
_TOO_LONG: Final = "the search for devices takes too long"
_FITS: Final = Outcome(SUCCESS)


class Claims:
    """The claims of an incoming pod, for all nodes. Stale after the next event."""

    def __init__(self, mirror: ClusterMirror, pod: Pod, bound: Bound = TO_JUDGE) -> None:
        """Raise ClaimError if no node can do."""
        self.inventory = mirror.derived(Inventory)
        self.gates = self.inventory.gates
        self._budget = CompileBudget(bound.compiled)
        self._mirror = mirror
        self.pod = pod
        self.named = claims_of(mirror, pod)
        self.special = claim_for_extended(self.inventory, pod) if self.gates.extended_resources else None
        self.all: list[ResourceClaim] = [*self.named, *(() if self.special is None else (self.special,))]
        self.extended = extended(pod) if self.special is not None else {}
        self._demands: dict[frozenset[str] | None, Demand] = {}
        self._bound = bound
        self.steps = 0
        for claim in self.all:
            if claim.allocation is not None:
                if claim.allocation.nodes is not None and (error := claim.allocation.nodes.parse_error):
                    raise ClaimError(error, Code.ERROR)
            elif claim is not self.special:
                refuse_unknown_classes(mirror, claim)
        self.must_allocate = any(claim.allocation is None for claim in self.all)
        self.undecided: dict[str, str] = {}
        """Names of nodes that could not be judged, with the reason. They pass, and no score counts."""
        self.survey: Survey | None = None
        """What an explanation has counted."""

    def on(self, slot: int, node: Node, key: Hashable | None = None) -> Outcome:
        """Return what becomes of the claims on a node, known or not. `key` is what `Inventory.groups` has of it."""
        provided = None
        if self.special is not None:
            if self.special.requests:
                return Outcome(STALE_CLAIM)
            if lacking_on(self.inventory, self.extended, node):
                return Outcome(CANNOT_FIT)
            provided = self.provided(node)
            if not self.named and not provided:
                return _FITS
        unavailable = any(self.is_unavailable(claim, node) for claim in self.all)
        outcome = self._allocated(slot, node, provided, key) if self.must_allocate else _FITS
        return Outcome(NOT_AVAILABLE) if unavailable and outcome.status is SUCCESS else outcome

    def provided(self, node: Node) -> frozenset[str] | None:
        """Return the extended resources that devices have to provide on a node. None: the pod has no such resource."""
        return None if self.special is None else provided_on(self.inventory, self.extended, node)

    def is_unavailable(self, claim: ResourceClaim, node: Node) -> bool:
        """Return whether the devices that a claim has already cannot be used on a node."""
        allocation = claim.allocation
        if allocation is None:
            return False
        if allocation.nodes is not None and not allocation.nodes.matches(node.labels, node.name):
            return True
        lacks_operations = allocation.needs_optional_operations and _OPTIONAL_OPERATIONS not in node.declared_features
        return (self.gates.fixed and lacks_operations) or (self.gates.binding_conditions and allocation.unbindable)

    # The search.

    def needs_of(self, provided: frozenset[str] | None) -> "Demand":
        """Return what is to be allocated on nodes where devices provide these extended resources."""
        found = self._demands.get(provided)
        if found is None:
            selection = self.inventory.selection
            claims = [
                selection.needs_of(claim.full_name, claim.requests, claim.constraints, self._budget)
                for claim in self.named
                if claim.allocation is None
            ]
            if self.special is not None and self.special.allocation is None:
                requests = requests_for(self.inventory, self.pod, provided or ())
                claims.append(selection.needs_of(self.special.full_name, requests, (), self._budget))
            content = tuple([(each.requests, each.constraints) for each in claims])
            found = Demand(claims, *aspects_of_claims(claims), self.inventory.outcomes_of(content))
            self._demands[provided] = found
        return found

    def _allocated(
        self, slot: int, node: Node, provided: frozenset[str] | None, key: Hashable | None = None
    ) -> Outcome:
        """Search, or take the outcome of a node whose pools are alike."""
        if self._bound.of_a_node:
            self.steps += self._bound.of_a_node + (0 if self.inventory.has_read(slot) else self._bound.of_a_read)
            if self.steps > self._bound.steps:
                return self._undecided(node, _TOO_LONG)
        try:
            demand = self.needs_of(provided)
            pools = self.pools_of(slot, node)
        except UndecidedError as error:
            return self._undecided(node, str(error))
        except PoolError as error:
            return Outcome(Status(Code.ERROR, (f"gather pool information: {error}",)))
        self._read_usage(pools)
        key = key or self.inventory.alike.key_of(pools, demand.aspects)
        known = demand.known
        place = None if key is None else known.by_key.get(key)
        if place is not None:
            if slot != NO_SLOT:
                known.see(slot, place, self.inventory.now)
            outcome: Outcome = known.listed[place]
            return outcome
        before = self.steps
        outcome = self._searched(demand, pools, node)
        if not outcome.is_of_one:
            known.keep(outcome, key, slot, self.inventory.now)
        elif not self._bound.of_a_node:
            known.waste(self.steps - before, self.inventory.now)
        return outcome

    def _read_usage(self, pools: Sequence[Pool]) -> None:
        for pool in pools:
            if pool.usage is None:
                self.steps += len(pool.devices) // _DEVICES_IN_A_STEP
            self.inventory.usage_of(pool)

    def of_batch(self, batch: NodeBatch, *, to_score: bool = False) -> tuple[list[Outcome], Int64Array]:
        """Return outcomes, and for each node of a batch the place of its own among them.

        For a score only the search counts, and not whether claims that are allocated already are available there.
        """
        known = self._known_of(batch, to_score=to_score)
        if known is None:
            return [*_outcomes(self, batch)], np.arange(len(batch))
        places = known.places(batch.slots, self.inventory.changed_at)
        missing = np.flatnonzero(places < 0)
        if not len(missing):
            return known.listed, places
        others = self._judge(batch.slots[missing], known, to_score=to_score)
        places = known.places(batch.slots, self.inventory.changed_at)
        places[missing[[*others]]] = np.arange(len(others)) + len(known.listed)
        if (places < 0).any():  # there were too many outcomes, so some were forgotten meanwhile
            return [*_outcomes(self, batch)], np.arange(len(batch))
        return [*known.listed, *others.values()], places

    def _judge(self, slots: IntpArray, known: Outcomes, *, to_score: bool) -> dict[int, Outcome]:
        """Judge one node for all that are alike. Return by position in `slots` the outcomes that are not kept."""
        others: dict[int, Outcome] = {}
        groups: Mapping[Hashable | None, Sequence[int]] = {None: range(len(slots))}
        if not self._bound.of_a_node:  # else each is judged by itself, because to group all takes longer
            groups = self.inventory.groups(slots, self.needs_of(None).aspects)
        for key, members in groups.items():
            for number, at in enumerate(members):
                slot = int(slots[at])
                node = self.inventory.nodes[slot]
                outcome = self._allocated(slot, node, None, key) if to_score else self.on(slot, node, key)
                if outcome.is_of_one:
                    others[at] = outcome
                elif key is not None:
                    known.see_alike(slots[members[number + 1 :]], slot, self.inventory.now)
                    break
        return others

    def _known_of(self, batch: NodeBatch, *, to_score: bool) -> Outcomes | None:
        """Return what is known, if nothing but devices decides, and all nodes are known."""
        if batch.unmirrored or self.special is not None:
            return None
        if not to_score and any(each.allocation is not None for each in self.all):
            return None
        try:
            return self.needs_of(None).known
        except UndecidedError:
            return None

    def pools_of(self, slot: int, node: Node) -> Sequence[Pool]:
        """Return the pools of a node. Raises PoolError."""
        return self.inventory.pools_seen_by(node) if slot == NO_SLOT else self.inventory.pools_of(slot, node)

    def _searched(self, demand: "Demand", pools: Sequence[Pool], node: Node) -> Outcome:
        wasted = 0 if self._bound.of_a_node else demand.known.wasted(self.inventory.now)
        left = self._bound.steps - max(self.steps, wasted)
        if left < 0:
            return self._undecided(node, _TOO_LONG)
        search = Search(demand.claims, pools, [self.inventory.usage_of(pool) for pool in pools], node, self.gates)
        self.steps += self._bound.of_a_search
        begun = search.steps = max(0, MAX_STEPS - left)
        try:
            found = search.run()
        except UndecidedError as error:
            return self._undecided(node, str(error))
        except (AllocationError, PoolError) as error:
            return Outcome(Status(Code.ERROR, (str(error),)))
        except OnThisNodeError as error:
            return Outcome(Status(_REJECTED, (str(error),)))
        finally:
            self.steps += search.steps - begun
        if not found:
            return Outcome(CANNOT_ALLOCATE)
        return Outcome(SUCCESS, sum(map(_score_of, search.results)))

    def _undecided(self, node: Node, why: str) -> Outcome:
        self.undecided[node.name] = why
        return Outcome(SUCCESS, undecided=why)

    def score_of_allocated(self) -> int:
        """Return the score of the claims that were allocated before. Upstream computeScore."""
        score = 0
        for claim in self.all:
            chosen = {each.request for each in claim.allocation.devices} if claim.allocation is not None else set()
            for request in claim.requests if chosen else ():
                for position, each in enumerate(request.first_available if request.exactly is None else ()):
                    if f"{request.name}/{each.name}" in chosen:
                        score += MAX_ALTERNATIVES - position
        return score


class Demand(NamedTuple):
    """What is to be allocated, what decides about it, and what is known of nodes by what decides there."""

    claims: list[ClaimNeeds]
    aspects: tuple[Aspect, ...]
    explained: tuple[Aspect, ...]
    """What decides about an explanation."""
    known: Outcomes


_DEVICES_IN_A_STEP: Final = 8
"""As many are looked at in the time of a step to see what is allocated of a pool."""


def _unversioned(each: Any) -> Any:  # noqa: ANN401  # of any of the four kinds
    return None if each is None else replace(each, uid="", resource_version="")


def _score_of(results: Sequence[Result]) -> int:
    chosen = {(each.need.base, each.need.alternative) for each in results}
    return sum(MAX_ALTERNATIVES - at for _, at in chosen if at is not None)


_INVALIDATED_BY: Final = (
    node_update(
        when="a label changed, an amount of an extended resource, or whether it declares DRAOptionalNodeOperations",
        because="slices, devices and allocations select nodes by labels, and a device plugin may have the resource",
        reads=lambda node: (
            node.labels,
            _OPTIONAL_OPERATIONS in node.declared_features,
            {name: amount for name, amount in node.allocatable.items() if may_be_devices(name)},
        ),
    ),
    InvalidationRule(
        kind=ResourceSlice,
        scope=Scope.COUNTERS,
        when="it comes or goes, or anything in its spec changed",
        because="its devices are what claims get, on every node that can see them",
        touches=differs(_unversioned),
    ),
    InvalidationRule(
        kind=ResourceClaim,
        scope=Scope.COUNTERS,
        when="the pod names it, or devices were allocated to it or no longer are",
        because="a device of another claim is in use, and an allocated claim is where its devices are",
        touches=differs(_unversioned),
    ),
    InvalidationRule(
        kind=DeviceClass,
        scope=Scope.COUNTERS,
        when="it comes or goes, or its selectors or its extended resource changed",
        because="requests of the class select other devices, or it provides another resource",
        touches=differs(_unversioned),
    ),
    InvalidationRule(
        kind=DeviceTaintRule,
        scope=Scope.COUNTERS,
        when="it comes or goes, or selects other devices, or taints otherwise",
        because="its taint keeps claims off the devices that it selects",
        touches=differs(_unversioned),
    ),
)


class DynamicResources(ExplainedDevices, FilterPlugin[Claims], ScorePlugin[Claims]):
    """Judges the devices of a node for the claims and extended resources of a pod, as the in-tree plugin.

    See DEVICES of core.plugins for what depends on it.
    """

    name = NAME
    points = ("preEnqueue", "preFilter", "filter", "postFilter", "score", "reserve", "preBind")
    left_out: Mapping[str, Any] = {"filterTimeout": str, "bindingTimeout": str}
    waits_by = "bindingTimeout"
    missed = "no plugin allocates ResourceClaims"
    pre_filter_rejects = True
    states = (Inventory,)
    scores_alone = True
    kinds = (Node, DeviceClass, ResourceSlice, ResourceClaim, DeviceTaintRule)
    class_fields = ("namespace", "requests", "resource_claims", "demand.extended_requests")
    invalidated_by = _INVALIDATED_BY

    @staticmethod
    def reserves_for(_mirror: ClusterMirror, pod: Pod) -> str:
        """Return whether the pod has resource claims."""
        return f"has resource claims, which need the in-tree plugin {NAME}" if pod.claims_resources else ""

    def concerns(self, mirror: ClusterMirror, pod: Pod) -> bool:
        """Return whether the pod has claims, or extended resources that a DeviceClass provides."""
        if pod.claims_resources or mirror.rules.device_class_resources is DeviceClassResources.CHECKED:
            return pod.claims_resources
        requested = [name for name, amount in extended(pod).items() if amount]
        return bool(requested) and any(map(mirror.derived(Inventory).class_for, requested))

    def scores_in(self, rules: Rules) -> bool:
        """Return whether the release scores alternatives."""
        return gates_of(rules.release).scores

    def reads(self, _mirror: ClusterMirror, _pod: Pod, missing: Collection[Kind]) -> Collection[Kind]:
        """Return all kinds, but for the rules of taints."""
        return {*missing} - {DeviceTaintRule}

    def reads_in_part(self, mirror: ClusterMirror, _pod: Pod) -> Mapping[Kind, str]:
        """Return the rules of taints in a release that reads them: without them, a device may be tainted."""
        return {DeviceTaintRule: "taints by DeviceTaintRules"} if gates_of(mirror.rules.release).taint_rules else {}

    def unsupported(self, rules: Rules) -> str:
        """Return the feature gates by which kube-scheduler allocates otherwise than by default."""
        return unsupported(rules)

    def undecided(self, state: Claims) -> Mapping[str, str]:
        """Return the nodes whose search met a selector that is not evaluated, or took too long."""
        return state.undecided

    def knows_each(self, mirror: ClusterMirror, pod: Pod) -> bool:
        """Return whether the pod must own a claim, of a template or for its extended resources."""
        if any(each.of_template for each in pod.resource_claims):
            return True
        return bool(pod.demand.extended_requests) and pod.uid in mirror.derived(Inventory).made_for

    def prefers_nodes(self, mirror: ClusterMirror, pod: Pod) -> bool:
        """Return whether scores may differ by node: whether a claim that is to be allocated has alternatives."""
        if not pod.resource_claims or not self.scores_in(mirror.rules):
            return False
        try:
            claims = claims_of(mirror, pod)
        except ClaimError:
            return False
        return any(request.first_available for each in claims if each.allocation is None for request in each.requests)

    def filter_versions(self, state: Claims) -> Versions:
        """Return the version of all devices, and what the pod's own claims say."""
        own = [(claim.requests, claim.constraints, claim.allocation) for claim in state.all]
        return (state.inventory.revision, tuple(own))

    def score_versions(self, state: Claims) -> Versions:
        """Return the same as for the verdicts."""
        return self.filter_versions(state)

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, Claims | None]:
        """Find the claims of the pod. SKIP without any."""
        return _claims(mirror, pod, TO_JUDGE)

    def filter(self, state: Claims, batch: NodeBatch) -> Verdicts:
        """Judge every node of the batch, once for all whose devices are alike."""
        outcomes, places = state.of_batch(batch)
        statuses: dict[Status, int] = {SUCCESS: 0}
        codes = [statuses.setdefault(each.status, len(statuses)) for each in outcomes]
        return Verdicts(np.array(codes, np.int64)[places], tuple(statuses))

    def pre_score(self, mirror: ClusterMirror, pod: Pod, _batch: NodeBatch) -> tuple[Status, Claims | None]:
        """Find the claims of the pod. SKIP if none is to be allocated."""
        status, claims = _claims(mirror, pod, TO_SCORE)
        if claims is None or not claims.must_allocate or not claims.gates.scores:
            return (status if status.code is Code.ERROR else SKIP), None
        allocated = [claim for claim in claims.all if claim.allocation is None]
        if not claims.gates.current and len(allocated) < len(claims.all):
            reason = f"number of allocations {len(allocated)} is smaller than number of claims"
            return Status(Code.ERROR, (reason,)), None
        return SUCCESS, claims

    def score(self, state: Claims, batch: NodeBatch) -> Int64Array:
        """Return how early the chosen alternatives of each node are among all. None counts if a node is undecided."""
        outcomes, places = state.of_batch(batch, to_score=True)
        found: Int64Array = np.array([each.score for each in outcomes], np.int64)[places]
        return found + state.score_of_allocated()

    def normalize(self, raw: Int64Array) -> Int64Array:
        """Scale so that the highest score is 100."""
        return default_normalize(raw)


def _claims(mirror: ClusterMirror, pod: Pod, bound: Bound) -> tuple[Status, Claims | None]:
    try:
        claims = Claims(mirror, pod, bound)
    except ClaimError as error:
        return error.status, None
    return (SUCCESS, claims) if claims.all else (SKIP, None)


def _outcomes(state: Claims, batch: NodeBatch) -> Iterator[Outcome]:
    nodes, on = state.inventory.nodes, state.on
    for position, slot in enumerate(batch.slots.tolist()):
        node = batch.unmirrored.get(position) if slot == NO_SLOT else nodes[slot]
        yield _FITS if node is None else on(slot, node)
