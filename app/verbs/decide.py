"""Decides on a node for a pod, and assumes the pod there in the same step.

The order: take the pod as the API server has it, check that a decision is possible, drop the pod's earlier decision,
evaluate all nodes, choose one of the best, assume the pod there. There is no await in between, so two decisions never
see the same free capacity. kube-scheduler does not report the outcome of a decision to an extender. An assumption ends

    when the watch shows the pod bound, on any node, deleted or ended                (ClusterMirror)
    when a second request for the pod arrives, because a step after `filter` failed, and the API server has the pod
    without a node: the response to its binding may be lost                          (Effects)
    when the watch has shown nothing for the ttl of the mirror                       (ClusterMirror.expire)

A pod of a group gets the place that its gang has for it, if the gang has one. See core/gangs/gangs.py.

A member of a group that kube-scheduler schedules always gets a node of the request. The in-tree filters have judged it
beside the members that kube-scheduler assumes, and Kindred may count members on places that have failed. Its place has
one more end: a cycle of its group that has bound nothing (core/gangs/scheduling_groups.py).

The condition PodScheduled=False of a pod is no end. kube-scheduler writes it only if its text changes, so it may be of
any earlier attempt.

The pod is assumed only if the API server has it without a node, and if the request is no dry run. Other callers, such
as curl, simulators or a dump, get a response for the pod that they sent, and nothing is assumed.

A bound pod gets its own node or none. kube-scheduler asks about it if the kubelet has deferred its resize in place
(v1.37, InPlacePodVerticalScalingSchedulerPreemption). It can assume the pod on no other node, and would ask for ever.
"""

import random
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from app.scheduler_configuration.schema import CLAIMS
from app.settings.settings import variable_of
from app.verbs.effects import Effects
from app.verbs.pods import LookupState
from app.verbs.request import Decision, VerbOutcome, VerbResponse
from app.verbs.scopes import DecideScope, DecideScopes
from app.verbs.wire_in import ExtenderArgs
from app.verbs.wire_out import (
    NONE_FAILED,
    FailedNodes,
    any_node,
    filter_error,
    reason_of_all,
    reasons,
    result_of_names,
    result_of_objects,
)
from core.device_ranking import DeviceRanking
from core.equivalence.cache import Evaluations, set_apart
from core.framework.interface import AnyFilter, FilterPlugin, Status, Verdicts
from core.gangs.gangs import Gangs
from core.gangs.unit import Placed, Unfinished
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.topology import IntpArray
from core.mirror.work import WorkLimitError
from core.objects.groups import SchedulingGroup
from core.objects.pod import Pod
from core.plugins import DEFAULTS
from core.profile import Profile
from core.scheduling_cycle import best_by_score, choose_nodes, filter_nodes
from core.simulation.one_pod import Choose

# Pods that in-tree plugins must filter before kube-scheduler reserves a node, even if Kindred chooses the node.
#
# VolumeBinding reserves only nodes that its own Filter saw. For any other node it binds no volume and reports no
# error (k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, Reserve). DynamicResources
# does the same for resource claims, and for devices behind extended resources: there, a node with enough of its own
# is right for any scheduler.
#
# kube-scheduler schedules the members of a PodGroup one after another in one cycle, and assumes them in its own
# snapshot only (schedule_one_podgroup.go). Kindred does not see that snapshot. So all in-tree filters judge a member.


