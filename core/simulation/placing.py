"""Places pods one after the other on a supposed cluster, each beside those before it, as kube-scheduler would.

Each pod gets the node with the highest exact sum among those that all filters of its profile pass. All known nodes are
judged, which is percentageOfNodesToScore: 100. Pods are supposed on their nodes (core/mirror/fork.py), with what the
Reserve step of kube-scheduler's plugins would assume for them. The equivalence cache follows.

The order of the pods is the caller's (core/simulation/orders.py). Alike pods that follow each other share an evaluation
and a rejection, so that order decides how long it takes: 0.15 to 0.25 ms for a pod of a known class at 5,000 nodes and
150,000 pods, and 0.8 to 1.2 ms for one of a new class.
"""

from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import islice
from typing import Final, NamedTuple, TypeAlias, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from core.framework.evaluation import Evaluation, FreshEvaluation
from core.framework.interface import Code, Verdicts
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.mirror.node_info import NodeBatch
from core.mirror.work import WorkLimitError
from core.objects.pod import DO_NOT_SCHEDULE, Pod
from core.preemption import NEVER, least_harm
from core.profile import Profile
from core.simulation.kinds import alike, kind_of
from core.simulation.one_pod import Choose, place_best

T = TypeVar("T")
R = TypeVar("R")
Steps: TypeAlias = Generator[None, None, T]
"""Work in steps, and its result. A caller that stops in between must leave the block of the fork, or suspend it."""


def in_turn(
    pods: Iterable[T], place: Callable[[T, R | None], R], stops: Callable[[R], bool] = lambda _: False
) -> Steps[list[R]]:
    """Place pods one after the other, up to one whose result stops it. It yields after each other one.

    This is the loop of simulations and of gangs. `place` gets a pod, and the result of the pod before it.
    """
    results: list[R] = []
    for pod in pods:
        results.append(place(pod, results[-1] if results else None))
        if stops(results[-1]):
            break
        yield
    return results


class Scheduler(NamedTuple):
    """The profile of a scheduler, and what evaluates pods by it, such as a cache that hears the mirror."""

    profile: Profile
    evaluate: Callable[[Pod], Evaluation]
    preempts: bool = True
    """Whether pods are preempted for one that fits nowhere."""
    of: "Callable[[Pod], Scheduler] | None" = None
    """Returns the scheduler by whose rules a pod of this name is judged. None: by these."""


Schedulers: TypeAlias = Mapping[str, Scheduler]
"""spec.schedulerName -> the scheduler. Pods of other schedulers are not judged."""
DEFAULT_SCHEDULER: Final = "default-scheduler"
"""The scheduler of a pod that names none."""


def scheduler_of(schedulers: Schedulers, pod: Pod) -> Scheduler | None:
    """Return the scheduler of a pod. None: its rules are not known."""
    found = schedulers.get(pod.scheduler_name or DEFAULT_SCHEDULER)
    return found if found is None or found.of is None else found.of(pod)


class Fate(Enum):
    """What becomes of a pod."""

    PLACED = "placed"
    UNSCHEDULABLE = "unschedulable"
    """No node fits."""
    BY_PREEMPTION = "byPreemption"
    """No node fits, but one would without less important pods. kube-scheduler begins at a random node, so another node
    and other victims are possible, and the victims may find no place. They stay in the simulation."""
    GATED = "gated"
    """It has scheduling gates, so that no scheduler tries it."""
    DENIED = "denied"
    """The API server does not make it; `why` has its reason."""
    UNKNOWN = "unknown"
    """It cannot be said; `why` has the reason."""


