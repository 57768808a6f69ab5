"""One attempt to place members of a gang: each on its best node in turn, then by a search back."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from core.framework.evaluation import Evaluation, weighted_sums
from core.framework.interface import Verdicts
from core.gangs.search import MemberClass, Search, Trial, greedy_is_exact
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import BoolArray, IntpArray
from core.objects.pod import Pod
from core.profile import Profile
from core.scheduling_cycle import choose_nodes, filter_nodes

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


class Attempts:
    """Tries to place members by the plugins of a profile; `choose` takes one of equally good nodes."""

    def __init__(self, mirror: ClusterMirror, profile: Profile, evaluate: Evaluate, choose: Choose) -> None:
        self.mirror = mirror
        self._profile = profile
        self._evaluate = evaluate
        self._choose = choose

    @property
    def profile(self) -> Profile:
        """The plugins, as they are in the cluster's release."""
        return self._profile.under(self.mirror.rules)

    def place(self, trial: Trial, classes: Sequence[MemberClass], max_steps: int) -> Shortfall | None:
        """Place all members in an empty trial; or none, and return why. The search back takes at most `max_steps`."""
        shortfall = self._greedy(trial, classes)
        if shortfall is None:
            return None
        trial.undo_all()
        if greedy_is_exact(classes):
            return shortfall._replace(is_proved=True)
        found = self._search(trial, classes, max_steps)
        if found:
            return None
        trial.undo_all()
        return shortfall._replace(is_proved=found is False)

    def ordered(self, classes: list[MemberClass]) -> list[MemberClass]:
        """Return the classes that fit the fewest nodes first; one that waits for another to make it fit goes last."""
        if len(classes) == 1:
            return classes
        fitting = {}
        for each in classes:
            nodes = int(np.count_nonzero(self.fits(each.pods[0], self._nodes(each))))
            fitting[id(each)] = (each.may_need_others and not nodes, nodes)
        return sorted(classes, key=lambda each: fitting[id(each)])

    def fits(self, pod: Pod, batch: NodeBatch) -> BoolArray:
        """Return for each node whether the pod passes the filters there now."""
        fits: BoolArray = filter_nodes(self._profile, self._evaluate(pod), batch).codes == 0
        return fits

    def node_for(self, each: MemberClass, pod: Pod) -> str | Verdicts:
        """Return the best node for one more member of a class, or why there is none."""
        batch = self._nodes(each)
        best, verdicts = choose_nodes(self._profile, self._evaluate(pod), batch)
        if verdicts is not None and not len(best):
            return verdicts
        return batch.names[int(best[0]) if len(best) == 1 else self._choose(batch, best)]

    def _nodes(self, each: MemberClass) -> NodeBatch:
        return each.nodes if each.nodes is not None else self.mirror.all_nodes()

    def _greedy(self, trial: Trial, classes: Sequence[MemberClass]) -> Shortfall | None:
        """Give each member the best node that is left; return the first member for which there is none."""
        wanted = sum(len(each.pods) for each in classes)
        for each in classes:
            for pod in each.pods:
                found = self.node_for(each, pod)
                if not isinstance(found, str):
                    return Shortfall(len(trial.nodes), wanted, pod, found, is_proved=False)
                trial.assume(pod, found)
        return None

    def _search(self, trial: Trial, classes: Sequence[MemberClass], max_steps: int) -> bool | None:
        """Place all members by trying everything; return whether that is possible, None: the steps did not suffice."""
        search = Search(trial, classes, self._candidates)
        for _ in range(max_steps):
            if not search.step():
                return False
            if search.is_done:
                return True
        return None

    def _candidates(self, each: MemberClass, pod: Pod) -> list[str]:
        """Return the nodes that fit, the best first."""
        batch = self._nodes(each)
        evaluation = self._evaluate(pod)
        fitting = (filter_nodes(self._profile, evaluation, batch).codes == 0).nonzero()[0]
        if not len(fitting):
            return []
        part = batch.part(fitting)
        sums = weighted_sums(self.profile.scores, evaluation, part)
        return [part.names[place] for place in np.argsort(-sums, kind="stable").tolist()]