class InTreeNeeds:
    """Whether Kindred can decide for a pod in a scope."""

    def __init__(
        self,
        mirror: ClusterMirror,
        claims_scheduler: str = "",
        filters: Sequence[AnyFilter] = (),
        *,
        groups_scheduler: str = "",
    ) -> None:
        """`claims_scheduler`: the scheduler whose profile keeps VolumeBinding and DynamicResources. Empty: none.

        `filters`: those of Kindred, which know the pods that get devices for extended resources. `groups_scheduler`:
        the scheduler whose profile keeps all in-tree filters. Empty: none.
        """
        self._mirror = mirror
        self._claims_scheduler = claims_scheduler
        self._groups_scheduler = groups_scheduler
        self._filters = [each for each in filters if type(each).device_needs is not FilterPlugin.device_needs]

    def in_tree_plugin_needed(self, pod: Pod) -> str:
        """Return why Kindred cannot decide for a pod, in one line with the remedy. Empty if it can."""
        if not (pod.volumes or pod.resource_claims or pod.scheduling_group):
            return ""
        if pod.in_scheduling_group:
            return self._problem_of_member(pod)
        # Of two needs, that of resource claims is told.
        needs = (DEFAULTS[name].reserves_for(self._mirror, pod) for name in reversed(CLAIMS))
        need = next(filter(None, needs), "")
        if not need or (pod.scheduler_name and pod.scheduler_name in {self._claims_scheduler, self._groups_scheduler}):
            return ""
        if self._claims_scheduler:
            remedy = f"give it spec.schedulerName: {self._claims_scheduler}"
        else:
            remedy = f"name a scheduler whose profile keeps that plugin, {variable_of('decide_claims_scheduler')}"
        return f"pod {pod.full_name} {need}: {remedy}"

    def with_device_needs(self, pod: Pod, verdicts: Verdicts) -> Verdicts:
        """Return verdicts that leave no node, with the remedy where a device would do.

        No `Error`: a node that has enough may come, and cluster autoscalers add one only for an Unschedulable pod.
        """
        needs = self._device_needs(pod)
        if not needs:
            return verdicts
        statuses = tuple(
            Status(status.code, tuple(f"{reason}{needs.get(reason, '')}" for reason in status.reasons))
            for status in verdicts.statuses
        )
        return Verdicts(verdicts.codes, statuses, of_pre_filter=verdicts.of_pre_filter)

    def with_device_need(self, pod: Pod, reason: str) -> str:
        """Return the reason of a pod's group for no node, with the remedy where a device would do."""
        return reason + "".join(need for short, need in self._device_needs(pod).items() if short in reason)

    def _device_needs(self, pod: Pod) -> Mapping[str, str]:
        """Return the reasons of nodes that lack a resource that a device would provide -> the remedy to add."""
        counted, needs = self._mirror.counted(pod), dict[str, str]()
        for each in self._filters:
            for reason, need in each.device_needs(self._mirror, counted).items():
                needs[reason] = f" ({need})"
        return needs

    def _problem_of_member(self, pod: Pod) -> str:
        of_group = f"pod {pod.full_name} is in the scheduling group {pod.scheduling_group}"
        if not self._groups_scheduler:
            needed = variable_of("decide_groups_scheduler")
            return f"{of_group}, which needs all in-tree filters: name a scheduler whose profile keeps them, {needed}"
        if pod.scheduler_name != self._groups_scheduler:
            remedy = f"give all its members spec.schedulerName: {self._groups_scheduler}"
            return f"{of_group}, which needs all in-tree filters: {remedy}"
        if pod.scheduling_group.count("/") > 1:
            return ""  # spec.workloadRef of 1.35: kube-scheduler asks only after it has seen the Workload
        group = self._mirror.objects(SchedulingGroup).get(pod.scheduling_group)
        if group is None:
            return f"{of_group}: the PodGroup is not in the watch yet"
        if group.unsupported:
            remedy = "give all its members a scheduler that Kindred does not decide for"
            return f"{of_group}, whose {group.unsupported} makes kube-scheduler try several placements: {remedy}"
        return ""


class _Attempt(msgspec.Struct, frozen=True, gc=False):
    """The pod to decide for, and what the decision follows from."""

    args: ExtenderArgs
    pod: Pod
    scope: DecideScope
    nominated: str
    """The nominated node by the request, which may be newer than the watch. It only selects the nodes to judge."""
    cached: bool
    effects: Effects | None
    """None: the request changes nothing."""
    decision: Decision = Decision.NOT_ASSUMED
    """The outcome if there is a node."""


def at_random(_: NodeBatch, best: IntpArray) -> int:
    """Choose one of the best nodes with equal probability."""
    return best.item(int(random.random() * len(best)))  # noqa: S311 - to spread, not to hide


