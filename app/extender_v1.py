"""The verbs of kube-scheduler's extender v1: ExtenderArgs in, ExtenderFilterResult and HostPriorityList out.

Source: k8s.io/kube-scheduler extender/v1/types.go. Requests and answers are handled as bytes: a model of every Node, or
even a str for every name, would cost many times the decision. Answers to bad requests are HTTP 200 with an `Error`,
because kube-scheduler throws away the body of any other status.
"""

from typing import Final

import msgspec
import numpy as np

from app.bypass import NOBODY, Bypass
from app.extender_args import PASSED_NOTHING, ExtenderArgs, PassedOn, decode_args, names_asked
from app.extender_results import (
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
from app.limits import Body
from app.nominations import Nominations
from app.observation import Answer, Asked, Outcome
from app.recent_pods import RecentPods
from app.refused_nodes import RefusedNodes
from app.watch.decode import NULL, DecodeError, under
from app.watch.decode_pod import decode_pod
from core.equivalence.cache import EquivalenceCache
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.framework.interface import MAX_NODE_SCORE, Verdicts
from core.mirror.cluster import ClusterMirror
from core.mirror.topology import IntpArray
from core.node_sample import ALL, NodeSample
from core.objects.pod import Pod
from core.profile import Profile
from core.scheduling_cycle import filter_nodes, score_nodes

_MAX_POD_BYTES: Final = 4 * 1024 * 1024  # etcd takes objects of up to 1.5 MiB


class Extender:
    """The verbs, from request bytes to response bytes. They never raise for what a request holds."""

    def __init__(  # noqa: PLR0913  # what the verbs need
        self,
        profile: Profile,
        mirror: ClusterMirror,
        cache: EquivalenceCache | None = None,
        max_score: int = MAX_NODE_SCORE,
        *,
        refused_nodes: RefusedNodes | None = None,
        nominations: Nominations | None = None,
        percentage_of_nodes_to_score: int = ALL,
        bypass: Bypass = NOBODY,
    ) -> None:
        """Answer from the mirror; `prioritize` spreads its scores over 0..max_score instead of 0..100.

        `refused_nodes` is told of what `filter` has found, where somebody wants to know; `nominations` doubt it, where
        the mirror follows a cluster. `filter` passes on a sample of the nodes that fit; see NodeSample. Pods that
        `bypass` covers pass untouched.
        """
        self._profile = profile
        self._mirror = mirror
        self._cache = cache
        self._refused_nodes = refused_nodes
        self._nominations = nominations
        self._sample = NodeSample(percentage_of_nodes_to_score)
        self._bypass = bypass
        self.recent_pods = RecentPods()
        """The pods of the questions, for whoever has to know one by its uid."""
        self._host_priorities = HostPriorities(max_score)
        self._passed_on = PASSED_NOTHING

    def filter(self, body: Body, *, cached: bool = True) -> Answer:
        """Answer ExtenderArgs with an ExtenderFilterResult; `Error` names the field of a bad request.

        With `cached` false, the equivalence cache is neither asked nor told.
        """
        try:
            args, pod = self.question(body)
        except DecodeError as error:
            return Answer(filter_error(str(error)), outcome=Outcome.BAD_REQUEST, error=str(error))
        batch = args.batch
        if self._bypass.covers(pod):
            everything = np.arange(len(batch))
            asked = Asked(pod.full_name, pod.uid, len(batch), len(batch))
            return Answer(self._filter_result(args, None, everything), outcome=Outcome.BYPASSED, asked=asked)
        evaluation = self._evaluation(pod, cached=cached)
        verdicts = filter_nodes(self._profile, evaluation, batch)
        fitting = (verdicts.codes == 0).nonzero()[0]
        passed = self._sample.of(self._profile, evaluation, batch, fitting, len(self._mirror.nodes.slots))
        source = self._finish(evaluation, cached=cached)
        asked = Asked(pod.full_name, pod.uid, len(batch), len(passed))
        doubt = self._nominations.doubt(pod, batch, verdicts) if self._nominations is not None else None
        if doubt is not None and not doubt.told:
            told = filter_error(doubt.reason)
            return Answer(told, source, doubtful=True, outcome=Outcome.DOUBTED, asked=asked, error=doubt.reason)
        if self._refused_nodes is not None:
            self._refused_nodes.note(pod, batch, verdicts)
        outcome = Outcome.FIT if asked.passed else Outcome.NO_FIT
        return Answer(self._filter_result(args, verdicts, passed), source, doubt is not None, outcome, asked)

    def prioritize(self, body: Body, *, cached: bool = True) -> Answer:
        """Answer ExtenderArgs with a HostPriorityList for exactly the nodes asked, in their order.

        A bad request is answered with 0 for every node where its nodes can be read, else with {"Error": ...}, which the
        scheduler logs and ignores.
        """
        try:
            args, pod = self.question(body)
        except DecodeError as error:
            neutral = _neutral_list(body) or prioritize_error(str(error))
            return Answer(neutral, outcome=Outcome.BAD_REQUEST, error=str(error))
        batch = args.batch
        asked = Asked(pod.full_name, pod.uid, len(batch), len(batch))
        if self._bypass.covers(pod):
            zeros = np.zeros(len(batch), np.int64)
            return Answer(self._host_priorities.of(batch, zeros), outcome=Outcome.BYPASSED, asked=asked)
        evaluation = self._evaluation(pod, cached=cached)
        scores = score_nodes(self._profile, evaluation, batch)
        source = self._finish(evaluation, cached=cached)
        return Answer(self._host_priorities.of(batch, scores), source, asked=asked)

    def passes_untouched(self, body: Body) -> bool:
        """Whether a question is about a pod that passes whatever the mirror is like."""
        try:
            return self._bypass.covers(self.question(body)[1])
        except DecodeError:
            return False

    def question(self, body: Body) -> tuple[ExtenderArgs, Pod]:
        """Decode what both verbs are asked. Raises DecodeError, which names the field."""
        args = decode_args(body, self._mirror, self._passed_on)
        raw = bytes(args.pod)
        pod = self.recent_pods.written_as(raw)  # mostly, as prioritize is asked about the pod of the filter before
        if pod is None:
            pod = decode_incoming_pod(args.pod)
            self.recent_pods.add(pod, raw)
        return args, pod

    def _filter_result(self, args: ExtenderArgs, verdicts: Verdicts | None, passed: IntpArray) -> bytes:
        batch = args.batch
        if verdicts is not None and len(passed) < len(batch):
            names = batch.name_json()
            failed = failed_nodes(names, verdicts)
        else:
            names, failed = None, NONE_FAILED
        if args.node_list is not None:
            return result_of_objects(args.node_list, passed, failed)
        if names is None and args.written is not None:
            passing = bytes(args.written)  # all of them, as they came
        else:
            passing = names_text((batch.name_json() if names is None else names).take(passed))
        if not batch.strangers:
            self._passed_on = PassedOn(passing, batch.slots.take(passed), self._mirror.nodes.lives)
        return result_of_names(passing, failed)

    def _evaluation(self, pod: Pod, *, cached: bool) -> Evaluation:
        if self._cache is None or not cached:
            return FreshEvaluation(self._mirror, pod)
        return self._cache.evaluation(pod)

    def _finish(self, evaluation: Evaluation, *, cached: bool) -> str:
        if self._cache is None:
            return ""
        return self._cache.finish(evaluation) if cached else "off"


def decode_incoming_pod(raw: msgspec.Raw) -> Pod:
    """Decode the pod of a request, whose every affinity term must be valid. Raises DecodeError."""
    if raw == NULL:
        raise DecodeError("Pod", "required")
    if memoryview(raw).nbytes > _MAX_POD_BYTES:
        raise DecodeError("Pod", f"larger than {_MAX_POD_BYTES} bytes")
    with under("Pod"):
        pod = decode_pod(raw)
    for error in pod.affinity.errors:
        raise DecodeError(f"Pod.spec.affinity.{error.field}", error.message)
    return pod


def _neutral_list(body: Body) -> bytes:
    """Return a HostPriorityList of zeros for the nodes of a bad request; empty when they cannot be read."""
    try:
        return neutral_priorities(names_asked(body))
    except DecodeError:
        return b""
