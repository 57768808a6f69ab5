"""All pending pods: since when each waits, on how many nodes it fits now, and why not on the others.

Pods of one class have one result. So the cost depends on the number of classes, not on the number of pods.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from enum import Enum
from heapq import merge
from itertools import islice
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from app.explain.explain_request import TooMuchWorkError
from app.explain.explainer import Explainer, MirrorState
from app.process.long_work import LongWork
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.explained_profile import SchedulerState
from core.diagnosis.not_judged import NotJudged
from core.diagnosis.remedies.find_remedies import find_remedies
from core.diagnosis.summary import ReasonSummary, fit_message, reasons_of
from core.diagnosis.wakes import AwaitedVictim, VictimsByPod
from core.equivalence.classes import Classifier
from core.explaining.pod_names import PodName, PodText, Sees, every_namespace
from core.gangs.unit import UnitStatus
from core.objects.pod import Pod

MAX_CLASSES: Final = 500
"""Classes that are judged, starting with the oldest pods. Each pod of a StatefulSet has a class of its own."""


class PendingState(Enum):
    """The state of a pending pod."""

    UNSCHEDULABLE = "unschedulable"
    """No node passes the judged rules."""
    FITS = "fits"
    """A node passes all rules. The pod waits for its turn, or for its scheduler."""
    NOT_JUDGED = "not judged"
    """A node passes the judged rules, but a rule could not be judged."""
    GATED = "gated"
    """The pod has scheduling gates. kube-scheduler does not try it before they are removed."""
    NO_REQUEST = "not asked"
    """The pod's class is beyond MAX_CLASSES."""


class ScheduledCondition(msgspec.Struct, frozen=True):
    """The condition PodScheduled while it is False, with the scheduler's reason for the last failed attempt."""

    reason: str
    message: str
    since: str
    """RFC 3339. Empty if unknown."""


class PendingPod(msgspec.Struct, frozen=True):
    """One pod that waits for a node."""

    pod: str
    """NAMESPACE/NAME"""
    uid: str
    since: str
    """Time of creation, RFC 3339. Empty if unknown."""
    seconds: float | None
    """Seconds since the creation."""
    scheduler: str
    """spec.schedulerName"""
    state: PendingState
    gates: Sequence[str]
    nominated_node: str
    condition: ScheduledCondition | None
    place: int | None = msgspec.field(name="class")
    """Index of its class in `classes`. Null if the class was not judged."""
    waits_for: Sequence[AwaitedVictim] = ()
    unit: int | None = None
    """Index in `units` of the group that the pod is placed with. Null if there is none."""


class PendingClass(msgspec.Struct, frozen=True):
    """Pods that are equal for all plugins, and are judged once."""

    pods: int
    first_pod: str
    """NAMESPACE/NAME of the oldest pod."""
    oldest: str
    """Time of creation of the oldest pod."""
    state: PendingState
    nodes: int
    fit: int
    plugin: str
    """The plugin that rejects most nodes. Empty if none does."""
    first_reason: str
    """The reason of that plugin."""
    message: str
    """The message in the form of kube-scheduler's Events."""
    reasons: Sequence[ReasonSummary]
    not_judged: Sequence[NotJudged]
    helps: Sequence[str]
    """The smallest remedies, at most 3. Each one alone lets a pod of the class fit. Empty if a pod fits already."""
    scheduler: SchedulerState | None = None
    """The same field as in the summary of an explanation."""


class PendingHead(msgspec.Struct, frozen=True):
    """The state of the mirror, and the rules that apply to the pods."""

    generation: int
    nodes: int
    standing: str
    """fresh, stale, or not synced"""
    problems: Sequence[str]