class Rejection(NamedTuple):
    """Why no node fits a pod, at its turn."""

    nodes: int
    """How many nodes were judged."""
    reasons: Mapping[str, int]
    """Reason -> number of nodes with it, most first, in the words of kube-scheduler."""


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What becomes of one pod, in the order of the placing."""

    pod: Pod
    """The pod: with its node if it is placed, else as it was passed."""
    fate: Fate
    node: str = ""
    """Where it is placed, or would be by preemption."""
    rejection: Rejection | None = None
    victims: Sequence[Pod] = ()
    """The pods that may be preempted for it, most important first."""
    why: str = ""
    """Why its fate is not known."""

    @property
    def is_placed(self) -> bool:
        """Whether it has a node."""
        return self.fate is Fate.PLACED


Found: TypeAlias = str | Outcome
"""The node of a pod that is placed, or the outcome of one that is not."""
_MOST_DRY_RUNS: Final = 20
"""Dry runs of preemption of one placing. One takes about 3 ms for each node."""
_NODES_OF_DRY_RUN: Final = 8


class Placing:
    """Places pods in a fork that the cache follows.

    Stale after the block of the fork. `barred` are nodes that no pod gets, though they stay what they are to the rules
    that count pods by domain.
    """

    def __init__(  # noqa: PLR0913  # where, by which rules, and what is wanted of it
        self,
        mirror: ClusterMirror,
        fork: Fork,
        schedulers: Schedulers,
        choose: Choose,
        *,
        barred: Iterable[str] = (),
        tries_preemption: bool = True,
    ) -> None:
        self._mirror = mirror
        self._fork = fork
        self._schedulers = schedulers
        self._choose = choose
        self._barred = frozenset(barred)
        self._dry_runs_left = _MOST_DRY_RUNS if tries_preemption else 0
        self._lowest: int | None = None  # priority of any pod, once it is needed
        self._seen: set[object] = set()  # owners and labels of pods that were evaluated
        self._last: Evaluation  # of the pod that was placed last
        self._kinds: dict[Hashable, int] = {}
        self._kind_of: dict[str, int] = {}  # by UID, of pods that were tried again
        self._batch: tuple[int, NodeBatch] | None = None  # NodeTable.epoch, and the nodes that may be chosen

    def place(self, pods: Sequence[Pod]) -> Steps[list[Outcome]]:
        """Place the pods as `in_brief`. Return all outcomes."""
        found = yield from self.in_brief(pods)
        return [self._outcome(pod, each) for pod, each in zip(pods, found, strict=True)]

    def _outcome(self, pod: Pod, found: Found) -> Outcome:
        if isinstance(found, Outcome):
            return found
        return Outcome(self._mirror.get_pod(pod.uid) or pod, Fate.PLACED, found)

    def in_brief(self, pods: Iterable[Pod]) -> Steps[list[Found]]:
        """Place the pods in this order, each of which may be made at its turn. It yields after each, to be stopped.

        Then those that others may help are tried again, until nothing changes: kube-scheduler tries a rejected pod
        again when a pod comes that satisfies its affinity, or that evens out its spread (isSchedulableAfterPodChange
        in interpodaffinity/plugin.go, isSchedulableAfterPodChange in podtopologyspread/plugin.go).
        """
        found = yield from self._in_turn(pods)
        left = {at: each for at, each in enumerate(found) if isinstance(each, Outcome) and self.may_be_helped(each.pod)}
        any_placed = any(isinstance(each, str) for each in islice(found, min(left, default=len(found)), None))
        while left and any_placed:
            later = yield from self.again([*left.values()])
            placed = {at: each.node for at, each in zip(left, later, strict=True) if each.is_placed}
            for at, node in placed.items():
                found[at] = node
                del left[at]
            any_placed = bool(placed)
        return found

    def again(self, rejected: Sequence[Outcome]) -> Steps[list[Outcome]]:
        """Try pods again that found no place. Those that still find none keep their outcomes.

        Of pods of one kind, one is tried: a drain tries 10,000 pods again in each round. Where it finds no place, those
        after it find none, unless a pod that may help them is placed in between. A pod with a claim of its own is like
        no other one.
        """
        left, self._dry_runs_left = self._dry_runs_left, 0
        tried: list[Outcome] = []
        hopeless, for_now = set[int](), set[int]()  # kinds
        for before in rejected:
            kind = self._kind(before.pod)
            if kind in hopeless or kind in for_now:
                tried.append(before)
                continue
            (now,) = yield from self._in_turn([before.pod])
            tried.append(self._outcome(before.pod, now) if isinstance(now, str) else before)
            if isinstance(now, str):
                for_now.clear()
            else:
                (for_now if self.may_be_helped(before.pod) else hopeless).add(kind)
        self._dry_runs_left = left
        return tried

    def may_be_helped(self, pod: Pod) -> bool:
        """Return whether another pod that is placed can let a pod fit."""
        scheduler = scheduler_of(self._schedulers, pod)
        return scheduler is not None and may_be_helped(pod, scheduler.profile)

    def may_help(self, placed: Pod, waiting: Pod) -> bool:
        """Return whether a pod that is placed can let one that waits fit. It may be placed where it does not.

        Source: isSchedulableAfterPodChange in interpodaffinity/plugin.go and podtopologyspread/plugin.go.
        """
        terms = waiting.affinity.required_affinity
        if terms and self._mirror.affinity.matches.selects_all([term.matcher for term in terms], placed):
            return True
        scheduler = scheduler_of(self._schedulers, waiting)
        if placed.namespace != waiting.namespace or scheduler is None:
            return False
        if not waiting.spread:
            return scheduler.profile.spreads_all  # which pods count follows from Services and controllers
        hard = (each for each in waiting.spread if each.when_unsatisfiable == DO_NOT_SCHEDULE)
        return any(each.selector.matches(placed.labels) for each in hard)

    def _kind(self, pod: Pod) -> int:
        """Return a number that only alike pods share."""
        found = self._kind_of.get(pod.uid)
        if found is None:
            key = pod.waiting.gates, kind_of(self._mirror.counted(pod))
            found = self._kind_of[pod.uid] = self._kinds.setdefault(key, len(self._kinds))
        return found

    def _in_turn(self, pods: Iterable[Pod]) -> Steps[list[Found]]:
        def found(turn: tuple[Pod, bool, bool], before: Found | None) -> Found:
            pod, repeats, more = turn
            if repeats and isinstance(before, Outcome):
                return replace(before, pod=pod)
            return self._placed(pod, repeats=repeats, more=more)

        return in_turn(_turns(pods), found)

    def _placed(self, pod: Pod, *, repeats: bool, more: bool) -> Found:
        scheduler = scheduler_of(self._schedulers, pod)
        why = why_unknown(self._mirror, pod, scheduler, self.nodes())
        if scheduler is None or why:
            return Outcome(pod, Fate.UNKNOWN, why=why)
        if pod.waiting.gates:
            return Outcome(pod, Fate.GATED)
        self._mirror.work.spent = 0  # of this pod alone, though alike pods share an evaluation
        try:
            if not repeats or pod.nominated_node_name:  # else the pod would count as nominated beside itself
                self._last = self._evaluation(scheduler, pod, more=more and not repeats)
            node = place_best(self._fork, pod, scheduler.profile, self._last, self.nodes(), choose=self._choose)
        except WorkLimitError as error:
            return Outcome(pod, Fate.UNKNOWN, why=str(error))
        if isinstance(node, str):
            return node
        return self._rejected(scheduler, pod, self.nodes(), node)

    def _evaluation(self, scheduler: Scheduler, pod: Pod, *, more: bool) -> Evaluation:
        """Return the evaluation of a pod, of which `more` alike ones come next.

        A pod that is alone is evaluated afresh, as the cache's rows of a new class take almost as long again.
        """
        key = pod.namespace, pod.controller, frozenset(pod.labels.items())
        if not more and key not in self._seen:
            self._seen.add(key)
            return FreshEvaluation(self._mirror, pod)
        self._seen.add(key)
        evaluation = scheduler.evaluate(pod)
        if more:  # the ranking is made at the second call, which is then the one for this pod
            profile = scheduler.profile.under(self._mirror.rules)
            evaluation.best(profile.filters, profile.scores, self.nodes())
        return evaluation

    def nodes(self) -> NodeBatch:
        """Return the nodes that may be chosen: the same batch while no node comes or goes, as rankings are of one."""
        epoch = self._mirror.nodes.epoch
        if self._batch is None or self._batch[0] != epoch:
            batch = self._mirror.all_nodes()
            slots = [slot for name in self._barred if (slot := self._mirror.nodes.slots.get(name)) is not None]
            if slots:
                batch = NodeBatch.of_slots(self._mirror.nodes, batch.slots[~np.isin(batch.slots, slots)])
            self._batch = epoch, batch
        return self._batch[1]

    def _rejected(self, scheduler: Scheduler, pod: Pod, batch: NodeBatch, verdicts: Verdicts) -> Outcome:
        node, victims = self._victims(scheduler, pod, batch, verdicts)
        fate = Fate.BY_PREEMPTION if victims else Fate.UNSCHEDULABLE
        return Outcome(pod, fate, node, Rejection(len(batch), reasons_of(verdicts)), victims)

    def _victims(
        self, scheduler: Scheduler, pod: Pod, batch: NodeBatch, verdicts: Verdicts
    ) -> tuple[str, Sequence[Pod]]:
        """Return the node of a few on which preemption does the least harm, and its victims. None: no node."""
        if pod.preemption_policy == NEVER or not scheduler.preempts or self._dry_runs_left <= 0:
            return "", ()
        if self._lowest is None:
            self._lowest = min((each.priority for _, each in self._mirror.pods.placed_alike()), default=pod.priority)
        if self._lowest >= pod.priority:
            return "", ()
        self._dry_runs_left -= 1
        helped = [code for code, status in enumerate(verdicts.statuses) if status.code is Code.UNSCHEDULABLE]
        names = (batch.names[at] for at in np.flatnonzero(np.isin(verdicts.codes, helped)).tolist())
        tried: list[str] = []
        for name in names:
            if any(each.priority < pod.priority for each in self._mirror.pods_on(name)):
                tried.append(name)
                if len(tried) == _NODES_OF_DRY_RUN:
                    break
        return least_harm(self._mirror, scheduler.profile.under(self._mirror.rules).filters, pod, tried)


def _turns(pods: Iterable[Pod]) -> Iterator[tuple[Pod, bool, bool]]:
    """Yield each pod, whether it is like the one before it, and whether the next one is like it."""
    left = iter(pods)
    pod, repeats = next(left, None), False
    while pod is not None:
        after = next(left, None)
        more = after is not None and alike(pod, after)
        yield pod, repeats, more
        pod, repeats = after, more


def may_be_helped(pod: Pod, profile: Profile) -> bool:
    """Return whether another pod that is placed can let a pod fit."""
    return bool(pod.affinity.required_affinity) or profile.keeps_services_together or is_spread(pod, profile)


def is_spread(pod: Pod, profile: Profile) -> bool:
    """Return whether topology spread may keep a pod off a node, by its own constraints or by a profile's default."""
    if pod.spread:
        return any(each.when_unsatisfiable == DO_NOT_SCHEDULE for each in pod.spread)
    return profile.spreads_all


def why_unknown(mirror: ClusterMirror, pod: Pod, scheduler: Scheduler | None, nodes: NodeBatch) -> str:
    """Return why it cannot be said on which of the nodes a pod goes, by its scheduler. Empty if it can."""
    if scheduler is None:
        return f"its scheduler {pod.scheduler_name or DEFAULT_SCHEDULER} has no known profile"
    if pod.in_scheduling_group:
        return "kube-scheduler places it with the other pods of its group"
    filters = scheduler.profile.filters if pod.demand.extended_requests else ()
    claims = pod.claims_resources or any(each.left_to_devices(mirror, pod, nodes) for each in filters)
    return "it claims devices" if claims else ""


def reasons_of(verdicts: Verdicts) -> Mapping[str, int]:
    """Return reason -> number of nodes with it, most first, then in alphabetical order."""
    numbers = np.bincount(verdicts.codes, minlength=len(verdicts.statuses)).tolist()
    found: Counter[str] = Counter()
    for status, number in zip(verdicts.statuses, numbers, strict=True):
        for reason in status.reasons if number else ():
            found[reason] += number
    return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))


def finished(steps: Steps[T], after_each: Callable[[], object] = lambda: None) -> T:
    """Take all steps, call something after each of them, and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        after_each()
