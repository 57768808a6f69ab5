"""The verbs of kube-scheduler's extender v1: ExtenderArgs in, ExtenderFilterResult and HostPriorityList out.

Source: k8s.io/kube-scheduler extender/v1/types.go. Requests and responses stay bytes: a model of every Node, or even a
str for every name, would cost many times the decision. A bad request gets HTTP 200 with an `Error`, because
kube-scheduler discards the body of any other status.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Final

import numpy as np

from app.api_server.login import own_namespace
from app.objects.decode import Body, DecodeError
from app.process.logs import one_line
from app.settings.settings import Settings
from app.verbs.decide import Decider
from app.verbs.effects import Effects
from app.verbs.endpoint import Verb
from app.verbs.pods import PodLookup
from app.verbs.request import Request, VerbOutcome, VerbResponse
from app.verbs.scopes import DecideScopes, decide_scopes
from app.verbs.wire_in import ExtenderArgs, NameLists, decode_args, decode_incoming_pod, requested_names
from app.verbs.wire_out import (
    NONE_FAILED,
    HostPriorities,
    failed_nodes,
    filter_error,
    names_text,
    neutral_priorities,
    prioritize_error,
    result_of_names,
    result_of_objects,
)
from core.equivalence.cache import EquivalenceCache, Evaluations, set_apart
from core.framework.evaluation import Evaluation
from core.framework.interface import Verdicts
from core.framework.scores import MAX_NODE_SCORE
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import IntpArray
from core.mirror.work import WorkLimitError
from core.objects.labels import parse_selector
from core.objects.pod import Pod
from core.profile import Profile
from core.scheduling_cycle import ALL, NodeSample, filter_nodes, score_nodes

log = logging.getLogger(__name__)

OWN_LABELS: Final = {"app.kubernetes.io/name": "kindred"}


class Bypass:
    """The pods that pass untouched: those that the settings name, and Kindred's own, so that they can always start."""

    def __init__(
        self,
        namespaces: Collection[str] = (),
        schedulers: Collection[str] = (),
        own_namespace: str = "",
        decided: DecideScopes | None = None,
    ) -> None:
        """Let pods of these namespaces and schedulers pass, and Kindred's own pods in `own_namespace`.

        A pod that Kindred decides for passes by no namespace, because its scheduler has no filters of its own.
        """
        self._namespaces = frozenset(namespaces)
        self._schedulers = frozenset(schedulers)
        self._own_namespace = own_namespace
        self._decided = decided
        self._own = parse_selector(OWN_LABELS, ())

    def covers(self, pod: Pod) -> bool:
        """Whether a pod passes."""
        return (
            (pod.namespace in self._namespaces and not self._decides_for(pod))
            or pod.scheduler_name in self._schedulers
            or (pod.namespace == self._own_namespace and self._own.matches(pod.labels))
        )

    def _decides_for(self, pod: Pod) -> bool:
        return self._decided is not None and self._decided.of(pod.scheduler_name) is not None


NOBODY: Final = Bypass()


def create_bypass(settings: Settings) -> Bypass:
    """Return the bypass that the settings define."""
    decided = decide_scopes(settings)
    return Bypass(settings.bypass_namespaces, settings.bypass_schedulers, own_namespace(), decided)


_RETRY_DELAYS: Final = (0.01, 0.02, 0.04, 0.08, 0.15, 0.2)
"""Pauses in seconds, in all half of the shortest httpTimeout in manifests/scheduler. A watch lags by milliseconds."""
_LOOKS_BEFORE_ASKING: Final = 1


