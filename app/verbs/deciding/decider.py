"""Decides on a node for a pod, and assumes the pod there in the same step.

The order: check that a decision is possible, drop the pod's earlier decision, evaluate all nodes, choose one of the
best, assume the pod there. There is no await in between, so two decisions never see the same free capacity.
kube-scheduler does not report the outcome of a decision to an extender. An assumption ends

    when the watch shows the pod bound, on any node, deleted or ended                (ClusterMirror)
    when a second request for the pod arrives, because a step after `filter` failed  (here)
    when the pod's status reports a failed attempt long after the decision           (MirrorFeed)
    when the watch has shown nothing for KINDRED_ASSUMED_POD_TTL                     (ClusterMirror.expire)

A pod of a group gets the place that its gang has for it, if the gang has one. See core/gangs/gangs.py.

The pod is assumed only if the API server has it without a node, if it is not scheduled in a group, and if the request
is no dry run. Other callers, such as curl, simulators or a dump, get the same response, but nothing is assumed.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final

from app.verbs.deciding.claims import InTreeNeeds
from app.verbs.deciding.pod_lookup import PodLookup, Standing
from app.verbs.deciding.results import any_node, one_of_names, reason_of_all, reasons
from app.verbs.deciding.scopes import DecideScope, DecideScopes
from app.verbs.evaluations import Evaluations
from app.verbs.extender_args import ExtenderArgs
from app.verbs.extender_results import NONE_FAILED, filter_error, result_of_names, result_of_objects
from app.verbs.nominations import Nominations
from app.verbs.observation import Asked, VerbOutcome, VerbResponse
from app.verbs.refused_nodes import RefusedNodes
from core.framework.interface import Verdicts
from core.gangs.attempts import Choose
from core.gangs.gangs import Gangs, Placed
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.work import WorkLimitError
from core.objects.pod import Pod
from core.profile import Profile
from core.scheduling_cycle import choose_nodes


class Decision(Enum):
    """The outcome of a decision. Also the values of the metric's label."""

    ASSUMED = "assumed"
    """The pod is assumed on the returned node."""
    REPLACED = "replaced"
    """The same, for a pod that was assumed already: its earlier decision failed."""
    NOT_ASSUMED = "not_assumed"
    """The response has a node, but the pod is not assumed there."""
    NO_FIT = "no_fit"
    """No node fits."""
    REFUSED = "refused"
    """The response has an `Error`."""
    GANG_WAITS = "gang_waits"
    """No node is returned, because a member of the pod's group is missing or does not fit."""


