"""Whether a pod may be bound to a node, by the present mirror.

The check changes nothing, and a dry run of `bind` uses nothing else.
"""

from app.objects.decode import DecodeError
from app.objects.limits import Body
from app.verbs.binding.binding_args import BindingArgs, binding_result, decode_binding_args
from app.verbs.binding.binding_outcome import BindingOutcome, BindingResult
from app.verbs.bypass import Bypass
from app.verbs.observation import Asked, VerbOutcome, VerbResponse
from core.framework.evaluation import FreshEvaluation
from core.framework.status import Code
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.profile import Profile
from core.scheduling_cycle import filter_nodes


class BindingCheck:
    """The hard rules of a profile."""

    def __init__(self, profile: Profile, mirror: ClusterMirror, bypass: Bypass) -> None:
        """Judge over a mirror. Pods that `bypass` covers may be bound to any node."""
        self._profile = profile
        self._mirror = mirror
        self._bypass = bypass

    def covers(self, pod: Pod) -> bool:
        """Return whether a pod passes untouched."""
        return self._bypass.covers(pod)

    def conflict(self, args: BindingArgs, pod: Pod) -> BindingOutcome | None:
        """Return why a pod must not be bound to the node of a request, or None. Stale after the next event."""
        batch = self._mirror.batch([args.node])
        evaluation = FreshEvaluation(self._mirror, pod)
        # Without nominated pods: they hold no capacity yet, and kube-scheduler ignores them after its filters. When it
        # nominated a pod later than this one, it counted this one as assumed. A rejection would only cost an attempt.
        verdicts = filter_nodes(self._profile, evaluation, batch, beside_nominated=False)
        status = verdicts.statuses[int(verdicts.codes[0])]
        if status.code is Code.SUCCESS or self._bypass.covers(pod):
            return None
        return BindingOutcome(
            BindingResult.CONFLICT, f"pod {pod.full_name} does not fit on {args.node}: {status.message}"
        )

    def judge(self, body: Body) -> VerbResponse:
        """Respond to a dry run for a pod of the watch. The result always has an `Error`, because nothing is bound."""
        try:
            args = decode_binding_args(body)
        except DecodeError as error:
            return VerbResponse(binding_result(str(error)), outcome=VerbOutcome.BAD_REQUEST, error=str(error))
        pod = self._mirror.pending.get(args.uid)
        if pod is None or pod.full_name != args.full_name:
            told, outcome = f"pod {args.full_name} with this uid is not pending in the watch", VerbOutcome.NO_FIT
        elif (conflict := self.conflict(args, pod)) is not None:
            told, outcome = conflict.error, VerbOutcome.NO_FIT
        else:
            told, outcome = f"pod {args.full_name} may be bound to {args.node}", VerbOutcome.FIT
        error_text = f"a dry run, so nothing was bound: {told}"
        return VerbResponse(
            binding_result(error_text), outcome=outcome, asked=Asked(args.full_name, args.uid, 1), error=error_text
        )
