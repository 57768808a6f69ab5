"""The search for remedies: it tries proposals of each kind until one helps, within bounds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain, groupby
from typing import Final

import numpy as np
from msgspec.structs import replace

from core.diagnosis.diagnosis import Diagnosis, RecordedEvaluation
from core.diagnosis.remedies.departures import Departures
from core.diagnosis.remedies.new_nodes import more_nodes
from core.explaining.claim_steps import LowerCapacity, LowerCount
from core.explaining.decision import Decision
from core.explaining.obstacles import MAX_STEPS, NEAREST, Obstacles, Proposal, Search, Turn
from core.explaining.owners import Way, made_again
from core.explaining.pod_names import PodText
from core.explaining.pod_steps import Changing, Kind, LowerRequest, TolerateTaint
from core.explaining.remedy import CONTROL_PLANE, RemakePod, Remedy, RemovePod, Step
from core.explaining.requirements import required_keys
from core.mirror.fork import Fork, ForkError
from core.mirror.work import WorkLimitError
from core.objects.pod import Pod
from core.scheduling_cycle import filter_nodes
from core.simulation.one_pod import fits_any, place_on

MAX_TRIALS: Final = 48
"""How many evaluations one search may make. Most judge one node, and take about 0.3 ms."""
MAX_UNITS: Final = 30_000_000
"""Units of work (core/mirror/work.py) for one search. Ordinary pods are charged almost none."""
_PER_KIND: Final = 2
"""How many remedies of one kind are reported."""
_FAILURES: Final = 4
"""After this many proposals of one kind that did not help, the search continues with the next kind."""

_OF_KIND: Final[Mapping[Kind, int]] = {
    Kind.LOWER_REQUESTS: 0,
    Kind.REPAIR_NODE: 15,
    Kind.UNCORDON_NODE: 20,
    Kind.CORRECT_REQUIREMENTS: 5,
    Kind.SELECT_NAMESPACE: 22,
    Kind.HONOR_POLICY: 22,
    Kind.MATCH_REVISION: 26,
    Kind.TOLERATE_TAINTS: 30,
    Kind.RAISE_MAX_SKEW: 30,
    Kind.CHANGE_TOPOLOGY_KEY: 34,
    Kind.CHANGE_DEVICE_CLASS: 34,
    Kind.PREFER_TERMS: 40,
    Kind.RELAX_SPREAD: 40,
    Kind.RUN_POD: 50,
    Kind.DROP_REQUIREMENTS: 50,
    Kind.LABEL_NODE: 58,
    Kind.COMBINED: 50,
    Kind.REMOVE_POD: 60,
    Kind.REMAKE_POD: 60,
    Kind.ADD_NODE: 80,
}
_OF_MORE_STEPS: Final = 20
_OF_WHOLE_REQUEST: Final = 100
_OF_FORBIDDEN_EVICTION: Final = 30
_OF_WAY: Final[Mapping[Way, int]] = {Way.DELETED: 0, Way.SCALED_DOWN: 5, Way.OWNER_ENDS: 5, Way.ROLLED_OVER: -25}
"""Cost of the way in which a pod leaves, beyond that of a pod without an owner. A rolling update loses no pod."""
_BY_ITSELF: Final[Mapping[Way, int]] = {Way.PREEMPTED: 4, Way.TERMINATES: 5}
"""Cost of waiting for what happens without anybody."""
_OF_CONTROL_PLANE: Final = 35
"""Cost of tolerating a taint of the control plane, for a pod that does not ask for such nodes."""

_NAMES_NODE: Final = frozenset({Kind.REPAIR_NODE, Kind.UNCORDON_NODE, Kind.LABEL_NODE, Kind.ADD_NODE})
"""Kinds whose steps name the node on which the pod then fits."""


class Trials:
    """Makes trials, and counts how many one search may still make. Stale after the next event."""

    def __init__(self, decision: Diagnosis) -> None:
        self._decision: Final = decision
        self._pod: Final = decision.mirror.counted(decision.pod)
        self._everywhere: Final = decision.batch.part(decision.known)  # no step changes the slot of these nodes
        self._left = MAX_TRIALS
        self._units = MAX_UNITS

    @property
    def are_left(self) -> bool:
        """Whether another trial may be made."""
        return self._left > 0 and self._units > 0

    def fitting(self, steps: Sequence[Step], node: str | None = None) -> str | None:
        """Return a node on which the pod fits after the steps: `node`, or else the first known node of the decision.

        Returns None if there is no such node, or if the steps cannot be supposed. Also returns None if the changed pod
        takes too much work, or if no trials are left. A node that a plugin could not judge does not count as fitting.
        """
        if not self.are_left:
            return None
        self._left -= 1
        mirror = self._decision.mirror
        with mirror.work.apart(), mirror.fork() as fork:
            try:
                changed = reduce(lambda pod, step: step.changed(pod), steps, self._pod)
                for step in steps:
                    step.apply(mirror, fork)
                if not all(self._remade(step, changed, fork) for step in steps if isinstance(step, RemakePod)):
                    return None
                batch = self._everywhere if node is None else mirror.batch([node])
                evaluation = RecordedEvaluation(mirror, changed)
                verdicts = filter_nodes(self._decision.profile, evaluation, batch)
            except (ForkError, WorkLimitError):
                return None
            finally:
                self._units -= mirror.work.spent
        states = ((each, evaluation.states.get(each.name)) for each in self._decision.profile.explained)
        unknown = {name for each, state in states if state is not None for name in each.undecided(state)}
        fitting = (batch.names[position] for position in np.flatnonzero(verdicts.codes == 0).tolist())
        return next((name for name in fitting if name not in unknown), None)

    def _remade(self, step: RemakePod, changed: Pod, fork: Fork) -> bool:
        """Suppose that a sibling is made again like the changed pod, on its node. Return whether it fits there."""
        mirror, profile = self._decision.mirror, self._decision.profile
        stored = mirror.get_pod(step.uid)
        if stored is None:
            return False
        fork.remove(stored)
        made = replace(stored, affinity=changed.affinity)
        if not fits_any(mirror, profile, made, mirror.batch([step.node])):
            return False
        place_on(mirror, fork, profile, made, step.node)
        return True


def find_remedies(decision: Diagnosis, limit: int) -> Sequence[Remedy]:
    """Return up to `limit` of the smallest changes. Each change alone lets the pod fit on a node.

    If the pod already fits on a node, there are none. Each remedy has been tried: filter_nodes passes the node for the
    changed pod, over the mirror with the change supposed.

    While trials are left, each remedy is the smallest of its kind. With one unit more of a single lowered request, or
    without any one of several steps, the pod fits on no known node. A removed pod is the smallest on its node that
    helps, of the four smallest candidates. Combined remedies are searched only if no single step, and no steps of one
    kind, help, except for the removal of a pod or a new node. The remedies are roughly ordered by the size of the
    change. Stale after the next event.
    """
    if not limit or len(decision.fitting) or not len(decision.known):
        return ()
    plugins = decision.profile.explained
    trials, obstacles = Trials(decision), _obstacles(decision)
    departures = Departures(obstacles, plugins)
    preempted = Search(Turn.WAIT, lambda _: departures.preempted(decision.profile.filters))
    searches = [
        *(each for plugin in plugins for each in plugin.remedies.searches),
        *([preempted] if decision.explained.preempts else ()),
        Search(Turn.WAIT, lambda _: departures.ending()),
    ]
    found = []
    for _, of_turn in groupby(sorted(searches, key=lambda each: each.turn), lambda each: each.turn):
        alike = [*of_turn]
        found += _tried(chain.from_iterable(each.proposals(obstacles) for each in alike), trials, alike[0].most)
    if not found:
        found += _tried(combine(obstacles), trials, most=1)
    found += _nodes_added(decision, trials)
    gone: list[Remedy] = []
    for proposals in departures.gone():
        new = (each for each in proposals if not any(_alike(other.steps, each.steps) for other in gone))
        gone += _tried(new, trials, most=1)
        if len(gone) >= _PER_KIND:
            break
    found = sorted([*found, *gone], key=lambda each: (cost(decision, each.kind, each.steps), each.node, each.text))
    return [replace(each, then=_then(decision, each.steps)) for each in found[:limit]]


def _obstacles(decision: Diagnosis) -> Obstacles:
    by_nominated = {position: each.failure.plugin for position, each in decision.rejected_with_nominated.items()}
    fixes = {each.name: each.remedies.fix for each in decision.profile.explained if each.remedies.fix}
    return Obstacles(decision, [plugin.name for plugin in decision.profile.filters], by_nominated, fixes)


def _then(decision: Diagnosis, steps: Sequence[Step]) -> str:
    """Return how the pod is made again with the steps that change it. Empty if it is only asked about."""
    changing = [step for step in steps if type(step).changed is not Changing.changed]
    if decision.pod.controller is None:  # a toleration can be added to the pod itself
        changing = [step for step in changing if not isinstance(step, TolerateTaint)]
    return made_again(decision.pod) if changing and decision.pod.uid in decision.mirror.pending else ""


def _alike(some: Sequence[Step], others: Sequence[Step]) -> bool:
    """Return whether two removals are the same, or change the same owner in the same way."""
    (one,), (other,) = some, others
    if not isinstance(one, RemovePod) or not isinstance(other, RemovePod) or not one.owner:
        return one == other
    return (one.way, one.owner, one.owner_kind) == (other.way, other.owner, other.owner_kind)


def _tried(proposals: Iterable[Proposal], trials: Trials, most: int = _PER_KIND) -> list[Remedy]:
    found: list[Remedy] = []
    failures = 0
    for each in proposals:
        if len(found) >= most or failures >= _FAILURES or not trials.are_left:
            break
        node = trials.fitting(each.steps, each.node)
        if node is None:
            failures += 1
            continue
        remedy = _remedy(*_least(each.steps, node, trials))
        if all(other.steps != remedy.steps for other in found):
            found.append(remedy)
    return found


def _least(steps: Sequence[Step], node: str, trials: Trials) -> tuple[Sequence[Step], str]:
    """Return the steps without the unnecessary ones, and a node on which the pod fits after them."""
    left = [*steps]
    for step in steps:
        fewer = [each for each in left if each is not step]
        elsewhere = trials.fitting(fewer) if fewer else None
        if elsewhere is not None:
            left, node = fewer, elsewhere
    return left, node


def _nodes_added(decision: Diagnosis, trials: Trials) -> list[Remedy]:
    """Return the remedy of one more node, with the other zones in which it would also help, or nothing.

    Only the first kind of node that helps is reported: nodes of one size may differ in some label each.
    """
    for added in more_nodes(decision):
        helping = [step for step in added if trials.fitting([step], step.name)]
        if helping:
            step = replace(helping[0], zones=tuple(each.zone for each in helping[1:]))
            return [_remedy([step], step.name)]
    return []


def _remedy(steps: Sequence[Step], node: str) -> Remedy:
    kinds = {step.kind for step in steps if not isinstance(step, RemakePod)}
    kind = kinds.pop() if len(kinds) == 1 else Kind.COMBINED
    texts = [piece for step in steps for piece in (", and ", step.text)][1:]
    where = "" if kind in _NAMES_NODE else f" (then it fits on {node})"
    return Remedy(kind, node, steps, PodText(*texts, where))


def combine(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose all necessary steps on the nodes that the fewest plugins reject, if a step exists for each plugin."""
    positions = obstacles.only(obstacles.fixes)
    nearest = positions[np.argsort(obstacles.number[positions], kind="stable")][:NEAREST]
    proposals = []
    for position in nearest.tolist():
        parts = [obstacles.fixes[plugin](obstacles, position) for plugin in obstacles.of(position)]
        steps = [step for part in parts for step in part or ()]
        if all(part is not None for part in parts) and 0 < len(steps) <= MAX_STEPS:
            proposals.append(Proposal(obstacles.decision.batch.names[position], steps))
    yield from sorted(proposals, key=lambda each: cost(obstacles.decision, Kind.COMBINED, each.steps))


def cost(decision: Decision, kind: Kind, steps: Sequence[Step]) -> int:
    """Return the cost of the steps: of the kind, of each step after the first, and of the reduced share of requests."""
    found = _OF_KIND[kind] + _OF_MORE_STEPS * (len(steps) - 1)
    requests = decision.mirror.counted(decision.pod).requests
    for step in steps:
        if isinstance(step, LowerRequest):
            found += _OF_WHOLE_REQUEST * step.by // max(requests.get(step.resource, 0), 1)
        elif isinstance(step, LowerCount | LowerCapacity):
            found += _OF_WHOLE_REQUEST * step.by // (step.by + step.to)
        elif isinstance(step, TolerateTaint):
            found += _OF_CONTROL_PLANE * (step.key in CONTROL_PLANE - required_keys(decision.pod))
        elif isinstance(step, RemovePod) and step.way in _BY_ITSELF:
            return _BY_ITSELF[step.way]
        elif isinstance(step, RemovePod):
            harder = _OF_MORE_STEPS * (step.max_unavailable > 1)
            found += _OF_FORBIDDEN_EVICTION * bool(step.budgets) + _OF_WAY[step.way] + harder
    return found