class Patient:
    """A verb that retries a doubtful response for a moment. The scheduler waits, with all its pods.

    A request with effects for an unknown pod waits until the watch shows the pod. After some milliseconds the pod is
    read from the API server. A dry run gets no effects, is evaluated once, and reads nothing.

    After a wait nothing follows from a request whose client has left. Its scheduler goes on, and may have had a newer
    decision for the pod, which is being bound.
    """

    def __init__(
        self,
        evaluate: Callable[[Request, Effects | None], VerbResponse],
        unread: Callable[[Pod, str, Effects], VerbResponse],
        effects: Effects,
    ) -> None:
        """`evaluate` responds at once, and changes no state without effects.

        `unread` responds for a pod that could not be read, for a reason.
        """
        self._evaluate = evaluate
        self._unread = unread
        self._effects = effects

    def __call__(self, request: Request) -> VerbResponse | Awaitable[VerbResponse]:
        """Respond at once, or later."""
        if request.dry_run:
            return self._evaluate(request, None)
        response = self._evaluate(request, self._effects)
        retries = response.retryable or response.unknown_pod is not None
        return self._later(request, response) if retries else response

    async def _later(self, request: Request, response: VerbResponse) -> VerbResponse:
        effects = self._effects
        for number, pause in enumerate(_RETRY_DELAYS):
            await _pause(pause, response.unknown_pod, effects.lookup)
            if request.has_left():
                return response
            response = self._evaluate(request, effects)
            unknown = response.unknown_pod
            if unknown is not None and number >= _LOOKS_BEFORE_ASKING:
                problem = await effects.lookup.ask(unknown)
                if problem:
                    return self._unread(unknown, problem, effects)
                if request.has_left():
                    return response
                response = self._evaluate(request, effects)
            if not response.retryable and response.unknown_pod is None:
                return response
        log.info("the watch may be late: %s", one_line(response.error))
        if response.last_look is not None:
            effects.decisions[response.last_look] += 1
        return response


async def _pause(seconds: float, unknown_pod: Pod | None, lookup: PodLookup) -> None:
    """Pause so that the watch can catch up. With an unknown pod, the pause ends when the watch shows the pod."""
    if unknown_pod is None:
        await asyncio.sleep(seconds)
    else:
        await lookup.wait(unknown_pod, seconds)


