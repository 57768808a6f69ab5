"""Places the members of a gang on the mirror in one step: all of them, or none.

The members are supposed on their nodes (core/mirror/what_if.py), so that each is judged beside those before it, by the
filters and the exact weighted sums of any decision. The equivalence cache follows, and gives the results. If all
members fit, they are assumed. If one fits nowhere, the supposition ends, and nothing is left of it. Nothing is awaited
in between, so no other decision sees a part of a gang.

Classes of members are placed in the order of their number of fitting nodes, fewest first. If another order or other
nodes could give a better result, a backtracking search follows (core/gangs/search.py). It ends after a number of steps
(`steps_for`), where a step places one member. core/gangs/packing.py places gangs whose members must be close together.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from core.gangs.attempts import Attempts, Choose, Evaluate, Shortfall
from core.gangs.packing import FewestDomains
from core.gangs.search import classes_of
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.node_values import make_node_group
from core.objects.groups import SPREAD, Packing, PackingWay
from core.objects.pod import Pod
from core.profile import Profile

_MOST_STEPS: Final = 2_000
_FEWEST_STEPS: Final = 100
_NODES_OF_ALL_STEPS: Final = 500_000


def steps_for(nodes: int) -> int:
    """Return how many steps a search may take in a cluster of `nodes` nodes. At 5,000 nodes, they take about 0.1 s."""
    return max(_FEWEST_STEPS, min(_MOST_STEPS, _NODES_OF_ALL_STEPS // max(nodes, 1)))


class Placer:
    """Places one gang at a time."""

    def __init__(self, mirror: ClusterMirror, profile: Profile, evaluate: Evaluate, choose: Choose) -> None:
        """Judge by the plugins of a profile. `choose` selects one of equally good nodes."""
        self._mirror = mirror
        self._attempts = Attempts(mirror, profile, evaluate, choose)

    def place(  # noqa: PLR0913  # the gang, and what bounds it
        self,
        members: Sequence[Pod],
        now: float,
        *,
        of_first: NodeBatch | None = None,
        max_steps: int = 0,
        packing: Packing = SPREAD,
        beside: Collection[str] = (),
    ) -> Mapping[str, str] | Shortfall:
        """Assume all of the pending members and return uid -> node, or assume none and return why.

        The first member goes to one of `of_first`, if that is given; these are known nodes. `beside` names the nodes of
        members that have one already, which packing counts as used. The search back takes at most `max_steps`, and so
        does packing. Raises WorkLimitError for a member that takes too much work; then nothing is assumed.
        """
        with self._mirror.suppose(cache_follows=True) as supposed:
            classes = self._attempts.ordered(classes_of(members, of_first))
            if packing.way is PackingWay.SPREAD:
                shortfall = self._attempts.place(supposed, classes, max_steps)
            else:
                group = make_node_group(self._mirror, packing.topology_key)
                few = FewestDomains(self._attempts, supposed, classes, group, beside=beside, max_steps=max_steps)
                shortfall = few.place()
            if shortfall is not None:
                return shortfall
            return {pod.uid: pod.node_name for pod in self._mirror.assume_placed(supposed, now)}

    def fits(self, pod: Pod, node: str) -> bool:
        """Return whether a pod that is not in the mirror fits a node now."""
        batch = self._mirror.batch([node])
        return not batch.strangers and bool(self._attempts.fits(pod, batch)[0])