class PendingPods(PendingHead, frozen=True):
    """The pods that wait for a node, the oldest first."""

    pods: Sequence[PendingPod]
    classes: Sequence[PendingClass]
    units: Sequence[UnitStatus] = ()
    left_out: int = 0
    """Number of pods in namespaces that the caller may not see. They count in no class."""
    names_hidden: str = ""
    """Why names are hidden. Empty if all names are shown."""


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
    """Each pod with the index of its class in `judgements`, which has only the first MAX_CLASSES."""
    judgements: Sequence[PendingClass]
    """The classes as if each had no pod but its first."""
    mirror: MirrorState
    waits: VictimsByPod

    def namespaces(self, namespace: str | None) -> Iterator[str]:
        """Yield the namespaces of the pods, of one namespace or of all, of their victims, and of pods in remedies."""
        for pod, _ in self.pods:
            if namespace in {None, pod.namespace}:
                yield pod.namespace
                for victim in self.waits.get(pod.uid, ()):
                    if isinstance(victim.name, PodName):
                        yield from victim.name.namespaces()
        for judgement in self.judgements:
            for text in judgement.helps:
                if isinstance(text, PodText):
                    yield from text.namespaces()


class PendingView:
    """The pods, of one namespace or of all, that are still pending. Yields the pods, and then their classes.

    The pods are yielded one by one, so that the event loop can serve other requests in between: 20,000 take 40 ms.
    """

    def __init__(self, judged: JudgedPods, explainer: Explainer, now: float, namespace: str | None, sees: Sees) -> None:
        """`now` is the time of day, in seconds since 1970. Pods of namespaces that `sees` rejects are only counted."""
        state = judged.mirror
        self.head: Final = PendingHead(state.generation, state.nodes, state.standing, state.problems)
        self._judged = judged
        self._explainer = explainer
        self._now = now
        self._namespace = namespace
        self._sees = sees
        self.left_out = 0
        """Number of pods so far that the caller may not see."""
        self._members: dict[int, _Members] = {}  # index in the judgements -> pods, in the order of the first pods
        self.units: Final[list[UnitStatus]] = []
        self._unit_places: dict[tuple[str, object], int | None] = {}  # a pod's groups -> index in the units

    def pods(self) -> Iterator[PendingPod]:
        """Yield the pods, the oldest first."""
        mirror, judgements = self._explainer.mirror, self._judged.judgements
        for pod, place in self._judged.pods:
            if self._namespace not in {None, pod.namespace}:
                continue
            if pod.uid not in mirror.pending or mirror.is_assumed(pod.uid):
                continue  # the pod was bound after it was judged
            if not self._sees(pod.namespace):
                self.left_out += 1
                continue
            if place >= len(judgements):
                yield self._pending_pod(pod, None, PendingState.NO_REQUEST)
                continue
            members = self._members.get(place)
            if members is None:
                members = self._members[place] = _Members(len(self._members), pod)
            members.pods += 1
            yield self._pending_pod(pod, members.place, judgements[place].state)

    def classes(self) -> Iterator[PendingClass]:
        """Yield the classes of the reported pods."""
        for place, members in self._members.items():
            first = members.first
            yield replace(
                self._judged.judgements[place],
                pods=members.pods,
                first_pod=first.full_name,
                oldest=first.waiting.created,
            )

    def message(self) -> PendingPods:
        """Return pods and classes as one value."""
        head, pods = self.head, [*self.pods()]
        classes = [*self.classes()]
        parts = (pods, classes, self.units, self.left_out)
        return PendingPods(head.generation, head.nodes, head.standing, head.problems, *parts)

    def _unit_place(self, pod: Pod) -> int | None:
        key = (pod.scheduling_group, pod.group_key)
        if key not in self._unit_places:
            unit = self._explainer.unit_of(pod)
            self._unit_places[key] = None if unit is None else len(self.units)
            self.units.extend(() if unit is None else (unit,))
        return self._unit_places[key]

    def _pending_pod(self, pod: Pod, place: int | None, state: PendingState) -> PendingPod:
        waiting = pod.waiting
        condition = ScheduledCondition(waiting.reason, waiting.message, waiting.changed) if waiting.reason else None
        return PendingPod(
            pod=pod.full_name,
            uid=pod.uid,
            since=waiting.created,
            seconds=_seconds(waiting.created, self._now),
            scheduler=pod.scheduler_name,
            state=PendingState.GATED if waiting.gates else state,
            gates=waiting.gates,
            nominated_node=pod.nominated_node_name,
            condition=condition,
            place=place,
            waits_for=self._judged.waits.get(pod.uid, ()),
            unit=self._unit_place(pod),
        )