class Extender:
    """`filter` and `prioritize`, from request bytes to response bytes. Invalid contents never make them raise.

    Both have the parameter `effects`. Without effects, as in a dry run, a request changes no state.
    """

    def __init__(  # noqa: PLR0913  # what the verbs need
        self,
        profile: Profile,
        mirror: ClusterMirror,
        cache: EquivalenceCache | None = None,
        max_score: int = MAX_NODE_SCORE,
        *,
        percentage_of_nodes_to_score: int = ALL,
        bypass: Bypass = NOBODY,
        decider: Decider | None = None,
    ) -> None:
        """Evaluate with the mirror. `prioritize` spreads its scores over 0..max_score instead of 0..100.

        `filter` passes on a sample of the nodes that fit, see NodeSample. Pods that `bypass` covers pass untouched.
        `decider` handles `filter` for the pods in its scopes.
        """
        self._profile = profile
        self._mirror = mirror
        self._decider = decider
        self._sample = NodeSample(percentage_of_nodes_to_score)
        self.bypass: Final = bypass
        self._host_priorities = HostPriorities(max_score)
        self._known_names = NameLists(mirror.nodes)
        self._to_filter = Evaluations(profile.plugins, mirror, cache)
        self._to_score = Evaluations(profile.plugins, mirror, cache)

    def filter(self, request: Request, effects: Effects | None = None) -> VerbResponse:
        """Return the ExtenderFilterResult for ExtenderArgs. Its `Error` names the field of a bad request."""
        cached = request.cached
        try:
            args = decode_args(request.body, self._mirror, self._known_names if effects is not None else None)
            pod = self._to_decide_for(args, effects) or _pod(args, effects)
        except DecodeError as error:
            return VerbResponse(filter_error(str(error)), outcome=VerbOutcome.BAD_REQUEST, error=str(error))
        if self.bypass.covers(pod):
            return self.pass_all(args, pod)
        scope = self._decider.scope_of(pod) if self._decider is not None else None
        if self._decider is not None and scope is not None:
            return self._decider.decide(args, pod, scope, cached=cached, effects=effects)
        # It may be resized in place (see Decider), or bound, and its scheduler has not learnt that.
        with set_apart(self._mirror, pod) as apart:
            return self._filtered(args, pod, cached=cached and not apart, effects=effects)

    def _to_decide_for(self, args: ExtenderArgs, effects: Effects | None) -> Pod | None:
        """Return the watch's pod, which a decision is for, if the request has the same version. Else None."""
        if self._decider is None or effects is None:
            return None
        pod = effects.lookup.from_watch(args.pod, args.identity)
        if pod is None or self._decider.scope_of(pod) is None:
            return None
        effects.recent_pods.add(pod, bytes(args.pod))
        return pod

    def _filtered(self, args: ExtenderArgs, pod: Pod, *, cached: bool, effects: Effects | None) -> VerbResponse:
        batch = args.batch
        try:
            evaluation = self._to_filter.begin(pod, cached=cached)
            verdicts = filter_nodes(self._profile, evaluation, batch)
            passed = self._sampled(evaluation, batch, (verdicts.codes == 0).nonzero()[0], effects)
        except WorkLimitError as error:
            self._to_filter.rejected(pod, error, cached=cached)
            return _too_much_work(filter_error(str(error)), pod, batch, error)
        source = self._to_filter.finish(evaluation, cached=cached)
        stale_rejection = effects.stale_rejection(pod, batch, verdicts) if effects is not None else None
        if stale_rejection is not None and not stale_rejection.is_returned:
            outcome, body, message = VerbOutcome.RETRIED, filter_error(stale_rejection.reason), stale_rejection.reason
        else:
            if effects is not None:
                effects.reject(pod, batch, verdicts)
            outcome = VerbOutcome.FIT if len(passed) else VerbOutcome.NO_FIT
            body, message = self._filter_result(args, verdicts, passed, effects), ""
        return VerbResponse(
            body,
            source,
            outcome,
            pod.full_name,
            pod.uid,
            len(batch),
            len(passed),
            message,
            retryable=stale_rejection is not None,
        )

    def _sampled(
        self, evaluation: Evaluation, batch: NodeBatch, fitting: IntpArray, effects: Effects | None
    ) -> IntpArray:
        start = effects.rotation if effects is not None else 0
        nodes = len(self._mirror.nodes.slots)
        passed = self._sample.of(self._profile, evaluation, batch, fitting, nodes=nodes, start=start)
        if effects is not None and len(passed) < len(fitting):
            effects.rotation = start + len(passed)
        return passed

    def unread(self, incoming: Pod, problem: str, effects: Effects) -> VerbResponse:
        """Respond to `filter` for a pod that must be decided for, but could not be read from the API server."""
        if self._decider is None:
            raise AssertionError("only a decision needs the pod of the API server")
        return self._decider.unread(incoming, problem, effects)

    def prioritize(self, request: Request, effects: Effects | None = None) -> VerbResponse:
        """Return the HostPriorityList for ExtenderArgs: exactly the nodes of the request, in their order.

        For a bad request, or a pod that takes too much work, every node gets 0. If the nodes cannot be read, the
        response is {"Error": ...}, which the scheduler logs and ignores.
        """
        try:
            args = decode_args(request.body, self._mirror, self._known_names if effects is not None else None)
        except DecodeError as error:
            neutral = _neutral_list(request.body) or prioritize_error(str(error))
            return VerbResponse(neutral, outcome=VerbOutcome.BAD_REQUEST, error=str(error))
        batch = args.batch
        try:
            pod = _pod(args, effects)
        except DecodeError as error:
            return VerbResponse(self._zeros(batch), outcome=VerbOutcome.BAD_REQUEST, error=str(error))
        if self.bypass.covers(pod):
            return self.score_zero(args, pod)
        with set_apart(self._mirror, pod) as apart:
            return self._scored(batch, pod, cached=request.cached and not apart)

    def _scored(self, batch: NodeBatch, pod: Pod, *, cached: bool) -> VerbResponse:
        try:
            evaluation = self._to_score.begin(pod, cached=cached)
            scores = score_nodes(self._profile, evaluation, batch)
        except WorkLimitError as error:
            self._to_score.rejected(pod, error, cached=cached)
            return _too_much_work(self._zeros(batch), pod, batch, error)
        source = self._to_score.finish(evaluation, cached=cached)
        return _about_all(pod, len(batch), self._host_priorities.of(batch, scores), source)

    def bypassed(
        self, request: Request, effects: Effects | None, respond: Callable[[ExtenderArgs, Pod], VerbResponse]
    ) -> VerbResponse | None:
        """Respond for a pod that passes untouched, whatever the state of the mirror. None for other or invalid pods."""
        try:
            args = decode_args(request.body, self._mirror)
            pod = _pod(args, effects)
        except DecodeError:
            return None
        return respond(args, pod) if self.bypass.covers(pod) else None

    def pass_all(self, args: ExtenderArgs, pod: Pod) -> VerbResponse:
        """Respond to `filter` with all nodes."""
        nodes = len(args.batch)
        body = self._filter_result(args, None, np.arange(nodes), None)
        return _about_all(pod, nodes, body, outcome=VerbOutcome.BYPASSED)

    def score_zero(self, args: ExtenderArgs, pod: Pod) -> VerbResponse:
        """Respond to `prioritize` with 0 for each node."""
        return _about_all(pod, len(args.batch), self._zeros(args.batch), outcome=VerbOutcome.BYPASSED)

    def _zeros(self, batch: NodeBatch) -> bytes:
        return self._host_priorities.of(batch, np.zeros(len(batch), np.int64))

    def _filter_result(
        self, args: ExtenderArgs, verdicts: Verdicts | None, passed: IntpArray, effects: Effects | None
    ) -> bytes:
        batch = args.batch
        if verdicts is not None and len(passed) < len(batch):
            names = batch.name_json()
            failed = failed_nodes(names, verdicts)
        else:
            names, failed = None, NONE_FAILED
        if args.node_list is not None:
            return result_of_objects(args.node_list, passed.tolist(), failed)
        if names is None and args.written is not None:
            passing, slots = bytes(args.written), batch.slots  # all nodes, byte for byte
        else:
            slots = batch.slots.take(passed)
            passing = names_text((batch.name_json() if names is None else names).take(passed))
        if effects is not None and not batch.unmirrored:
            self._known_names.remember_passing(passing, slots)
        return result_of_names(passing, failed)