class Decider:
    """Decides for one pod at a time. Invalid contents of a request never make it raise."""

    def __init__(  # noqa: PLR0913  # what a decision needs
        self,
        profile: Profile,
        evaluations: Evaluations,
        scopes: DecideScopes,
        *,
        needs: InTreeNeeds,
        choose: Choose,
        ranking: DeviceRanking | None = None,
        rejection: Callable[[], str] = lambda: "",
        preempt_verb_enabled: bool = True,
    ) -> None:
        """Decide within the scope that a pod has in `scopes`. `ranking` adds scores of devices. None: no pod has them.

        `choose` takes one of the best nodes, given as positions in the batch. `rejection` returns why no pod may be
        assumed now, or an empty text.
        `preempt_verb_enabled`: kube-scheduler calls the verb `preempt` for rejected nodes that are resolvable.
        """
        self._profile = profile
        self._of_requests = Profile(tuple(each for each in profile.filters if each.judges_resizes), ())
        self._mirror = evaluations.mirror
        self._evaluations = evaluations
        self._scopes = scopes
        self._needs = needs
        self._choose = choose
        self._ranking = ranking
        self._rejection = rejection
        self._preempt_verb_enabled = preempt_verb_enabled

    def scope_of(self, pod: Pod) -> DecideScope | None:
        """Return the scope of a pod. None: `filter` returns all nodes that fit."""
        return self._scopes.by_scheduler.get(pod.scheduler_name, self._scopes.default)

    def decides_for(self, pod: Pod) -> bool:
        """Return whether a pending member of a group can be decided for. The check reads only the pod itself."""
        return self.scope_of(pod) is not None and not self._needs.in_tree_plugin_needed(pod)

    def decide(
        self, args: ExtenderArgs, incoming: Pod, scope: DecideScope, *, cached: bool, effects: Effects | None
    ) -> VerbResponse:
        """Respond with one node, or with the reason for none.

        With effects, the decision is for the pod as the API server has it, and the pod is assumed on the node.
        """
        nominated = incoming.nominated_node_name
        if effects is None:
            return self._tried(_Attempt(args, incoming, scope, nominated, cached, effects))
        found = effects.lookup.of(incoming)
        if found.state is LookupState.UNKNOWN:
            message = self._not_seen(incoming)
            return VerbResponse(filter_error(message), outcome=VerbOutcome.RETRIED, error=message, unknown_pod=incoming)
        pod = found.pod
        lasting = scope if pod is incoming else None if pod is None else self.scope_of(pod)
        if pod is None or lasting is None:
            return self._tried(_Attempt(args, incoming, scope, nominated, cached, effects))
        effects.requested(pod)
        problem = self._needs.in_tree_plugin_needed(pod)
        rejection = "" if problem else self._rejection()  # again: a look-up of the pod may have taken time
        if problem or rejection:
            outcome = VerbOutcome.REJECTED if problem else VerbOutcome.NOT_LEADING
            return _error(problem or rejection, pod, effects, outcome)
        return self._counted(effects, _Attempt(args, pod, lasting, nominated, cached, effects))

    def _counted(self, effects: Effects, request: _Attempt) -> VerbResponse:
        """Respond for a pending pod, which counts on its node from then on."""
        pod, decision = request.pod, effects.begin_decision(request.pod)
        if isinstance(decision, str):
            where = f"is bound to {decision}, or is being bound there, but not in the watch yet"
            return _error(f"pod {pod.full_name} {where}", pod, effects)
        request = replace(request, decision=decision)
        if effects.gangs is not None and pod.group is not None:
            response = self._decided_in_gang(effects, effects.gangs, request)
            if response is not None:
                return response
        return self._decided(request)

    def unread(self, incoming: Pod, problem: str, effects: Effects) -> VerbResponse:
        """Respond for a pod that the watch does not show, and that could not be read, with the reason."""
        return _error(f"{self._not_seen(incoming)}, and could not be read: {problem}", incoming, effects)

    def _decided_in_gang(self, effects: Effects, gangs: Gangs, request: _Attempt) -> VerbResponse | None:
        """Respond with the place of a member in its gang, or with the reason for none. None for an ordinary pod."""
        args, pod, batch = request.args, request.pod, self._batch(request)
        known = batch if not batch.unmirrored else batch.part((batch.slots != NO_SLOT).nonzero()[0])
        try:
            response = gangs.ask(pod, effects.clock(), None if len(known) == len(self._mirror.nodes.slots) else known)
        except WorkLimitError as error:  # any member may be the cause, so this pod's class is not recorded as too heavy
            # The gang keeps the error, whose traceback would keep the request.
            message = f"a member of group {pod.group_name}: {error.with_traceback(None)}"
            return _error(message, pod, effects, VerbOutcome.TOO_MUCH_WORK, len(batch))
        if response is None:
            return None
        if isinstance(response, Unfinished):  # an `Error`, so that the scheduler tries the pod again without an event
            effects.decisions[Decision.GANG_WAITS] += 1
            return _response(filter_error(response.reason), pod, len(batch), fits=False)
        if isinstance(response, Placed):
            effects.assume(pod, response.node)
            effects.decisions[request.decision] += 1
            body = self._chosen_response(args, batch, batch.position(response.node))
            return _response(body, pod, len(batch))
        effects.decisions[Decision.GANG_WAITS] += 1
        reason = self._needs.with_device_need(pod, response.reason)
        body = _none_of(args, reason_of_all(args.batch, reason))
        return _response(body, pod, len(batch), fits=False)

    def _tried(self, request: _Attempt) -> VerbResponse:
        """Respond as for a pending pod, unless the pod is bound. An assumed pod does not count for its own decision."""
        bound = self._bound(request.pod)
        if bound is not None:
            return self._on_its_node(request, bound)
        if problem := self._needs.in_tree_plugin_needed(request.pod):
            return _error(problem, request.pod, request.effects)
        with set_apart(self._mirror, request.pod) as apart:
            return self._decided(replace(request, cached=request.cached and not apart))

    def _bound(self, pod: Pod) -> Pod | None:
        """Return a bound pod as the watch shows it, else as the request has it. None for a pod without a node."""
        watched = self._mirror.get_pod(pod.uid)
        if watched is not None and watched.full_name == pod.full_name and not self._mirror.is_assumed(pod.uid):
            return watched
        return pod if pod.node_name else None

    def _on_its_node(self, request: _Attempt, bound: Pod) -> VerbResponse:
        """Respond for a bound pod: with its node if the request names it and the pod fits there, or with none."""
        args, pod, effects, node = request.args, request.pod, request.effects, bound.node_name
        position, source = args.batch.position(node), ""
        try:
            if position < 0:
                failed = reason_of_all(args.batch, f"the pod is on node {node}, which is not in the request")
            else:
                own = args.batch.part(np.array([position]))
                verdicts, source = self._judged_on_its_node(pod, own, watched=bound is not pod)
                failed = None
                if verdicts.codes.any():
                    failed = reasons(own, own, verdicts, all_resolvable=self._preempt_verb_enabled)
        except WorkLimitError as error:
            return _error(str(error), pod, effects, VerbOutcome.TOO_MUCH_WORK, len(args.batch))
        if effects is not None:
            effects.decisions[Decision.NO_FIT if failed is not None else Decision.NOT_ASSUMED] += 1
        if failed is not None:
            return _response(_none_of(args, failed), pod, len(args.batch), source, fits=False)
        return _response(self._chosen_response(args, args.batch, position), pod, len(args.batch), source)

    def _judged_on_its_node(self, pod: Pod, own: NodeBatch, *, watched: bool) -> tuple[Verdicts, str]:
        """Judge the node of a bound pod as if the pod were not there. Return the verdict, and the source of the result.

        Of a pod that the watch shows there, only the requests can be new: it was resized in place. In-tree judges
        nothing else for it (v1.37: every other filter of the release skips such a pod in its PreFilter).
        """
        with set_apart(self._mirror, pod):
            evaluation = self._evaluations.begin(pod, cached=False)
            verdicts = filter_nodes(self._of_requests if watched else self._profile, evaluation, own)
            return verdicts, self._evaluations.finish(evaluation, cached=False)

    def _decided(self, request: _Attempt) -> VerbResponse:
        pod, cached, effects, batch = request.pod, request.cached, request.effects, self._batch(request)
        try:
            evaluation = self._evaluations.begin(pod, cached=cached)
            profile, ranked = (self._profile, evaluation) if self._ranking is None else self._ranking.of(evaluation)
            best, verdicts = choose_nodes(profile, ranked, batch)
            if not len(best) and pod.in_scheduling_group:
                best = best_by_score(profile, ranked, batch)
        except WorkLimitError as error:
            self._evaluations.rejected(pod, error, cached=cached)
            return _error(str(error), pod, effects, VerbOutcome.TOO_MUCH_WORK, len(batch))
        source = self._evaluations.finish(evaluation, cached=cached)
        if verdicts is not None and not len(best):
            return self._no_node(request, batch, verdicts, source)
        chosen = int(best[0]) if len(best) == 1 else self._choose(batch, best)
        if effects is not None:
            if request.decision is not Decision.NOT_ASSUMED:
                effects.assume(pod, batch.names[chosen])
            effects.decisions[request.decision] += 1
        body = self._chosen_response(request.args, batch, chosen)
        return _response(body, pod, len(batch), source)

    def _batch(self, request: _Attempt) -> NodeBatch:
        """Return the nodes to judge.

        A scheduler first sends a request with only the nominated node (schedule_one.go, evaluateNominatedNode). If that
        node is rejected, the next request has the other nodes. So only the nominated node is judged for the first one.
        """
        listed = request.args.batch
        asks_nominated = len(listed) == 1 and listed.names[0] == request.nominated
        return listed if request.scope is DecideScope.LISTED_NODES or asks_nominated else self._mirror.all_nodes()

    def _chosen_response(self, args: ExtenderArgs, batch: NodeBatch, chosen: int) -> bytes:
        name = batch.name_json_at(chosen)
        if batch is args.batch:
            if args.node_list is not None:
                return result_of_objects(args.node_list, [chosen], NONE_FAILED)
            return result_of_names(name, NONE_FAILED)
        return any_node(name)

    def _no_node(self, request: _Attempt, batch: NodeBatch, verdicts: Verdicts, source: str) -> VerbResponse:
        pod, effects = request.pod, request.effects
        stale_rejection = None
        if effects is not None and request.decision is not Decision.NOT_ASSUMED:
            # A doubtful rejection is returned in the end. An `Error` would clear the nomination of the pod, and would
            # prevent no second preemption here: without filters, kube-scheduler finds no victims.
            stale_rejection = effects.stale_rejection(pod, batch, verdicts)
            effects.reject(pod, batch, verdicts)
        response = _response(self._no_node_body(request, batch, verdicts), pod, len(batch), source, fits=False)
        if stale_rejection is not None:
            return replace(response, retryable=True, last_look=Decision.NO_FIT)
        if effects is not None:
            effects.decisions[Decision.NO_FIT] += 1
        return response

    def _no_node_body(self, request: _Attempt, batch: NodeBatch, verdicts: Verdicts) -> bytes:
        """Return the body of the response with the reason for no node.

        While nothing changes for a class that fits nowhere, its verdicts are the same object, and the bytes are kept
        there. All else that they follow from is of the class, and the first name of the request.
        """
        args, name = request.args, request.args.batch.name_json_at(0)
        is_stored = batch is not args.batch and not request.nominated and args.node_list is None
        if is_stored and verdicts.stored is not None and verdicts.stored[0] == name:
            return verdicts.stored[1]
        message = self._needs.with_device_needs(request.pod, verdicts)
        failed = reasons(args.batch, batch, message, request.nominated, all_resolvable=self._preempt_verb_enabled)
        body = _none_of(args, failed)
        if is_stored:
            verdicts.stored = name, body
        return body

    def _not_seen(self, incoming: Pod) -> str:
        if self._mirror.is_doubtful(incoming.uid):
            return f"pod {incoming.full_name} may be bound to {self._mirror.assumed[incoming.uid].pod.node_name}"
        if incoming.uid in self._mirror.pending:
            return f"pod {incoming.full_name} is not in the watch as the request has it"
        return f"pod {incoming.full_name} is not in the watch yet"


def _response(body: bytes, pod: Pod, nodes: int, source: str = "", *, fits: bool = True) -> VerbResponse:
    outcome = VerbOutcome.FIT if fits else VerbOutcome.NO_FIT
    return VerbResponse(body, source, outcome, pod.full_name, pod.uid, nodes, int(fits))


def _none_of(args: ExtenderArgs, failed: FailedNodes) -> bytes:
    if args.node_list is None:
        return result_of_names(b"", failed)
    return result_of_objects(args.node_list, [], failed)


def _error(
    message: str, pod: Pod, effects: Effects | None, outcome: VerbOutcome = VerbOutcome.REJECTED, nodes: int = 0
) -> VerbResponse:
    if effects is not None:
        effects.decisions[Decision.REJECTED] += 1
    body, name = filter_error(message), pod.full_name
    return VerbResponse(body, outcome=outcome, pod=name, uid=pod.uid, nodes=nodes, error=message)
