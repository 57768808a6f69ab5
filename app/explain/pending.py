"""All pending pods: since when each waits, on how many nodes it fits now, and why not on the others.

Pods of one class have one answer, so that the cost follows from the number of classes and not of pods.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from enum import Enum
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from app.explain.explain_error import TooMuchWorkError
from app.explain.explainer import Explainer, MirrorState
from app.long_work import LongWork
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.not_judged import NotJudged
from core.diagnosis.pod_names import Sees, every_namespace
from core.diagnosis.remedies.what_would_help import what_would_help
from core.diagnosis.summary import ReasonSummary, fit_message, reasons_of
from core.equivalence.classes import Classifier
from core.objects.pod import Pod

MAX_CLASSES: Final = 500
"""Classes that are judged, those of the oldest pods first. Pods of a StatefulSet are of a class each."""


class PendingState(Enum):
    """What a pending pod waits for."""

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
    """The smallest changes after each of which a pod of the class fits on a node, 3 at most; none where one does."""


class PendingPods(msgspec.Struct, frozen=True):
    """The pods that wait for a node, the oldest first."""

    generation: int
    """Of the mirror."""
    nodes: int
    standing: str
    """fresh, stale, or not synced"""
    problems: Sequence[str]
    pods: Sequence[PendingPod]
    classes: Sequence[PendingClass]
    left_out: int = 0
    """Pods of namespaces that the caller may not see; they count in no class."""
    names_hidden: str = ""
    """Why; empty where all names are shown."""


class _Judgement(NamedTuple):
    """What is said of a class."""

    nodes: int
    fit: int
    message: str
    reasons: Sequence[ReasonSummary]
    not_judged: Sequence[NotJudged]
    helps: Sequence[str]

    @property
    def state(self) -> PendingState:
        """What pods of the class wait for, if they have no gates."""
        if self.not_judged and (self.fit or not self.reasons):
            return PendingState.NOT_JUDGED
        return PendingState.FITS if self.fit else PendingState.UNSCHEDULABLE


class JudgedPods(NamedTuple):
    """The pending pods of one moment, the oldest first, with what is said of their classes."""

    pods: Sequence[tuple[Pod, int | None]]
    """With the place of the class in `judgements`; None if that was not asked."""
    judgements: Sequence[_Judgement]
    mirror: MirrorState


class PendingPodsExplainer:
    """Judges the pending pods, class by class, by all rules that explanations judge."""

    def __init__(self, explainer: Explainer, work: LongWork, now: Callable[[], float]) -> None:
        """`work` has the turn of the explainer. `now` is the time of day, in seconds since 1970."""
        self._explainer = explainer
        self._work = work
        self._now = now
        self._classifier = Classifier(explainer.explained.profile.plugins, "spec")

    async def judge(self) -> JudgedPods:
        """Judge all pending pods. Schedulers are answered between two classes; the mirror may change there."""
        mirror = self._explainer.mirror
        pods = [pod for pod in mirror.pending if not mirror.is_assumed(pod.uid)]
        pods.sort(key=lambda pod: (pod.waiting.created or _NEVER, pod.full_name, pod.uid))
        classes: dict[object, list[Pod]] = {}
        async with self._work.turn():
            for pod in pods:
                classes.setdefault(self._class_of(pod), []).append(pod)
                if self._work.over:
                    await self._work.give_way()
        judgements: list[_Judgement] = []
        place_of: dict[str, int] = {}
        for members in islice(classes.values(), MAX_CLASSES):
            async with self._work.uncut_turn():
                place_of.update((pod.uid, len(judgements)) for pod in members)
                judgements.append(self._judgement(members[0]))
        still = [
            (pod, place_of.get(pod.uid)) for pod in pods if pod.uid in mirror.pending and not mirror.is_assumed(pod.uid)
        ]
        return JudgedPods(still, judgements, self._explainer.mirror_state())

    def view(self, judged: JudgedPods, namespace: str | None = None, sees: Sees = every_namespace) -> PendingPods:
        """Return the pods of a namespace, or of all that are seen, with their classes."""
        wanted = [each for each in judged.pods if namespace in {None, each[0].namespace}]
        pods = [each for each in wanted if sees(each[0].namespace)]
        members: dict[int, list[Pod]] = {}
        for pod, place in pods:
            if place is not None:
                members.setdefault(place, []).append(pod)
        shown = {place: number for number, place in enumerate(members)}
        now = self._now()
        told = [
            _pending_pod(pod, now, shown.get(place), judged.judgements[place].state)
            if place is not None
            else _pending_pod(pod, now, None, PendingState.NOT_ASKED)
            for pod, place in pods
        ]
        return PendingPods(
            generation=judged.mirror.generation,
            nodes=judged.mirror.nodes,
            standing=judged.mirror.standing,
            problems=judged.mirror.problems,
            pods=told,
            classes=[_pending_class(judged.judgements[place], of_class) for place, of_class in members.items()],
            left_out=len(wanted) - len(pods),
        )

    def _class_of(self, pod: Pod) -> tuple[object, ...]:
        # No filter reads the last two, but they say which nominated pods count beside the pod.
        apart = (pod.claims_resources, pod.in_group, pod.priority, pod.nominated_node_name)
        return (*apart, self._classifier.key(self._explainer.mirror, pod))

    def _judgement(self, pod: Pod) -> _Judgement:
        try:
            return self._explainer.look_at(pod, _judgement)
        except TooMuchWorkError as error:
            nodes = len(self._explainer.mirror.nodes.slots)
            return _Judgement(nodes, 0, "", (), [NotJudged("", str(error))], ())


_MAX_REMEDIES: Final = 3
_NEVER: Final = "9999"
"""After every time of RFC 3339: pods whose time is unknown come last."""


def _judgement(decision: Diagnosis) -> _Judgement:
    reasons = reasons_of(decision)
    fit = len(decision.fitting)
    helps = [remedy.text for remedy in what_would_help(decision, _MAX_REMEDIES)]
    return _Judgement(len(decision.batch), fit, fit_message(decision, reasons), reasons, decision.not_judged, helps)


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


def _pending_class(judgement: _Judgement, pods: Sequence[Pod]) -> PendingClass:
    first = judgement.reasons[0] if judgement.reasons else None
    return PendingClass(
        pods=len(pods),
        first_pod=pods[0].full_name,
        oldest=pods[0].waiting.created,
        state=judgement.state,
        nodes=judgement.nodes,
        fit=judgement.fit,
        plugin=first.plugin if first is not None else "",
        first_reason=first.reason if first is not None else "",
        message=judgement.message,
        reasons=judgement.reasons,
        not_judged=judgement.not_judged,
        helps=judgement.helps,
    )


def _seconds(created: str, now: float) -> float | None:
    """Return how long ago a time is; None if it is none."""
    try:
        return max(0.0, now - datetime.fromisoformat(created).timestamp())
    except ValueError:
        return None
