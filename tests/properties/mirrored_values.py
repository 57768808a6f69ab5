"""Random core values for laws of the mirror: few pods and nodes, so that what happens meets often.

Pods here have requests and versions, and the same name under several uids; their terms are few, since what terms count
is the matter of other laws.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from core.mirror.cluster import ClusterMirror
from core.objects.affinity import NO_AFFINITY, AffinityTerm, PodAffinity, PodMatcher
from core.objects.labels import EVERYTHING, NOTHING, parse_selector
from core.objects.node import Node
from core.objects.pod import Pod
from tests.core.decoded import by_value, counter_of
from tests.core.mirror.audit import owner_counts

NODES: Final = ("n0", "n1", "n2", "n3")
UIDS: Final = ("p0", "p0-again", "p1", "p1-again", "p2", "p3")
SELECTORS: Final = (EVERYTHING, parse_selector({"zone": "a"}, ()), parse_selector({"zone": "b"}, ()), NOTHING)
MATCHER: Final = PodMatcher(frozenset({"default"}), NOTHING, parse_selector({"app": "x"}, ()))
_TERM: Final = AffinityTerm(MATCHER, "zone")
_AFFINITIES: Final = (
    NO_AFFINITY,
    PodAffinity(required_anti_affinity=(_TERM,)),
    PodAffinity(required_affinity=(_TERM,)),
)
_LABELS: Final[Sequence[Mapping[str, str]]] = ({"app": "x"}, {"app": "y"}, {})
_REQUESTS: Final[Sequence[Mapping[str, int]]] = ({}, {"cpu": 3}, {"cpu": 5, "memory": 7}, {"gpu": 1})
_ALLOCATABLE: Final[Sequence[Mapping[str, int]]] = (
    {"cpu": 10, "pods": 3},
    {"cpu": 4, "memory": 20, "pods": 1},
    {"cpu": 10, "gpu": 0},
    {},
)
_versions: Final = st.sampled_from(("1", "2", "3"))
node_names: Final = st.sampled_from(NODES)
uids: Final = st.sampled_from(UIDS)
selectors: Final = st.sampled_from(SELECTORS)


@st.composite
def pods(draw: DrawFn, on: SearchStrategy[str], ended: SearchStrategy[bool]) -> Pod:
    """Return a state of one of the pods."""
    uid = draw(uids)
    return Pod(
        uid,
        "default",
        uid.removesuffix("-again"),
        labels=draw(st.sampled_from(_LABELS)),
        node_name=draw(on),
        terminal=draw(ended),
        affinity=draw(st.sampled_from(_AFFINITIES)),
        requests=draw(st.sampled_from(_REQUESTS)),
        best_effort=draw(st.booleans()),
        resource_version=draw(_versions),
    )


def unassigned_pods() -> SearchStrategy[Pod]:
    """Return a pod that waits for a node."""
    return pods(st.just(""), st.just(value=False))


def seen_pods() -> SearchStrategy[Pod]:
    """Return a pod as a watch may show it: mostly on a node, seldom ended."""
    return pods(st.sampled_from((*NODES, *NODES, "")), st.sampled_from((False, False, False, False, True)))


@st.composite
def nodes(draw: DrawFn) -> Node:
    """Return a state of one of the nodes."""
    labels = draw(st.sampled_from(({"zone": "a"}, {"zone": "b"}, {})))
    return Node(draw(node_names), labels, draw(st.sampled_from(_ALLOCATABLE)), resource_version=draw(_versions))


def state_of(mirror: ClusterMirror) -> dict[str, object]:
    """Return all that two mirrors of the same objects agree on: everything but slots, rows and generations."""
    nodes = {}
    for name, info in mirror.nodes.known.values.items():
        nodes[name] = (
            info.node,
            bool(mirror.nodes.in_partition[info.slot]),
            {pod.uid: pod for pod in (mirror.pods.pods[row] for row in info.rows)},
            info.figures,
        )
    return {
        "nodes": nodes,
        "unknown": {name: info.figures for name, info in mirror.nodes.infos.items() if info.node is None},
        "pods": {uid: mirror.get_pod(uid) for uid in mirror.pods.rows},
        "figures": mirror.figures,
        "owners": owner_counts(mirror),
        "matched": by_value(counter_of(mirror, (MATCHER,), "zone")),
    }
