"""Places the members of a gang on the mirror: all of them in one step, or none.

The members are supposed on their nodes (core/mirror/fork.py), so that each is judged beside those before it, by the
filters and the exact weighted sums of any decision. The equivalence cache follows, and gives the results. If all
members fit, they are assumed. If one fits nowhere, the fork ends, and nothing is left of it. No other decision sees a
part of a gang.

An attempt for 500 unlike members takes a second, so it may be made in parts. Between two parts the mirror may change,
and nothing of the attempt is in it (`Fork.suspend`). At the end, each member is judged again beside those before it,
on the node that was found for it. If that node no longer fits, the member gets another one.

Classes of members are placed in the order of their number of fitting nodes, fewest first. If another order or other
nodes could give a better result, a backtracking search follows (core/gangs/attempts.py). It ends after a number of
steps (`steps_for`), where a step places one member. Gangs whose members must be close together go to `FewestDomains`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from core.gangs.attempts import Attempts, Evaluate, MemberClass, Shortfall, classes_of
from core.gangs.packing import FewestDomains
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import ForkError
from core.mirror.node_info import NodeBatch
from core.mirror.node_values import make_node_group
from core.mirror.work import WorkLimitError
from core.objects.groups import SPREAD, Packing, PackingWay
from core.objects.pod import Pod
from core.profile import Profile
from core.simulation.one_pod import Choose, fits_any
from core.simulation.placing import Steps

_MOST_STEPS: Final = 2_000
_FEWEST_STEPS: Final = 100
_NODES_OF_ALL_STEPS: Final = 500_000


def steps_for(nodes: int) -> int:
    """Return how many steps a search may take in a cluster of `nodes` nodes. At 5,000 nodes, they take about 0.1 s."""
    return max(_FEWEST_STEPS, min(_MOST_STEPS, _NODES_OF_ALL_STEPS // max(nodes, 1)))


_FEWEST_AT_ONCE: Final = 10
"""Members on changed nodes that are judged again in one part, however long that takes."""
_LONGEST_RESUME: Final = 0.06
"""Seconds of CPU in which the members that have a node must be supposed there anew. 500 ordinary ones take 0.025 s."""
_LONGEST_CHECK: Final = 0.15
"""Seconds of CPU in which all members must be judged again, one node for each. 500 ordinary ones take 0.07 s."""

Clock: TypeAlias = Callable[[], float]
"""Seconds of CPU."""


class Gang(NamedTuple):
    """What is placed together, and what bounds it."""

    members: Sequence[Pod]
    of_first: NodeBatch | None = None
    """The nodes of which the first member gets one. These are known nodes. None: all."""
    max_steps: int = 0
    """How many steps the search back takes at most; and so does packing."""
    packing: Packing = SPREAD
    others_on: Collection[str] = ()
    """The nodes of members that have one already, which packing counts as used."""


class Attempt:
    """One attempt to place a gang, in parts."""

    def __init__(self, attempts: Attempts, gang: Gang, failed: Shortfall | None = None) -> None:
        """Begin with the first part. With the result of one that `failed`, try its places first."""
        self.pods: Final = {pod.uid: pod for pod in gang.members}
        self.generation: Final = attempts.mirror.generation
        """Of the mirror when it began."""
        self.searches: Final = gang.max_steps > 0
        self.of_nodes: Final = gang.of_first is not None
        self._gang = gang
        self._attempts = attempts
        self._mirror = attempts.mirror
        self.nodes: Final = self._mirror.nodes.epoch
        """Changes of the set of nodes, when it began."""
        self._fork = self._mirror.fork(cache_follows=True)
        self._shortfall: Shortfall | None = None
        self._steps = self._placing()
        self._found: list[tuple[Pod, str, int]] = []  # member, node, and the generation at which it was judged there
        self._repeats = failed is not None  # these are the places of the attempt that failed
        if failed is not None:
            places = {pod.uid: pod.node_name for pod in failed.places if pod.uid in self.pods}
            known = {uid: name if name in self._mirror.nodes.slots else "" for uid, name in places.items()}
            self._found = [(self.pods[uid], known.get(uid, ""), 0) for uid in {**known, **self.pods}]

    @property
    def is_last_part(self) -> bool:
        """Whether places were found for all members, and need only be judged again."""
        return bool(self._found)

    @property
    def is_possible(self) -> bool:
        """Whether it can go on: the cluster has the same nodes."""
        return self.nodes == self._mirror.nodes.epoch

    def go_on(self, now: float, clock: Clock, end: float) -> Mapping[str, str] | Shortfall | None:
        """Go on until `end` by `clock`. Return None if that is not the end of the attempt. Take at least one step.

        Else assume all members and return uid -> node, or assume none and return why. Raises WorkLimitError for a
        member that takes too much work, and ForkError if a member was decided for in the meantime.
        """
        with self._fork as fork:
            if self._found and not self._place_again(clock, end):
                return None
            if self._shortfall is not None and self._repeats:
                fork.revert_to(0)
                self._found, self._shortfall, self._repeats = [], None, False
            if not self._found:
                began = clock()
                fork.resume()
                self._bound(clock() - began, _LONGEST_RESUME)
                for _ in self._steps:
                    if clock() >= end:
                        fork.suspend()
                        return None
                if self._shortfall is None and self._has_changed:
                    self._found = [(self.pods[pod.uid], pod.node_name, self.generation) for pod in fork.placed]
                    return None
            if self._shortfall is not None:
                return self._shortfall._replace(is_proved=self._shortfall.is_proved and not self._has_changed)
            return {pod.uid: pod.node_name for pod in self._mirror.assume_placed(fork, now)}

    @property
    def _has_changed(self) -> bool:
        return self._mirror.generation != self.generation

    def _placing(self) -> Steps[None]:
        gang, fork, attempts = self._gang, self._fork, self._attempts
        classes = yield from attempts.ordered(classes_of(gang.members, gang.of_first, attempts.profile))
        if gang.packing.way is PackingWay.SPREAD:
            self._shortfall = yield from attempts.place(fork, classes, gang.max_steps)
            return
        group = make_node_group(self._mirror, gang.packing.topology_key)
        few = FewestDomains(attempts, fork, classes, group, others_on=gang.others_on, max_steps=gang.max_steps)
        self._shortfall = yield from few.place()

    def _place_again(self, clock: Clock, end: float) -> bool:
        """Place the members where places were found for them, or elsewhere if they no longer fit there.

        Return whether all have been judged. If that takes too long, what was judged is not judged again next time: a
        node without a change since is only judged by the filters that read pods on other nodes, which takes 0.03 ms
        and not 0.2.
        """
        found, began, judged, generation = self._found, clock(), 0, self._mirror.generation
        for at, (pod, place, judged_at) in enumerate(found):
            has_changed = not place or self._mirror.nodes.infos[place].generation > judged_at
            if has_changed and judged >= _FEWEST_AT_ONCE and clock() >= end:
                return False
            judged += has_changed
            if place and self._attempts.fits_still(pod, place, has_changed=has_changed):
                self._attempts.place_on(self._fork, pod, place)
                found[at] = (pod, place, generation)
            else:
                first = self._gang.of_first if pod is self._gang.members[0] else None
                node = self._attempts.place_best(self._fork, MemberClass([pod], first), pod)
                if not isinstance(node, str):
                    short = Shortfall(at, len(found), pod, node, is_proved=False, places=self._fork.placed)
                    self._shortfall = short._replace(may_need_others=True)
                    return True
                found[at:] = [(each, name, 0 if name == node else before) for each, name, before in found[at:]]
                found[at] = (pod, node, generation)
            self._bound(clock() - began, _LONGEST_CHECK)
        return True

    def _bound(self, spent: float, most: float) -> None:
        if spent > most:
            raise WorkLimitError("spec", len(self.pods), int(spent * 1e9), int(most * 1e9))


class Placer:
    """Places gangs, one at a time."""

    def __init__(self, mirror: ClusterMirror, profile: Profile, evaluate: Evaluate, choose: Choose) -> None:
        """Judge by the plugins of a profile. `choose` selects one of equally good nodes."""
        self._mirror = mirror
        self._profile = profile
        self._attempts = Attempts(mirror, profile, evaluate, choose)
        self.kinds: Final = frozenset(kind for each in profile.filters for kind in each.kinds)
        """The kinds of objects that can make a pod fit."""

    def begin(self, gang: Gang, failed: Shortfall | None = None) -> Attempt:
        """Return an attempt to place a gang, before its first part. See Attempt."""
        return Attempt(self._attempts, gang, failed)

    def fits(self, pod: Pod, node: str) -> bool:
        """Return whether a pod that is not in the mirror fits a node now."""
        batch = self._mirror.batch([node])
        return not batch.unmirrored and fits_any(self._mirror, self._profile, pod, batch)

    def holds(self, pod: Pod, node: str) -> bool:
        """Return whether a pod that counts on a node fits there now."""
        with self._mirror.fork() as fork:
            fork.remove(self._mirror.assumed[pod.uid].pod)
            return self.fits(pod, node)

    def may_fit_now(self, shortfall: Shortfall, generation: int) -> bool:
        """Return whether a node may have come since a generation for the member that had none.

        If not, another attempt would end at that member, too, beside the same others. Their places count on the nodes
        that are judged: those that have changed, or all if a member can make a node fit another one.
        """
        names = [each.name for each in self._mirror.nodes.known.changed_since(generation)]
        if not names:
            return False
        of_all = shortfall.may_need_others
        batch, judged = (self._mirror.all_nodes() if of_all else self._mirror.batch(names)), frozenset(names)
        with self._mirror.fork() as fork:
            for pod in shortfall.places:
                if of_all or pod.node_name in judged:
                    with suppress(ForkError):  # its node is gone, which helps nobody
                        self._attempts.place_on(fork, pod, pod.node_name)
            try:
                return fits_any(self._mirror, self._profile, shortfall.pod, batch)
            except WorkLimitError:
                return True  # the attempt will say so
