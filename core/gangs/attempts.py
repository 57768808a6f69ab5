"""One attempt to place the members of a gang: each gets its best node in turn; if that fails, a search backtracks.

An attempt is a generator. It yields after each step, so that the caller can pause it (core/gangs/placing.py). After a
step the mirror may have changed, but not its nodes. The fork is the same.

- Members of one class are interchangeable. So the search tries each set of places once, in whichever order.
- Members that only take capacity from each other are tried in one order. With required affinity or hard topology
  spread, a member can make a node fit another member, so all orders are tried.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from core.framework.evaluation import Evaluation, FreshEvaluation, weighted_sums
from core.framework.interface import AnyFilter, Verdicts
from core.framework.invalidation import Scope
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.mirror.node_info import NodeBatch
from core.mirror.topology import BoolArray
from core.objects.node import HOSTNAME
from core.objects.pod import Pod
from core.profile import Profile
from core.scheduling_cycle import filter_nodes
from core.simulation.kinds import kind_of
from core.simulation.one_pod import Choose, fits_any, place_best, place_on
from core.simulation.placing import Steps, in_turn, may_be_helped

NOT_JUDGED: Final[BoolArray] = np.zeros(0, np.bool_)


class MemberClass(NamedTuple):
    """Members with the same values of all fields that decide where they can go."""

    pods: list[Pod]
    nodes: NodeBatch | None
    """The nodes that may be chosen; None: all."""
    may_need_others: bool = False
    """Whether another member can make a node fit this one."""
    fitting: BoolArray = NOT_JUDGED
    """Slot -> whether its node may be chosen and fits while no member has a node; from `Attempts.ordered`."""

    def within(self, nodes: NodeBatch) -> "MemberClass":
        """Return the class with the nodes that are in both batches. `nodes` are nodes of the mirror."""
        if self.nodes is None:
            return self._replace(nodes=nodes)
        return self._replace(nodes=nodes.part(np.flatnonzero(np.isin(nodes.slots, self.nodes.slots))))


_END: Final = (-1, "")


class Search:
    """Depth-first search over the places of members, with backtracking."""

    def __init__(self, attempts: "Attempts", fork: Fork, classes: Sequence[MemberClass]) -> None:
        """Place the members in a fork that the cache follows; none of them has a node."""
        self._attempts = attempts
        self._fork = fork
        self._classes = classes
        self._in_any_order = any(each.may_need_others for each in classes)
        self._members = sum(len(each.pods) for each in classes)
        self._taken = [0] * len(classes)  # members of each class that have a node
        self._path: list[tuple[int, str]] = []  # (class, node) of each member that has one
        self._savepoints: list[int] = []  # of the fork, before each member of the path
        self._seen: set[frozenset[tuple[tuple[int, str], int]]] = set()
        self._moves = [self._possible()]

    @property
    def is_done(self) -> bool:
        """Whether all members have a node."""
        return len(self._path) == self._members

    def step(self) -> bool | None:
        """Place one more member, after backtracking as far as needed. False: no placement is left to try.

        None: there was no node for a member, and other members come next.
        """
        while self._moves:
            move = next(self._moves[-1], _END)
            if move is None:
                return None
            if move is _END:
                self._go_back()
                continue
            state = frozenset(Counter([*self._path, move]).items())
            if state in self._seen:
                continue
            self._seen.add(state)
            place, node = move
            self._savepoints.append(self._fork.savepoint())
            self._attempts.place_on(self._fork, self._classes[place].pods[self._taken[place]], node)
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
            self._fork.revert_to(self._savepoints.pop())

    def _possible(self) -> Iterator[tuple[int, str] | None]:
        """Yield the possible next moves, and None after those of a class.

        The caller must restore the mirror before it takes the next move.
        """
        left = [place for place, each in enumerate(self._classes) if self._taken[place] < len(each.pods)]
        for place in left if self._in_any_order else left[:1]:
            each = self._classes[place]
            for node in self._attempts.candidates(each, each.pods[self._taken[place]]):
                yield place, node
            yield None


def classes_of(members: Sequence[Pod], of_first: NodeBatch | None, profile: Profile) -> list[MemberClass]:
    """Sort members into classes. If the first member has nodes of its own, it is a class of its own."""
    found: dict[Hashable, MemberClass] = {}
    for number, pod in enumerate(members):
        nodes = of_first if number == 0 else None
        key = (nodes is None, kind_of(pod))
        if key not in found:
            found[key] = MemberClass([], nodes, may_be_helped(pod, profile))
        found[key].pods.append(pod)
    return [*found.values()]


def take_room_alone(classes: Sequence[MemberClass]) -> bool:
    """Return whether no member has a rule about pods that keeps another one from a node, except its own node."""
    return not any(
        each.may_need_others or each.pods[0].affinity.required_anti_affinity or each.pods[0].volumes for each in classes
    )


def greedy_is_exact(classes: Sequence[MemberClass]) -> bool:
    """Return whether a greedy attempt finds nodes for as many members as any other placement.

    This holds for alike members that only take capacity from each other, node by node or domain by domain of one
    topology key. The order of such members does not change how many of them get a node.
    """
    if len(classes) > 1 or classes[0].may_need_others:
        return False
    return len({term.topology_key for term in classes[0].pods[0].affinity.required_anti_affinity}) <= 1


def _other_nodes_decide(pod: Pod) -> bool:
    """Return whether a rule of a pod keeps it from a node for what is on other nodes."""
    wide = any(term.topology_key != HOSTNAME for term in pod.affinity.required_anti_affinity)
    return wide or bool(pod.volumes) or pod.claims_resources


Evaluate: TypeAlias = Callable[[Pod], Evaluation]

_FEW_NODES: Final = 16
"""In clusters of up to so many nodes, a fresh evaluation takes less time than the cells of the cache."""


class Shortfall(NamedTuple):
    """Why a gang does not fit: the first member without a node, and how many members had a node before it."""

    placed: int
    needed: int
    pod: Pod
    verdicts: Verdicts
    is_proved: bool
    """Whether these members cannot be placed in any way. False if the search was skipped or stopped at its bound."""
    places: Sequence[Pod] = ()
    """The members that had a node, with it."""
    may_need_others: bool = False
    """Whether a change on one node, such as a member there, can make another node fit."""


class Attempts:
    """Places the members of one gang by the plugins of a profile. `choose` selects one of equally good nodes."""

    def __init__(self, mirror: ClusterMirror, profile: Profile, evaluate: Evaluate, choose: Choose) -> None:
        self.mirror = mirror
        self.steps = 0
        """How many members `place` has placed in all attempts, those that were taken back among them."""
        self._profile = profile
        self._evaluate = evaluate
        self._choose = choose
        filters = tuple(each for each in profile.filters if _judges_by_other_nodes(each))
        self._about_pods = Profile(filters, ())

    @property
    def profile(self) -> Profile:
        """The plugins under the rules of the cluster's release."""
        return self._profile.under(self.mirror.rules)

    def place(self, fork: Fork, classes: Sequence[MemberClass], max_steps: int) -> Steps[Shortfall | None]:
        """Suppose all members on nodes; or none, and return why. The search back takes at most `max_steps`.

        The cache has to follow the fork. Nothing is proved of members whose claims take volumes: which one a member
        takes depends on their order, and the search does not try all orders for that.
        """
        begin = fork.savepoint()
        shortfall = yield from self.greedy(fork, classes)
        if shortfall is None:
            return None
        fork.revert_to(begin)
        takes_volumes = any(
            plugin.reserves_for(self.mirror, each.pods[0])
            for each in classes
            if each.pods[0].volumes
            for plugin in self.profile.plugins
        )
        if greedy_is_exact(classes) and not takes_volumes:
            return shortfall._replace(is_proved=True)
        found = yield from self._search(fork, classes, max_steps)
        if found:
            return None
        fork.revert_to(begin)
        return shortfall._replace(is_proved=found is False and not takes_volumes)

    def ordered(self, classes: Sequence[MemberClass]) -> Steps[list[MemberClass]]:
        """Return the classes, with the nodes that fit while no member has one, those with the fewest nodes first.

        A class that waits for another one to make a node fit goes last.
        """
        judged = []
        for each in classes:
            judged.append(each._replace(fitting=self._fitting(each)))
            yield
        nodes = {id(each): int(np.count_nonzero(each.fitting)) for each in judged}
        return sorted(judged, key=lambda each: (each.may_need_others and not nodes[id(each)], nodes[id(each)]))

    def greedy_cannot_fail(self, classes: Sequence[MemberClass]) -> bool:
        """Return whether each member is sure to find a node if all go to their best node in turn.

        It is, if a member that is placed can make at most its own node unfit, and there are more nodes than members.
        """
        before = 0
        for each in classes:
            before += len(each.pods)
            if np.count_nonzero(each.fitting) < before:
                return False
        return take_room_alone(classes) and not any(self._has_rules_about_pods(each.pods[0]) for each in classes)

    def fits(self, pod: Pod, batch: NodeBatch) -> BoolArray:
        """Return for each node whether the pod passes its filters now."""
        fits: BoolArray = filter_nodes(self._profile, self._evaluation(pod, batch), batch).codes == 0
        return fits

    def fits_still(self, pod: Pod, node: str, *, has_changed: bool) -> bool:
        """Return whether a node that fitted the pod does so now. `has_changed`: the node or its pods are others now."""
        of_volumes = pod.volumes or pod.claims_resources
        profile = self._profile if has_changed or of_volumes else self._about_pods
        return fits_any(self.mirror, profile, pod, self.mirror.batch([node]))

    def place_best(self, fork: Fork, each: MemberClass, pod: Pod) -> str | Verdicts:
        """Suppose one more member of a class on its best node. Return the node, or the verdicts if no node fits."""
        batch = self._nodes(each)
        return place_best(fork, pod, self._profile, self._evaluation(pod, batch), batch, choose=self._choose)

    def place_on(self, fork: Fork, pod: Pod, node: str) -> None:
        """Suppose a member on a node, with what plugins reserve for it. Raises ForkError."""
        place_on(self.mirror, fork, self._profile, pod, node)

    def candidates(self, each: MemberClass, pod: Pod) -> list[str]:
        """Return the fitting nodes for one more member of a class, best first."""
        batch = self._nodes(each)
        evaluation = self._evaluation(pod, batch)
        fitting = (filter_nodes(self._profile, evaluation, batch).codes == 0).nonzero()[0]
        if not len(fitting):
            return []
        part = batch.part(fitting)
        sums = weighted_sums(self.profile.scores, evaluation, part)
        return [part.names[place] for place in np.argsort(-sums, kind="stable").tolist()]

    def _evaluation(self, pod: Pod, batch: NodeBatch) -> Evaluation:
        return self._evaluate(pod) if len(batch) > _FEW_NODES else FreshEvaluation(self.mirror, pod)

    def _nodes(self, each: MemberClass) -> NodeBatch:
        return each.nodes if each.nodes is not None else self.mirror.all_nodes()

    def _fitting(self, each: MemberClass) -> BoolArray:
        batch = self._nodes(each)
        fitting = np.zeros(self.mirror.nodes.capacity, np.bool_)
        fitting[batch.slots] = self.fits(each.pods[0], batch)
        return fitting

    def _has_rules_about_pods(self, pod: Pod) -> bool:
        """Return whether a filter judges nodes by pods on other nodes, too, when it judges them for this pod."""
        nowhere = self.mirror.batch([])
        evaluation = FreshEvaluation(self.mirror, pod)
        return any(
            evaluation.verdicts(plugin, nowhere) is not None
            for plugin in self.profile.filters
            if _judges_by_other_nodes(plugin)
        )

    def greedy(
        self, fork: Fork, classes: Sequence[MemberClass], is_last: Callable[[str], bool] = lambda _: False
    ) -> Steps[Shortfall | None]:
        """Give each member the best node that is left, up to a last node. Return the first one for which there is none.

        Those before it keep their nodes.
        """
        members = [(each, pod) for each in classes for pod in each.pods]
        *before, last = yield from in_turn(
            members,
            lambda member, _: self.place_best(fork, *member),
            lambda found: not isinstance(found, str) or is_last(found),
        )
        self.steps += len(before) + isinstance(last, str)
        if isinstance(last, str):
            return None
        pod = members[len(before)][1]
        need = _other_nodes_decide(pod) or any(of_class.may_need_others for of_class in classes)
        short = Shortfall(len(before), len(members), pod, last, is_proved=False, places=fork.placed)
        return short._replace(may_need_others=need)

    def _search(self, fork: Fork, classes: Sequence[MemberClass], max_steps: int) -> Steps[bool | None]:
        """Place all members by trying everything; return whether that is possible, None: the steps did not suffice."""
        search = Search(self, fork, classes)
        for _ in range(max_steps):
            while (has_moved := search.step()) is None:
                yield
            if not has_moved:
                return False
            self.steps += 1
            if search.is_done:
                return True
            yield
        return None


def _judges_by_other_nodes(plugin: AnyFilter) -> bool:
    """Return whether a filter judges a node by pods on other nodes, too."""
    return any(rule.kind is Pod and rule.scope is not Scope.NODE for rule in plugin.invalidated_by)
