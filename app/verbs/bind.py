"""Binds pods. Pods that the watch has not shown yet count, too, so no binding breaks a hard rule.

The order: find the pod as the API server has it, run all predicates again over the mirror with its assumed pods, assume
the pod, post the binding. There is no await between the predicates and the assumption, so two bindings cannot both use
the last free capacity. The response of the API server decides about the assumption:

    bound                            it stays until the watch confirms it or the TTL ends
    certainly not bound              it ends, and the scheduler gets the reason and tries again
    unknown, and the pod unreadable  it stays until a later request reads the pod, or the TTL ends: a pod that counts
                                     for too long costs a retry, a pod that is missing breaks a rule

If the response is lost, the binder reads the pod from the API server. If the pod has no node by then, the binding
counts as not carried out, although the server may have begun it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from app.api_server.client import ApiError
from app.api_server.credentials import CredentialsError
from app.objects.decode import Body, DecodeError
from app.process.logs import one_line
from app.verbs.admission import ServingState
from app.verbs.effects import Effects
from app.verbs.endpoint import Verb
from app.verbs.filter import Bypass
from app.verbs.pods import BindError, BindingArgs, LookupState, PodApi, binding_result, decode_binding_args
from app.verbs.request import BindingOutcome, BindingResult, VerbOutcome, VerbResponse
from core.equivalence.cache import set_apart
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import Code
from core.mirror.cluster import ClusterMirror
from core.mirror.placement import PodStateError
from core.mirror.work import WorkLimitError
from core.objects.pod import Pod, decides_alike
from core.profile import Profile
from core.scheduling_cycle import filter_nodes

log = logging.getLogger(__name__)

_FOR_THE_LOOK: Final = 0.25  # share of the time that is kept for reading the pod
_NO_CLUSTER: Final = "there is no cluster to bind in: the mirror comes from a dump"
_VERB_OUTCOMES: Final[Mapping[BindingResult, VerbOutcome]] = {
    BindingResult.BOUND: VerbOutcome.FIT,
    BindingResult.ALREADY_BOUND: VerbOutcome.FIT,
    BindingResult.CONFLICT: VerbOutcome.NO_FIT,
    BindingResult.TOO_MUCH_WORK: VerbOutcome.TOO_MUCH_WORK,
    BindingResult.BOUND_ELSEWHERE: VerbOutcome.NO_FIT,
    BindingResult.REJECTED: VerbOutcome.FAILED,
    BindingResult.UNREACHABLE: VerbOutcome.FAILED,
    BindingResult.UNKNOWN: VerbOutcome.FAILED,
    BindingResult.NOT_LEADING: VerbOutcome.NOT_LEADING,
    BindingResult.INVALID: VerbOutcome.BAD_REQUEST,
}
_FAILURES: Final = (ApiError, CredentialsError, DecodeError, TimeoutError)


_OFF: Final = "switched off, so that no pod is bound: set KINDRED_BIND=true, or take bindVerb away"
_BIND_OFF: Final = VerbResponse(
    binding_result(_OFF), outcome=VerbOutcome.NO_FIT, error=_OFF, result=BindingResult.OFF
)  # not logged: every pod of a scheduler would have a line


class _Running(NamedTuple):
    args: BindingArgs
    task: asyncio.Task[BindingOutcome]


class Binder:
    """The verb `bind`. The contents of a request never make it raise."""

    def __init__(  # noqa: PLR0913  # what a binding needs
        self,
        profile: Profile,
        mirror: ClusterMirror,
        bypass: Bypass,
        effects: Effects,
        *,
        timeout: float,
        clock: Callable[[], float],
        state: ServingState,
    ) -> None:
        """Bind within `timeout` seconds. `clock` is the mirror's clock.

        A binding is posted only while this replica may decide, and must end before another replica may.
        Pods that pass untouched are bound to the scheduler's node without a check.
        """
        self._profile = profile
        self._mirror = mirror
        self._bypass = bypass
        self._recent_pods = effects.recent_pods
        self._lookup = effects.lookup
        self._pods = effects.lookup.pods
        self._leave_gang = effects.gangs.leave if effects.gangs is not None else lambda _: False
        self._timeout = timeout
        self._clock = clock
        self._state = state
        self._running: dict[str, _Running] = {}  # uid -> its binding under way

    async def bind(self, body: Body, waited: float = 0.0) -> VerbResponse:
        """Return the ExtenderBindingResult for ExtenderBindingArgs. The request was queued for `waited` seconds."""
        try:
            args = decode_binding_args(body)
        except DecodeError as error:
            return _response(BindingOutcome(BindingResult.INVALID, str(error)))
        return await self._respond(args, self._deadline(waited))

    def judge(self, body: Body) -> VerbResponse:
        """Respond to a dry run for a pod of the watch. The result always has an `Error`, because nothing is bound."""
        try:
            args = decode_binding_args(body)
        except DecodeError as error:
            return VerbResponse(binding_result(str(error)), outcome=VerbOutcome.BAD_REQUEST, error=str(error))
        pod = self._mirror.pending.get(args.uid)
        if pod is None or pod.full_name != args.full_name:
            message, outcome = f"pod {args.full_name} with this uid is not pending in the watch", VerbOutcome.NO_FIT
        else:
            with set_apart(self._mirror, pod):  # an earlier binding may have assumed it
                conflict = self._conflict(args, pod)
            if conflict is not None:
                message, outcome = conflict.error, _VERB_OUTCOMES[conflict.result]
            else:
                message, outcome = f"pod {args.full_name} may be bound to {args.node}", VerbOutcome.FIT
        error_text = f"a dry run, so nothing was bound: {message}"
        return VerbResponse(
            binding_result(error_text), "", outcome, args.full_name, args.uid, nodes=1, error=error_text
        )

    def bind_bypassed(self, body: Body, waited: float = 0.0) -> Awaitable[VerbResponse | None] | None:
        """Bind a pod that passes untouched, whatever the state of the mirror. None for other or invalid pods.

        The copy of the pod in an earlier request is a reason to read the pod. The API server's pod decides.
        """
        try:
            args = decode_binding_args(body)
        except DecodeError:
            return None
        recent = self._recent_pods.get(args.uid)
        if recent is None or not self._bypass.covers(recent):
            return None
        return self._bound_bypassed(args, self._deadline(waited))

    async def _bound_bypassed(self, args: BindingArgs, deadline: float) -> VerbResponse | None:
        live = await self._read(args, deadline)
        if isinstance(live, BindingOutcome):
            return _response(live, args)
        if live is None or live.uid != args.uid or not self._bypass.covers(live):
            return None
        return await self._respond(args, deadline)

    def _deadline(self, waited: float) -> float:
        return asyncio.get_running_loop().time() + self._timeout - waited

    async def _respond(self, args: BindingArgs, deadline: float) -> VerbResponse:
        outcome = await self._joined(args, deadline)
        if outcome.error:
            level = logging.INFO if outcome.result is BindingResult.CONFLICT else logging.WARNING
            message = one_line(outcome.detail or outcome.error)
            log.log(level, "bind: %s to %s: %s", args.full_name, one_line(args.node), message)
        return _response(outcome, args)

    async def _joined(self, args: BindingArgs, deadline: float) -> BindingOutcome:
        """Bind, or wait for the same binding in progress. A binding continues even if its caller is cancelled."""
        if self._pods is None:
            return BindingOutcome(BindingResult.UNREACHABLE, _NO_CLUSTER)
        running = self._running.get(args.uid)
        if running is None and (not_leading := self._not_leading()):
            return not_leading
        if running is None:
            running = _Running(args, asyncio.create_task(self._bound(args, self._pods, deadline)))
            self._running[args.uid] = running
            running.task.add_done_callback(lambda _: self._running.pop(args.uid))
        elif running.args != args:
            return _elsewhere(args, "is being bound", running.args.node)
        return await asyncio.shield(running.task)

    async def finish(self) -> None:
        """Return when no binding is in progress. More may begin meanwhile."""
        while self._running:
            await asyncio.wait([each.task for each in self._running.values()])

    async def _bound(self, args: BindingArgs, pods: PodApi, deadline: float) -> BindingOutcome:
        pod = await self._found(args, deadline)
        if isinstance(pod, BindingOutcome):
            return pod
        rejection = self._assumed(args, pod)
        if rejection is not None:
            self._mirror.give_up(pod)
            return rejection
        outcome = BindingOutcome(BindingResult.UNKNOWN)
        try:
            outcome = await self._posted(args, pods, deadline)
        finally:
            self._settle(args.uid, outcome.result)
        return outcome

    async def _found(self, args: BindingArgs, deadline: float) -> Pod | BindingOutcome:
        """Return the unbound pod as the API server has it, or the outcome if it is known already.

        If the pod is still assumed, an earlier binding ended with an unknown result. Then the API server decides.
        """
        known = self._outcome_by_mirror(args) or self._decided_pod(args)
        if known is not None:
            return known
        if not self._mirror.is_assumed(args.uid):
            found = self._lookup.named(args.full_name, args.uid, self._recent_pods.get(args.uid))
            if found.state is not LookupState.UNKNOWN:
                return found.pod if found.pod is not None else _no_such(args)
        live = await self._read(args, deadline)
        if isinstance(live, BindingOutcome):
            return live
        if live is None:
            return _no_such(args)
        outcome = self._outcome_by_server(args, live) or self._outcome_by_mirror(args)
        if outcome is not None:
            return outcome
        if not self._leave_gang(args.uid) and self._mirror.is_assumed(args.uid):
            self._mirror.release(args.uid)
        return live

    def _decided_pod(self, args: BindingArgs) -> Pod | None:
        """Return a pod of the watch that was only decided for, and end its decision. Else None.

        It is not read: the API server binds no pod twice, and its limit of reads would be one of bindings.
        """
        assumed, pending = self._mirror.assumed.get(args.uid), self._mirror.pending.get(args.uid)
        if assumed is None or assumed.is_reported or pending is None or pending.full_name != args.full_name:
            return None
        if not decides_alike(pending, replace(assumed.pod, node_name="")):  # a GET had shown it otherwise
            return None
        self._mirror.release(args.uid)
        return pending

    async def _read(self, args: BindingArgs, deadline: float) -> Pod | BindingOutcome | None:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._lookup.read(args)
        except _FAILURES as error:
            why = str(error) or f"no response within {self._timeout:g} s"
            return BindingOutcome(BindingResult.UNREACHABLE, f"pod {args.full_name} could not be read: {why}")

    def _assumed(self, args: BindingArgs, pod: Pod) -> BindingOutcome | None:
        """Check all hard rules and assume the pod, or return why not. Must not await: see the module's docstring."""
        if not_leading := self._not_leading():
            return not_leading
        conflict = self._conflict(args, pod)
        if conflict is not None:
            return conflict
        try:
            self._mirror.assume(pod, args.node, self._clock())
        except PodStateError as error:
            return BindingOutcome(
                BindingResult.REJECTED, f"pod {args.full_name} cannot be assumed on {args.node}", str(error)
            )
        return None

    def _conflict(self, args: BindingArgs, pod: Pod) -> BindingOutcome | None:
        """Return why a pod must not be bound to the node of a request, or None. Stale after the next event."""
        if self._bypass.covers(pod):
            return None
        batch = self._mirror.batch([args.node])
        evaluation = FreshEvaluation(self._mirror, pod)
        # Without nominated pods: they hold no capacity yet, and kube-scheduler ignores them after its filters. When it
        # nominated a pod later than this one, it counted this one as assumed. A rejection would only cost an attempt.
        try:
            status = filter_nodes(self._profile, evaluation, batch, with_nominated=False).status(0)
        except WorkLimitError as error:
            return BindingOutcome(BindingResult.TOO_MUCH_WORK, f"pod {pod.full_name}: {error}")
        if status.code is Code.SUCCESS:
            return None
        return BindingOutcome(
            BindingResult.CONFLICT, f"pod {pod.full_name} does not fit on {args.node}: {status.message}"
        )

    async def _posted(self, args: BindingArgs, pods: PodApi, deadline: float) -> BindingOutcome:
        now = asyncio.get_running_loop().time()
        until = min(deadline - _FOR_THE_LOOK * self._timeout, now + self._state.seconds_left())
        if until <= now:  # a POST that is sent and given up at once may still bind the pod
            return BindingOutcome(BindingResult.UNREACHABLE, "no time is left to post the binding")
        try:
            async with asyncio.timeout_at(until):
                await pods.bind(args, until, self._state.may_decide)
        except BindError as error:
            result = BindingResult.REJECTED if error.rejected else BindingResult.UNREACHABLE
            failure = BindingOutcome(result, str(error))
            if not error.may_be_done:
                return failure
        except TimeoutError:
            failure = BindingOutcome(
                BindingResult.UNREACHABLE, f"the API server did not respond within {until - now:.2g} s"
            )
        else:
            return BindingOutcome(BindingResult.BOUND)
        return await self._looked_at(args, pods, deadline, failure)

    async def _looked_at(
        self, args: BindingArgs, pods: PodApi, deadline: float, failure: BindingOutcome
    ) -> BindingOutcome:
        """Read the pod to get the outcome of its binding. `failure` is the outcome if the pod is not bound."""
        try:
            async with asyncio.timeout_at(deadline):
                live = await pods.get(args, limited=False)
        except _FAILURES:
            unknown = BindingOutcome(BindingResult.UNKNOWN, f"{failure.error}; whether the pod is bound is not known")
            return self._outcome_by_mirror(args) or unknown
        if live is None:
            return _no_such(args)
        return self._outcome_by_server(args, live) or self._outcome_by_mirror(args) or failure

    def _not_leading(self) -> BindingOutcome | None:
        rejection = self._state.rejection()
        return BindingOutcome(BindingResult.NOT_LEADING, rejection) if rejection else None

    def _outcome_by_mirror(self, args: BindingArgs) -> BindingOutcome | None:
        """Return the outcome for a pod that the watch has shown on a node, else None."""
        known = self._mirror.get_pod(args.uid)
        if known is None or self._mirror.is_assumed(args.uid):
            return None
        return _placed(args, known)

    def _outcome_by_server(self, args: BindingArgs, live: Pod) -> BindingOutcome | None:
        """Return the outcome by the API server's pod of that name. None if the pod can be bound."""
        if live.uid != args.uid:
            return _no_such(args)
        if live.terminal:
            return BindingOutcome(BindingResult.REJECTED, f"pod {args.full_name} has ended")
        if not live.node_name:
            return None
        self._lookup.remember(live)
        return _placed(args, live)

    def _settle(self, uid: str, result: BindingResult) -> None:
        """End the assumption, or start its TTL. The watch may have ended the assumption already."""
        if result in {BindingResult.REJECTED, BindingResult.UNREACHABLE}:
            if self._mirror.is_assumed(uid):
                self._mirror.forget(uid)
        else:
            self._mirror.finish_binding(uid, self._clock(), is_known=result is not BindingResult.UNKNOWN)


