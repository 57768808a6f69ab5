"""All pending pods: since when each waits, on how many nodes it fits now, and why not on the others.

Pods of one class have one result, so that the cost depends on the number of classes and not of pods.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from enum import Enum
from heapq import merge
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from app.explain.explain_error import TooMuchWorkError
from app.explain.explainer import Explainer, MirrorState
from app.long_work import LongWork
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.not_judged import NotJudged
from core.diagnosis.pod_names import PodText, Sees, every_namespace
from core.diagnosis.remedies.what_would_help import what_would_help
from core.diagnosis.scheduler_rules import SchedulerState
from core.diagnosis.summary import ReasonSummary, fit_message, reasons_of
from core.equivalence.classes import Classifier
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod

MAX_CLASSES: Final = 500
"""Classes that are judged, starting with the oldest pods. Pods of a StatefulSet are of a class each."""


class PendingState(Enum):
    """The state of a pending pod."""

    UNSCHEDULABLE = "unschedulable"
    """No node passes the rules that were judged."""
    FITS = "fits"
    """A node does: the pod waits for its turn, or for its scheduler."""
    NOT_JUDGED = "not judged"
    """A node does, but a rule could not be judged."""
    GATED = "gated"
    """kube-scheduler does not try it before its gates are gone."""
    NOT_ASKED = "not asked"
    """There are more classes than are judged."""


class ScheduledCondition(msgspec.Struct, frozen=True):
    """The condition PodScheduled while it is False: why the last attempt failed, by the scheduler."""

    reason: str
    message: str
    since: str
    """RFC 3339; empty if unknown."""


class PendingPod(msgspec.Struct, frozen=True):
    """One pod that waits for a node."""

    pod: str
    """NAMESPACE/NAME"""
    uid: str
    since: str
    """When it was created, RFC 3339; empty if unknown."""
    seconds: float | None
    """How long ago that is."""
    scheduler: str
    """spec.schedulerName"""
    state: PendingState
    gates: Sequence[str]
    nominated_node: str
    condition: ScheduledCondition | None
    place: int | None = msgspec.field(name="class")
    """Of its class in `classes`; null if that was not asked."""


class PendingClass(msgspec.Struct, frozen=True):
    """Pods that plugins cannot tell apart, judged once."""

    pods: int
    first_pod: str
    """NAMESPACE/NAME of the oldest."""
    oldest: str
    """When that was created."""
    state: PendingState
    nodes: int
    fit: int
    plugin: str
    """The one that refuses most nodes; empty if none does."""
    first_reason: str
    """Its reason."""
    message: str
    """As kube-scheduler's events have it."""
    reasons: Sequence[ReasonSummary]
    not_judged: Sequence[NotJudged]
    helps: Sequence[str]
    """The smallest changes, 3 at most, each of which lets a pod of the class fit; none if one fits."""
    scheduler: SchedulerState | None = None
    """As in the summary of an explanation."""


class PendingHead(msgspec.Struct, frozen=True):
    """The rules for the pods."""

    generation: int
    """Of the mirror."""
    nodes: int
    standing: str
    """fresh, stale, or not synced"""
    problems: Sequence[str]


class PendingPods(PendingHead, frozen=True):
    """The pods that wait for a node, the oldest first."""

    pods: Sequence[PendingPod]
    classes: Sequence[PendingClass]
    left_out: int = 0
    """Pods of namespaces that the caller may not see; they count in no class."""
    names_hidden: str = ""
    """Why; empty where all names are shown."""


class _Judgement(NamedTuple):
    """The result for a class."""

    nodes: int
    fit: int
    message: str
    reasons: Sequence[ReasonSummary]
    not_judged: Sequence[NotJudged]
    helps: Sequence[str]
    scheduler: SchedulerState | None = None

    @property
    def state(self) -> PendingState:
        """The state of pods of the class without gates."""
        if self.not_judged and (self.fit or not self.reasons):
            return PendingState.NOT_JUDGED
        return PendingState.FITS if self.fit else PendingState.UNSCHEDULABLE


