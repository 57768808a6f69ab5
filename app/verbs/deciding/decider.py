"""Decides where a pod goes, and lets it count there in the same step.

In this order: check that a decision is possible, drop the pod's earlier decision, evaluate all nodes, take one of the
best, and assume the pod there. Nothing is awaited in between, so two decisions never see the same room. kube-scheduler
does not report the result of a decision to an extender. An assumption ends

    when the watch shows the pod bound, there or elsewhere, deleted or ended       (ClusterMirror)
    when the pod comes again, which it does if anything behind `filter` has failed  (here)
    when its status tells of a failed attempt long after the decision              (MirrorFeed)
    when the watch has shown nothing for KINDRED_ASSUMED_POD_TTL                    (ClusterMirror.expire)

A pod of a group gets the place that its gang has for it, if the gang has one; see core/gangs/gangs.py.

A decision stands only for a pod that the API server has without a node, that is not scheduled as one of a group, and
whose request does not forbid it. Other callers get the same response, and nothing is assumed: people with curl,
simulators, a dump.
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
    """The outcome of a decision; also the values of the metric's label."""

    ASSUMED = "assumed"
    """The pod counts on the node that was answered."""
    REPLACED = "replaced"
    """The same, for a pod that was assumed already: the earlier decision has failed."""
    NOT_ASSUMED = "not_assumed"
    """A node was answered, and nothing follows from it."""
    NO_FIT = "no_fit"
    """There is no node."""
    REFUSED = "refused"
    """An `Error` was answered."""
    GANG_WAITS = "gang_waits"
    """There is no node, because a member of the pod's group is missing or does not fit."""


class Decider:
    """Decides for one pod at a time; it never raises because of the contents of a request."""

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

        `choose` takes one of the best, given as positions in the batch; `clock` is the mirror's. `refusal` returns why
        no decision may stand now, or an empty text.
        `asked_to_preempt`: kube-scheduler asks the verb `preempt` about nodes that are refused and resolvable.
        Without `gangs`, a pod of a group is decided for as any other.
        """
        self.decisions: Final = dict.fromkeys(Decision, 0)
        """How many ended how."""
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
        """The groups of pods that are placed together; None: there are none."""

    def scope_of(self, pod: Pod) -> DecideScope | None:
        """Return among which nodes a pod is decided for; None: it is answered with all nodes that fit."""
        return self._scopes.of(pod)

    async def wait_for(self, pod: Pod, seconds: float) -> None:
        """Wait until the watch shows a pod, for `seconds` at most."""
        await self._lookup.wait(pod, seconds)

    async def look_up(self, pod: Pod) -> VerbResponse | None:
        """Find out whether a decision for a pod is valid; return the response if that cannot be known."""
        problem = await self._lookup.ask(pod)
        return self._error(f"{_not_seen(pod)}, and could not be looked at: {problem}", pod) if problem else None

    def decide(self, args: ExtenderArgs, pod: Pod, scope: DecideScope, *, cached: bool, dry_run: bool) -> VerbResponse:
        """Answer with one node, or with why there is none. Where the decision stands, the pod is assumed there."""
        problem = self._needs.problem(pod, scope)
        if problem:
            return self._error(problem, pod)
        standing = Standing.SETTLED if dry_run or pod.in_group else self._lookup.standing(pod)
        if standing is Standing.UNKNOWN:
            told = _not_seen(pod)
            return VerbResponse(filter_error(told), outcome=VerbOutcome.DOUBTED, error=told, unknown_pod=pod)
        stands = standing is Standing.PENDING
        if stands and (refusal := self._refusal()):  # asked here, too: a pod may have been looked up since the request
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
        """Answer with the place that a member has in its gang, or why it has none; None: it is an ordinary pod."""
        batch = self._batch(args, pod, scope)
        known = batch if not batch.strangers else batch.part((batch.slots != NO_SLOT).nonzero()[0])
        try:
            answer = gangs.ask(pod, self._clock(), None if len(known) == len(self._mirror.nodes.slots) else known)
        except WorkLimitError as error:  # of any member, so that nothing is remembered of this one's class
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
        """Answer as for a pod that waits; one that counts already does not meet itself."""
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

        A scheduler first sends a request with the nominated node alone (schedule_one.go, evaluateNominatedNode), and
        goes on to others if it is rejected. So that request is about this node.
        """
        asks_nominated = len(args.batch) == 1 and args.batch.names[0] == pod.nominated_node_name
        return args.batch if scope is DecideScope.QUESTION or asks_nominated else self._mirror.all_nodes()

    def _assume(self, pod: Pod, node: str) -> None:
        now = self._clock()
        self._mirror.assume(pod, node, now)
        self._mirror.finish_binding(pod.uid, now)  # no message says when it is: the time runs from here
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
        # Refused even if the doubt remains. An `Error` would clear the nomination of the pod, and here it would prevent
        # no second preemption: without filters, kube-scheduler finds no victims.
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
