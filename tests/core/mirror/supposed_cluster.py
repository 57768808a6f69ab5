"""The cluster of the tests of suppositions, and all that can be seen of it."""

from typing import Final

from core.mirror.changes import EVERY_CHANGE, Change
from core.mirror.cluster import ClusterMirror
from core.mirror.placement import PodStateCounts
from core.objects.affinity import PodMatcher
from core.objects.labels import NOTHING
from tests.core.decoded import counter_of
from tests.core.mirror.audit import audit
from tests.core.mirror.values import REPELLING, mirror_of, node, pod, selecting

N1 = node("n1", labels={"zone": "a"}, cpu=4)
N2 = node("n2", labels={"zone": "b"}, cpu=4)
NEW = node("new", labels={"zone": "c"}, cpu=4)
WEB = PodMatcher(frozenset({"default"}), NOTHING, selecting(app="web"))
FIRST, SECOND, OTHER = pod("first", "n1", cpu=1, affinity=REPELLING), pod("second", "n1"), pod("other", "n2")
WAITING = pod("waiting", "new", affinity=REPELLING)
STRANGER = pod("stranger", affinity=REPELLING)


class Told:
    """Notes every change."""

    hears: Final = EVERY_CHANGE

    def __init__(self, _mirror: ClusterMirror) -> None:
        self.changes: list[Change] = []

    def changed(self, change: Change) -> None:
        """Note it."""
        self.changes.append(change)


def cluster() -> ClusterMirror:
    return mirror_of(N1, N2, FIRST, SECOND, OTHER, WAITING)


def matched(mirror: ClusterMirror) -> dict[str, int]:
    return counter_of(mirror, (WEB,), "zone").by_value()


def seen(mirror: ClusterMirror) -> list[object]:
    """Give all that anybody can see of a mirror, in the order in which it is shown."""
    return [
        mirror.dump(),
        audit(mirror),
        list(mirror.placed_pods()),
        list(mirror.pods.rows.items()),
        list(mirror.nodes),
        list(mirror.nodes.infos),
        mirror.nodes.extent,
        list(mirror.nodes.known.generations()),
        list(mirror.affinity.owner_counts().items()),
        matched(mirror),
        set(counter_of(mirror, (WEB,), "zone").column.ids),
        {each: getattr(mirror.pod_states, each) for each in PodStateCounts.__slots__},
        mirror.figures,
    ]