class PendingPodsExplainer:
    """Judges the pending pods, class by class, by all rules of explanations."""

    def __init__(
        self,
        explainer: Explainer,
        work: LongWork,
        now: Callable[[], float],
        *,
        waits: Callable[[], VictimsByPod] = dict,
    ) -> None:
        """`work` has the turn of the explainer. `now` is the time of day, in seconds since 1970.

        `waits` returns the victims that pods wait for.
        """
        self._explainer = explainer
        self._work = work
        self._now = now
        self._waits = waits
        self._classifiers: dict[object, Classifier] = {}
        """Judged profile -> its classifier."""

    async def judge(self) -> JudgedPods:
        """Judge all pending pods. Between two pieces requests of schedulers are served, and the mirror may change."""
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
                    await self._work.checkpoint()
        judgements: list[PendingClass] = []
        for first in islice(firsts, MAX_CLASSES):
            async with self._work.exclusive():
                judgements.append(self._judgement(first))
        return JudgedPods(pods, judgements, self._explainer.mirror_state(), self._waits())

    def view(self, judged: JudgedPods, namespace: str | None = None, sees: Sees = every_namespace) -> PendingView:
        """Return the pods, of one namespace or of all that `sees` allows, with their classes."""
        return PendingView(judged, self._explainer, self._now(), namespace, sees)

    async def _sorted_runs(self) -> list[list[tuple[str, str, str, Pod]]]:
        """Return the pending pods in several sorted lists, the oldest first. One sort of 20,000 would take 11 ms.

        Pods that are being deleted are left out: no scheduler places them.
        """
        mirror = self._explainer.mirror
        runs: list[list[tuple[str, str, str, Pod]]] = []
        waiting = iter([*mirror.pending])  # the pods may change between two pieces
        while pods := [*islice(waiting, _RUN)]:
            run = [
                (pod.waiting.created or _NEVER, pod.full_name, pod.uid, pod)
                for pod in pods
                if not (pod.terminating or mirror.is_assumed(pod.uid))
            ]
            run.sort()
            runs.append(run)
            if self._work.over:
                await self._work.checkpoint()
        return runs

    def _class_of(self, pod: Pod) -> tuple[object, ...]:
        # No filter reads the last two, but they determine which nominated pods count for the pod.
        apart = (pod.claims_resources, pod.in_scheduling_group, pod.priority, pod.nominated_node_name)
        explained = self._explainer.explained_of(pod)
        classifier = self._classifiers.get(explained.profile)
        if classifier is None:
            classifier = self._classifiers[explained.profile] = Classifier(explained.profile.plugins, "spec")
        return (*apart, explained.scheduler, classifier.key(self._explainer.mirror, pod))

    def _judgement(self, pod: Pod) -> PendingClass:
        try:
            return self._explainer.look_at(pod, _judgement)
        except TooMuchWorkError as error:
            nodes = len(self._explainer.mirror.nodes.slots)
            not_judged = [NotJudged("", str(error))]
            return PendingClass(0, "", "", PendingState.NOT_JUDGED, nodes, 0, "", "", "", (), not_judged, ())


_MAX_REMEDIES: Final = 3
_RUN: Final = 500
"""Pods that are sorted in one step, in 0.4 ms."""
_NEVER: Final = "9999"
"""Sorts after every RFC 3339 time, so that pods with an unknown time come last."""


def _judgement(decision: Diagnosis) -> PendingClass:
    reasons, fit = reasons_of(decision), len(decision.fitting)
    if decision.not_judged and (fit or not reasons):
        state = PendingState.NOT_JUDGED
    else:
        state = PendingState.FITS if fit else PendingState.UNSCHEDULABLE
    return PendingClass(
        pods=0,
        first_pod="",
        oldest="",
        state=state,
        nodes=len(decision.batch),
        fit=fit,
        plugin=reasons[0].plugin if reasons else "",
        first_reason=reasons[0].reason if reasons else "",
        message=fit_message(decision, reasons),
        reasons=reasons,
        not_judged=decision.not_judged,
        helps=[remedy.text for remedy in find_remedies(decision, _MAX_REMEDIES)],
        scheduler=decision.scheduler,
    )


def _seconds(created: str, now: float) -> float | None:
    """Return the seconds since a time. None for an unknown time."""
    try:
        return max(0.0, now - datetime.fromisoformat(created).timestamp())
    except ValueError:
        return None
