"""Places the members of a gang on the mirror in one step: all of them, or none.

Each member is assumed for real, so that the next one is judged beside it, by the filters and the exact weighted sums of
any decision and from the equivalence cache. If one member fits nowhere, all that was assumed is forgotten. Nothing is
awaited in between, so no other decision sees a part of a gang.

The classes of members go in the order of how many nodes fit them, the fewest first. Where another order or other nodes
could do better, a search back follows:

- Members of one class are interchangeable, so each set of places is tried once, whichever member takes which.
- Members that only take room away from each other are tried in one order. With required affinity or hard topology
  spread, a member can make room for another one, and all orders are tried.
- It ends after a number of steps (`steps_for`). A step places one member.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace

from core.framework.evaluation import Evaluation, weighted_sums
from core.framework.interface import Verdicts
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import IntpArray
from core.objects.pod import Pod
from core.objects.topology_spread import DO_NOT_SCHEDULE
from core.objects.waiting import NOT_WAITING
from core.profile import Profile
from core.scheduling_cycle import choose_nodes, filter_nodes

_MOST_STEPS: Final = 2_000
_FEWEST_STEPS: Final = 100
_NODES_OF_ALL_STEPS: Final = 500_000

Evaluate: TypeAlias = Callable[[Pod], Evaluation]
Choose: TypeAlias = Callable[[NodeBatch, IntpArray], int]
"""Takes one of the best nodes, given as positions in the batch."""


class Shortfall(NamedTuple):
    """Why a gang does not fit: the first member without a node, when so many others had one."""

    placed: int
    wanted: int
    pod: Pod
    verdicts: Verdicts
    is_proved: bool
    """Whether there is no placement of these members at all. Else the search was left out, or ended at its bound."""


class _Class(NamedTuple):
    """Members that are alike in all that decides where they can go."""

    pods: list[Pod]
    nodes: NodeBatch | None
    """The nodes that may be chosen; None: all."""

    @property
    def may_need_others(self) -> bool:
        """Whether another member can make a node fit."""
        return bool(self.pods[0].affinity.required_affinity) or _has_hard_spread(self.pods[0])


class _Trial:
    """The members that have a node so far."""

    def __init__(self, mirror: ClusterMirror, now: float) -> None:
        self.nodes: dict[str, str] = {}  # uid -> node, in the order of placing
        self._mirror = mirror
        self._now = now

    def assume(self, pod: Pod, node: str) -> None:
        self._mirror.assume(pod, node, self._now)
        self.nodes[pod.uid] = node

    def undo(self) -> None:
        """Take back the last one."""
        uid, _ = self.nodes.popitem()
        self._mirror.forget(uid)

    def undo_all(self) -> None:
        while self.nodes:
            self.undo()


def steps_for(nodes: int) -> int:
    """Return how many steps a search back may take in a cluster of so many nodes; about 0.1 s at 5,000."""
    return max(_FEWEST_STEPS, min(_MOST_STEPS, _NODES_OF_ALL_STEPS // max(nodes, 1)))


class Placer:
    """Places one gang at a time."""

    def __init__(self, mirror: ClusterMirror, profile: Profile, evaluate: Evaluate, choose: Choose) -> None:
        """Judge by the plugins of a profile; `choose` takes one of equally good nodes."""
        self._mirror = mirror
        self._profile = profile
        self._evaluate = evaluate
        self._choose = choose

    def place(
        self, members: Sequence[Pod], now: float, *, of_first: NodeBatch | None = None, max_steps: int = 0
    ) -> Mapping[str, str] | Shortfall:
        """Assume all members, which are pending, and return uid -> node; or assume none, and return why.

        The first member goes to one of `of_first`, if that is given. The search back takes at most `max_steps`. Raises
        WorkLimitError for a member that takes too much work; then nothing is assumed.
        """
        trial = _Trial(self._mirror, now)
        try:
            classes = self._ordered(_classes(members, of_first))
            shortfall = self._greedy(trial, classes, len(members))
            if shortfall is None:
                return dict(trial.nodes)
            trial.undo_all()
            if _greedy_is_exact(classes):
                return shortfall._replace(is_proved=True)
            found = self._search(trial, classes, max_steps)
            if found:
                return dict(trial.nodes)
            trial.undo_all()
            return shortfall._replace(is_proved=found is False)
        except BaseException:
            trial.undo_all()
            raise

    def fits(self, pod: Pod, node: str) -> bool:
        """Tell whether a pod that is not in the mirror fits a node now."""
        batch = self._mirror.batch([node])
        return not batch.strangers and not filter_nodes(self._profile, self._evaluate(pod), batch).codes[0]

    def _nodes(self, each: _Class) -> NodeBatch:
        return each.nodes if each.nodes is not None else self._mirror.all_nodes()

    def _ordered(self, classes: list[_Class]) -> list[_Class]:
        """Return the classes that fit the fewest nodes first; one that waits for another to make it fit goes last."""
        if len(classes) == 1:
            return classes
        fitting = {}
        for each in classes:
            verdicts = filter_nodes(self._profile, self._evaluate(each.pods[0]), self._nodes(each))
            nodes = int(np.count_nonzero(verdicts.codes == 0))
            fitting[id(each)] = (each.may_need_others and not nodes, nodes)
        return sorted(classes, key=lambda each: fitting[id(each)])

    def _greedy(self, trial: _Trial, classes: Sequence[_Class], wanted: int) -> Shortfall | None:
        """Give each member the best node that is left; return the first member for which there is none."""
        for each in classes:
            for pod in each.pods:
                batch = self._nodes(each)
                best, verdicts = choose_nodes(self._profile, self._evaluate(pod), batch)
                if verdicts is not None and not len(best):
                    return Shortfall(len(trial.nodes), wanted, pod, verdicts, is_proved=False)
                chosen = int(best[0]) if len(best) == 1 else self._choose(batch, best)
                trial.assume(pod, batch.names[chosen])
        return None

    def _search(self, trial: _Trial, classes: Sequence[_Class], max_steps: int) -> bool | None:
        """Place all members by trying everything; return whether that is possible, None: the steps did not suffice."""
        search = _Search(trial, classes, self._candidates)
        for _ in range(max_steps):
            if not search.step():
                return False
            if search.is_done:
                return True
        return None

    def _candidates(self, each: _Class, pod: Pod) -> list[str]:
        """Return the nodes that fit, the best first."""
        batch = self._nodes(each)
        evaluation = self._evaluate(pod)
        fitting = (filter_nodes(self._profile, evaluation, batch).codes == 0).nonzero()[0]
        if not len(fitting):
            return []
        part = batch.part(fitting)
        sums = weighted_sums(self._profile.under(self._mirror.rules).scores, evaluation, part)
        return [part.names[place] for place in np.argsort(-sums, kind="stable").tolist()]


class _Search:
    """A search in depth over the places of members, which goes back where a member has none."""

    def __init__(
        self, trial: _Trial, classes: Sequence[_Class], candidates: Callable[[_Class, Pod], list[str]]
    ) -> None:
        self._trial = trial
        self._classes = classes
        self._candidates = candidates
        self._in_any_order = any(each.may_need_others for each in classes)
        self._members = sum(len(each.pods) for each in classes)
        self._taken = [0] * len(classes)  # members of each class that have a node
        self._path: list[tuple[int, str]] = []  # (class, node) of each member that has one
        self._seen: set[frozenset[tuple[tuple[int, str], int]]] = set()
        self._moves = [self._possible()]

    @property
    def is_done(self) -> bool:
        """Whether all members have a node."""
        return len(self._path) == self._members

    def step(self) -> bool:
        """Place one more member, after going back as far as need be; False: there is nothing left to try."""
        while self._moves:
            move = next(self._moves[-1], None)
            if move is None:
                self._go_back()
                continue
            state = frozenset(Counter([*self._path, move]).items())
            if state in self._seen:
                continue
            self._seen.add(state)
            place, node = move
            self._trial.assume(self._classes[place].pods[self._taken[place]], node)
            self._taken[place] += 1
            self._path.append(move)
            self._moves.append(self._possible())
            return True
        return False

    def _go_back(self) -> None:
        self._moves.pop()
        if self._path:
            place, _ = self._path.pop()
            self._taken[place] -= 1
            self._trial.undo()

    def _possible(self) -> Iterator[tuple[int, str]]:
        """Yield what can be done next; between two of them, the mirror is brought back to what it was."""
        left = [place for place, each in enumerate(self._classes) if self._taken[place] < len(each.pods)]
        for place in left if self._in_any_order else left[:1]:
            each = self._classes[place]
            for node in self._candidates(each, each.pods[self._taken[place]]):
                yield place, node


def _classes(members: Sequence[Pod], of_first: NodeBatch | None) -> list[_Class]:
    """Sort members into classes; the first one is alone where it has nodes of its own."""
    found: dict[Hashable, _Class] = {}
    for number, pod in enumerate(members):
        nodes = of_first if number == 0 else None
        key = (nodes is None, _class_key(pod))
        if key not in found:
            found[key] = _Class([], nodes)
        found[key].pods.append(pod)
    return [*found.values()]


def _class_key(pod: Pod) -> Hashable:
    """Return what decides where a pod can go, and what it does to others."""
    labels, requests = tuple(sorted(pod.labels.items())), tuple(sorted(pod.requests.items()))  # which have a hash
    return replace(
        pod,
        uid="",
        name="",
        labels=labels,
        requests=requests,
        resource_version="",
        start_time="",
        waiting=NOT_WAITING,
        resources=None,
    )


def _greedy_is_exact(classes: Sequence[_Class]) -> bool:
    """Tell whether nodes for fewer members are found than wanted only if there are no more.

    Alike members that only take room away from each other, node by node or domain by domain of one topology key, find
    as many nodes in any order.
    """
    if len(classes) > 1 or classes[0].may_need_others:
        return False
    return len({term.topology_key for term in classes[0].pods[0].affinity.required_anti_affinity}) <= 1


def _has_hard_spread(pod: Pod) -> bool:
    return any(each.when_unsatisfiable == DO_NOT_SCHEDULE for each in pod.spread)
