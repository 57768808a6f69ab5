"""Terms, nodes and pods for the tests of term counters, and access to the counters of terms."""

from typing import Final

from core.mirror.affinity_counts import OwnerCounter
from core.mirror.cluster import ClusterMirror
from core.mirror.term_index import DomainCounts
from tests.builders import Object, expressed, labelled, make_namespace, make_node, make_pod, term
from tests.core.decoded import counter_of, matcher_of

WEB: Final = term("zone", labelled(app="web"))
NODES: Final = [make_node(f"n{zone}").label("zone", zone).label("host", f"n{zone}") for zone in "ab"]
N_A, N_B = NODES
WEB_POD: Final = make_pod("web").label("app", "web")
GUARD: Final = make_pod("guard").required_anti_affinity(WEB)  # carries a term that selects WEB_POD

UNRELATED: Final = term("zone", labelled(app="web"), namespaces=["other"])
RED: Final = term("zone", labelled(app="web"), namespace_selector=labelled(team="red"))
NOT_BLUE: Final = term("zone", labelled(app="web"), namespace_selector=expressed("team", "NotIn", "blue"))
EVERYWHERE: Final = term("zone", labelled(app="web"), namespace_selector=labelled())
RED_OR_NAMED: Final = term("zone", labelled(app="web"), namespaces=["x"], namespace_selector=labelled(team="red"))
X: Final = make_namespace("x")


def match_counter(mirror: ClusterMirror, *v1_terms: Object, key: str = "zone") -> DomainCounts:
    """Ask for the match counter of terms that an incoming pod of the namespace `default` has."""
    return counter_of(mirror, tuple(matcher_of(each) for each in v1_terms), key)


def owners(mirror: ClusterMirror, namespace: str = "default", **labels: str) -> list[OwnerCounter]:
    """Ask for the owner counters whose terms select a pod."""
    return mirror.affinity.owners(namespace, labels)