def bind_verb(binder: Binder | None) -> Verb:
    """Return the verb `bind`, which does not use the cache. None: the verb is off."""
    if binder is None:
        return Verb("bind", lambda _: _BIND_OFF, binding_result, binding_result, bypassed=lambda _: _BIND_OFF)
    return Verb(
        "bind",
        run=lambda request: (
            binder.judge(request.body) if request.dry_run else binder.bind(request.body, request.waited)
        ),
        error=binding_result,
        shed=binding_result,
        bypassed=lambda request: None if request.dry_run else binder.bind_bypassed(request.body, request.waited),
    )


def _response(outcome: BindingOutcome, args: BindingArgs | None = None) -> VerbResponse:
    """Return the response. `args` is None if they could not be read."""
    return VerbResponse(
        binding_result(outcome.error),
        outcome=_VERB_OUTCOMES[outcome.result],
        pod="" if args is None else args.full_name,
        uid="" if args is None else args.uid,
        nodes=0 if args is None else 1,
        error=one_line(outcome.error),
        result=outcome.result,
    )


def _placed(args: BindingArgs, pod: Pod) -> BindingOutcome:
    if pod.full_name != args.full_name:
        return _no_such(args)
    if pod.node_name == args.node:
        return BindingOutcome(BindingResult.ALREADY_BOUND)
    return _elsewhere(args, "is bound", pod.node_name)


def _elsewhere(args: BindingArgs, how: str, node: str) -> BindingOutcome:
    bound = f"pod {args.full_name} {how} to"
    return BindingOutcome(BindingResult.BOUND_ELSEWHERE, f"{bound} another node", f"{bound} {node}, not {args.node}")


def _no_such(args: BindingArgs) -> BindingOutcome:
    return BindingOutcome(BindingResult.REJECTED, f"no pending pod {args.full_name} has this uid")