class _Members:
    """The reported pods of a class."""

    def __init__(self, place: int, first: Pod) -> None:
        """`place` is the index of the class in the response."""
        self.place: Final = place
        self.first: Final = first
        self.pods = 0


class JudgedPods(NamedTuple):
    """The pending pods of one moment, the oldest first, with the results for their classes."""

    pods: Sequence[tuple[Pod, int]]
    """With the place of the class in `judgements`, which has the first MAX_CLASSES."""
    judgements: Sequence[_Judgement]
    mirror: MirrorState

    def namespaces(self, namespace: str | None) -> Iterator[str]:
        """Yield the namespaces of the pods of a namespace, or of all, and of the pods that remedies name."""
        for pod, _ in self.pods:
            if namespace in {None, pod.namespace}:
                yield pod.namespace
        for judgement in self.judgements:
            for text in judgement.helps:
                if isinstance(text, PodText):
                    yield from text.namespaces()


class PendingView:
    """The pods of a namespace, or of all, that are still pending, told one by one and then their classes.

    One by one, so that the event loop may serve others in between: 20,000 pods take 40 ms.
    """

    def __init__(
        self, judged: JudgedPods, mirror: ClusterMirror, now: float, namespace: str | None, sees: Sees
    ) -> None:
        """`now` is the time of day, in seconds since 1970. Pods of namespaces that are not seen are only counted."""
        state = judged.mirror
        self.head: Final = PendingHead(state.generation, state.nodes, state.standing, state.problems)
        self._judged = judged
        self._mirror = mirror
        self._now = now
        self._namespace = namespace
        self._sees = sees
        self.left_out = 0
        """Pods that are not seen, of those that `pods` has reached."""
        self._members: dict[int, _Members] = {}  # place in the judgements -> pods, in the order of the first pods

    def pods(self) -> Iterator[PendingPod]:
        """Yield the pods, the oldest first."""
        mirror, judgements = self._mirror, self._judged.judgements
        for pod, place in self._judged.pods:
            if self._namespace not in {None, pod.namespace}:
                continue
            if pod.uid not in mirror.pending or mirror.is_assumed(pod.uid):
                continue  # the pod was bound after it was judged
            if not self._sees(pod.namespace):
                self.left_out += 1
                continue
            if place >= len(judgements):
                yield _pending_pod(pod, self._now, None, PendingState.NOT_ASKED)
                continue
            members = self._members.get(place)
            if members is None:
                members = self._members[place] = _Members(len(self._members), pod)
            members.pods += 1
            yield _pending_pod(pod, self._now, members.place, judgements[place].state)

    def classes(self) -> Iterator[PendingClass]:
        """Yield the classes of the reported pods."""
        for place, members in self._members.items():
            yield _pending_class(self._judged.judgements[place], members)

    def told(self) -> PendingPods:
        """Return all of it at once."""
        head, pods = self.head, [*self.pods()]
        classes = [*self.classes()]
        return PendingPods(head.generation, head.nodes, head.standing, head.problems, pods, classes, self.left_out)