class Decider:
    """Decides for one pod at a time. Invalid contents of a request never make it raise."""

    def __init__(  # noqa: PLR0913  # what a decision needs
        self,
        profile: Profile,
        mirror: ClusterMirror,
        evaluations: Evaluations,
        scopes: DecideScopes,
        *,
        lookup: PodLookup,
        needs: InTreeNeeds,
        choose: Choose,
        clock: Callable[[], float],
        refusal: Callable[[], str] = lambda: "",
        nominations: Nominations | None = None,
        refused_nodes: RefusedNodes | None = None,
        asked_to_preempt: bool = True,
        gangs: Gangs | None = None,
    ) -> None:
        """Decide within the scope that a pod has in `scopes`.

        `choose` takes one of the best nodes, given as positions in the batch. `clock` is the mirror's clock. `refusal`
        returns why no pod may be assumed now, or an empty text.
        `asked_to_preempt`: kube-scheduler calls the verb `preempt` for rejected nodes that are resolvable.
        Without `gangs`, a pod of a group is decided for like any other pod.
        """
        self.decisions: Final = dict.fromkeys(Decision, 0)
        """Outcome -> decisions."""
        self._profile = profile
        self._mirror = mirror
        self._evaluations = evaluations
        self._scopes = scopes
        self._lookup = lookup
        self._needs = needs
        self._choose = choose
        self._clock = clock
        self._refusal = refusal
        self._nominations = nominations
        self._refused_nodes = refused_nodes
        self._asked_to_preempt = asked_to_preempt
        self.gangs: Final = gangs
        """The groups of pods that are placed together. None: there are none."""

    def scope_of(self, pod: Pod) -> DecideScope | None:
        """Return the scope of a pod. None: `filter` returns all nodes that fit."""
        return self._scopes.of(pod)

    async def wait_for(self, pod: Pod, seconds: float) -> None:
        """Wait until the watch shows a pod, for `seconds` at most."""
        await self._lookup.wait(pod, seconds)

    async def look_up(self, pod: Pod) -> VerbResponse | None:
        """Find out whether the pod may be assumed. Return an error response if that stays unknown."""
        problem = await self._lookup.ask(pod)
        return self._error(f"{_not_seen(pod)}, and could not be read: {problem}", pod) if problem else None

    def decide(self, args: ExtenderArgs, pod: Pod, scope: DecideScope, *, cached: bool, dry_run: bool) -> VerbResponse:
        """Respond with one node, or with the reason for none. If allowed, the pod is assumed on the node."""
        problem = self._needs.problem(pod, scope)
        if problem:
            return self._error(problem, pod)
        standing = Standing.SETTLED if dry_run or pod.in_group else self._lookup.standing(pod)
        if standing is Standing.UNKNOWN:
            told = _not_seen(pod)
            return VerbResponse(filter_error(told), outcome=VerbOutcome.DOUBTED, error=told, unknown_pod=pod)
        stands = standing is Standing.PENDING
        if stands and (refusal := self._refusal()):  # again: a look-up of the pod may have taken time
            return self._error(refusal, pod, VerbOutcome.NOT_LEADING)
        if not stands:
            return self._tried(args, pod, scope, cached=cached)
        return self._decided_for_good(args, pod, scope, cached=cached)

    def _decided_for_good(self, args: ExtenderArgs, pod: Pod, scope: DecideScope, *, cached: bool) -> VerbResponse:
        gangs = self.gangs
        if gangs is not None:
            gangs.begin(self._clock())
        replaces = self._mirror.is_assumed(pod.uid) and not (gangs is not None and gangs.has_reserved(pod.uid))
        if replaces:
            self._mirror.forget(pod.uid)
        decision = Decision.REPLACED if replaces else Decision.ASSUMED
        if gangs is not None and pod.group is not None:
            response = self._decided_in_gang(gangs, args, pod, scope, decision)
            if response is not None:
                return response
        return self._decided(args, pod, scope, decision, cached=cached)

    def _decided_in_gang(
        self, gangs: Gangs, args: ExtenderArgs, pod: Pod, scope: DecideScope, decision: Decision
    ) -> VerbResponse | None:
        """Respond with the place of a member in its gang, or with the reason for none. None for an ordinary pod."""
        batch = self._batch(args, pod, scope)
        known = batch if not batch.strangers else batch.part((batch.slots != NO_SLOT).nonzero()[0])
        try:
            answer = gangs.ask(pod, self._clock(), None if len(known) == len(self._mirror.nodes.slots) else known)
        except WorkLimitError as error:  # any member may be the cause, so this pod's class is not recorded as too heavy
            told = f"a member of group {pod.group_name}: {error}"
            return self._error(told, pod, VerbOutcome.TOO_MUCH_WORK, len(batch))
        if answer is None:
            return None
        if isinstance(answer, Placed):
            self._assume(pod, answer.node)
            self._count(decision)
            body = self._answer(args, batch, batch.position(answer.node))
            return VerbResponse(body, asked=Asked(pod.full_name, pod.uid, len(batch), 1))
        self._count(Decision.GANG_WAITS)
        failed = reason_of_all(args.batch, answer.reason)
        body = result_of_names(b"", failed) if args.node_list is None else result_of_objects(args.node_list, [], failed)
        return VerbResponse(body, outcome=VerbOutcome.NO_FIT, asked=Asked(pod.full_name, pod.uid, len(batch)))

    def _tried(self, args: ExtenderArgs, pod: Pod, scope: DecideScope, *, cached: bool) -> VerbResponse:
        """Respond as for a pending pod. If the pod counts on a node already, it does not count for its own decision."""
        held = self._mirror.get_pod(pod.uid)
        if held is None or held.node_name not in self._mirror.nodes.slots:
            return self._decided(args, pod, scope, Decision.NOT_ASSUMED, cached=cached)
        with self._mirror.suppose() as supposed:
            supposed.remove(held)
            return self._decided(args, pod, scope, Decision.NOT_ASSUMED, cached=False)

    def _decided(
        self, args: ExtenderArgs, pod: Pod, scope: DecideScope, decision: Decision, *, cached: bool
    ) -> VerbResponse:
        batch = self._batch(args, pod, scope)
        try:
            evaluation = self._evaluations.begin(pod, cached=cached)
            best, verdicts = choose_nodes(self._profile, evaluation, batch)
        except WorkLimitError as error:
            self._evaluations.refused(pod, error)
            return self._error(str(error), pod, VerbOutcome.TOO_MUCH_WORK, len(batch))
        source = self._evaluations.finish(evaluation, cached=cached)
        if verdicts is not None and not len(best):
            return self._no_node(args, pod, batch, verdicts, source)
        chosen = int(best[0]) if len(best) == 1 else self._choose(batch, best)
        body = self._answer(args, batch, chosen)
        if decision is not Decision.NOT_ASSUMED:
            self._assume(pod, batch.names[chosen])
        self._count(decision)
        return VerbResponse(body, source, asked=Asked(pod.full_name, pod.uid, len(batch), 1))

    def _batch(self, args: ExtenderArgs, pod: Pod, scope: DecideScope) -> NodeBatch:
        """Return the nodes to judge.

        A scheduler first sends a request with only the nominated node (schedule_one.go, evaluateNominatedNode). If that
        node is rejected, the next request has the other nodes. So only the nominated node is judged for the first one.
        """
        asks_nominated = len(args.batch) == 1 and args.batch.names[0] == pod.nominated_node_name
        return args.batch if scope is DecideScope.QUESTION or asks_nominated else self._mirror.all_nodes()

    def _assume(self, pod: Pod, node: str) -> None:
        now = self._clock()
        self._mirror.assume(pod, node, now)
        self._mirror.finish_binding(pod.uid, now)  # no message reports the binding, so the TTL starts here
        if self._refused_nodes is not None:
            self._refused_nodes.forget(pod.uid)

    def _answer(self, args: ExtenderArgs, batch: NodeBatch, chosen: int) -> bytes:
        name = batch.name_json()[chosen] if batch.strangers else self._mirror.nodes.name_json[batch.slots[chosen]]
        if batch is args.batch:
            if args.node_list is not None:
                return result_of_objects(args.node_list, [chosen], NONE_FAILED)
            return one_of_names(name)
        return any_node(name)

    def _no_node(self, args: ExtenderArgs, pod: Pod, batch: NodeBatch, verdicts: Verdicts, source: str) -> VerbResponse:
        asked = Asked(pod.full_name, pod.uid, len(batch))
        # A doubtful rejection is returned in the end. An `Error` would clear the nomination of the pod, and would
        # prevent no second preemption here: without filters, kube-scheduler finds no victims.
        doubt = self._nominations.doubt(pod, batch, verdicts) if self._nominations is not None else None
        if self._refused_nodes is not None:
            self._refused_nodes.note(pod, batch, verdicts)
        self._count(Decision.NO_FIT)
        failed = reasons(args.batch, batch, verdicts, pod.nominated_node_name, all_resolvable=self._asked_to_preempt)
        body = result_of_names(b"", failed) if args.node_list is None else result_of_objects(args.node_list, [], failed)
        return VerbResponse(body, source, doubt is not None, VerbOutcome.NO_FIT, asked)

    def _error(
        self, message: str, pod: Pod, outcome: VerbOutcome = VerbOutcome.REFUSED, nodes: int = 0
    ) -> VerbResponse:
        self._count(Decision.REFUSED)
        asked = Asked(pod.full_name, pod.uid, nodes)
        return VerbResponse(filter_error(message), outcome=outcome, asked=asked, error=message)

    def _count(self, decision: Decision) -> None:
        self.decisions[decision] += 1


def _not_seen(pod: Pod) -> str:
    return f"pod {pod.full_name} is not in the watch yet"