def _pod(args: ExtenderArgs, effects: Effects | None) -> Pod:
    return decode_incoming_pod(args.pod) if effects is None else effects.decoded(args.pod)


def _about_all(
    pod: Pod, nodes: int, body: bytes, source: str = "", outcome: VerbOutcome = VerbOutcome.FIT
) -> VerbResponse:
    return VerbResponse(body, source, outcome, pod.full_name, pod.uid, nodes, nodes)


def _too_much_work(body: bytes, pod: Pod, batch: NodeBatch, error: WorkLimitError) -> VerbResponse:
    outcome, nodes = VerbOutcome.TOO_MUCH_WORK, len(batch)
    return VerbResponse(body, outcome=outcome, pod=pod.full_name, uid=pod.uid, nodes=nodes, error=str(error))


def _neutral_list(body: Body) -> bytes:
    """Return a HostPriorityList of zeros for the nodes of a bad request. Empty if the nodes cannot be read.

    The nodes are read again, because `decode_args` may have rejected them: a name is there twice, or an unknown field
    is beside them. kube-scheduler sends no such request.
    """
    try:
        return neutral_priorities(requested_names(body))
    except DecodeError:
        return b""


def filter_verb(extender: Extender, effects: Effects) -> Verb:
    """Return the verb `filter`."""
    return Verb(
        "filter",
        run=Patient(extender.filter, extender.unread, effects),
        error=filter_error,
        shed=filter_error,
        bypassed=lambda request: extender.bypassed(request, _of(request, effects), extender.pass_all),
    )


def prioritize_verb(extender: Extender, effects: Effects) -> Verb:
    """Return the verb `prioritize`."""
    return Verb(
        "prioritize",
        run=lambda request: extender.prioritize(request, _of(request, effects)),
        error=prioritize_error,
        shed=_no_priorities,
        bypassed=lambda request: extender.bypassed(request, _of(request, effects), extender.score_zero),
    )


def _of(request: Request, effects: Effects) -> Effects | None:
    return None if request.dry_run else effects


def _no_priorities(_: str) -> bytes:
    """Return an empty HostPriorityList, which adds nothing to any node (schedule_one.go, prioritizeNodes).

    A 0 for every node would have the same effect, but finding the nodes is most of the cost of an ordinary response.
    """
    return b"[]"