class PendingPodsExplainer:
    """Judges the pending pods, class by class, by all rules that explanations judge."""

    def __init__(self, explainer: Explainer, work: LongWork, now: Callable[[], float]) -> None:
        """`work` has the turn of the explainer. `now` is the time of day, in seconds since 1970."""
        self._explainer = explainer
        self._work = work
        self._now = now
        self._classifiers: dict[object, Classifier] = {}
        """By the profile that is judged."""

    async def judge(self) -> JudgedPods:
        """Judge all pending pods. Schedulers are answered between two pieces; the mirror may change there."""
        pods: list[tuple[Pod, int]] = []
        places: dict[object, int] = {}
        firsts: list[Pod] = []
        async with self._work.turn():
            for *_, pod in merge(*await self._sorted_runs()):
                place = places.setdefault(self._class_of(pod), len(places))
                if place == len(firsts):
                    firsts.append(pod)
                pods.append((pod, place))
                if self._work.over:
                    await self._work.give_way()
        judgements: list[_Judgement] = []
        for first in islice(firsts, MAX_CLASSES):
            async with self._work.uncut_turn():
                judgements.append(self._judgement(first))
        return JudgedPods(pods, judgements, self._explainer.mirror_state())

    def view(self, judged: JudgedPods, namespace: str | None = None, sees: Sees = every_namespace) -> PendingView:
        """Return the pods of a namespace, or of all that are seen, with their classes."""
        return PendingView(judged, self._explainer.mirror, self._now(), namespace, sees)

    async def _sorted_runs(self) -> list[list[tuple[str, str, str, Pod]]]:
        """Return the pending pods in sorted lists, the oldest first: to sort 20,000 at once takes 11 ms."""
        mirror = self._explainer.mirror
        runs: list[list[tuple[str, str, str, Pod]]] = []
        waiting = iter([*mirror.pending])  # the pods may change between two pieces
        while pods := [*islice(waiting, _RUN)]:
            run = [
                (pod.waiting.created or _NEVER, pod.full_name, pod.uid, pod)
                for pod in pods
                if not mirror.is_assumed(pod.uid)
            ]
            run.sort()
            runs.append(run)
            if self._work.over:
                await self._work.give_way()
        return runs

    def _class_of(self, pod: Pod) -> tuple[object, ...]:
        # No filter reads the last two, but they say which nominated pods count beside the pod.
        apart = (pod.claims_resources, pod.in_group, pod.priority, pod.nominated_node_name)
        explained = self._explainer.explained_of(pod)
        classifier = self._classifiers.get(explained.profile)
        if classifier is None:
            classifier = self._classifiers[explained.profile] = Classifier(explained.profile.plugins, "spec")
        return (*apart, explained.scheduler, classifier.key(self._explainer.mirror, pod))

    def _judgement(self, pod: Pod) -> _Judgement:
        try:
            return self._explainer.look_at(pod, _judgement)
        except TooMuchWorkError as error:
            nodes = len(self._explainer.mirror.nodes.slots)
            return _Judgement(nodes, 0, "", (), [NotJudged("", str(error))], ())


_MAX_REMEDIES: Final = 3
_RUN: Final = 500
"""Pods that are sorted in one step, in 0.4 ms."""
_NEVER: Final = "9999"
"""After every time of RFC 3339: pods whose time is unknown come last."""


def _judgement(decision: Diagnosis) -> _Judgement:
    reasons = reasons_of(decision)
    fit = len(decision.fitting)
    helps = [remedy.text for remedy in what_would_help(decision, _MAX_REMEDIES)]
    message = fit_message(decision, reasons)
    return _Judgement(len(decision.batch), fit, message, reasons, decision.not_judged, helps, decision.scheduler)


def _pending_pod(pod: Pod, now: float, place: int | None, state: PendingState) -> PendingPod:
    waiting = pod.waiting
    condition = ScheduledCondition(waiting.reason, waiting.message, waiting.changed) if waiting.reason else None
    return PendingPod(
        pod=pod.full_name,
        uid=pod.uid,
        since=waiting.created,
        seconds=_seconds(waiting.created, now),
        scheduler=pod.scheduler_name,
        state=PendingState.GATED if waiting.gates else state,
        gates=waiting.gates,
        nominated_node=pod.nominated_node_name,
        condition=condition,
        place=place,
    )


def _pending_class(judgement: _Judgement, members: _Members) -> PendingClass:
    first = judgement.reasons[0] if judgement.reasons else None
    return PendingClass(
        pods=members.pods,
        first_pod=members.first.full_name,
        oldest=members.first.waiting.created,
        state=judgement.state,
        nodes=judgement.nodes,
        fit=judgement.fit,
        plugin=first.plugin if first is not None else "",
        first_reason=first.reason if first is not None else "",
        message=judgement.message,
        reasons=judgement.reasons,
        not_judged=judgement.not_judged,
        scheduler=judgement.scheduler,
        helps=judgement.helps,
    )


def _seconds(created: str, now: float) -> float | None:
    """Return how long ago a time is; None if it is none."""
    try:
        return max(0.0, now - datetime.fromisoformat(created).timestamp())
    except ValueError:
        return None
