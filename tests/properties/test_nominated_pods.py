"""The law of nominated pods: for every cluster, nomination and pod, filter answers as the naive reference does."""

from collections.abc import Sequence
from typing import Final

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent
from core.framework.evaluation import FreshEvaluation
from core.mirror.cluster import ClusterMirror
from core.scheduling_cycle import filter_nodes
from tests.conformance.engine import decoded_pod, load
from tests.core.mirror.audit import audit
from tests.core.profile_parts import affinity_profile
from tests.properties import strategies
from tests.properties.strategies import NODE_NAMES, Cluster, Object, name_of
from tests.reference.answer import Verdict
from tests.reference.naive import NaiveCluster

PROFILE: Final = affinity_profile()
PRIORITIES: Final = st.sampled_from((0, 5))


@st.composite
def nominated_pods(draw: DrawFn, number: int) -> Object:
    """Return a pod without a node, of a uid that no pod of a cluster has, nominated for a node, known or not."""
    pod = draw(strategies.pods(strategies.pod_numbers(), strategies.affinities()))
    pod["metadata"].update(name=f"nominated-{number}", uid=f"nominated-{number}")
    pod["spec"]["priority"] = draw(PRIORITIES)
    pod["status"] = {"nominatedNodeName": draw(st.sampled_from(NODE_NAMES))}
    return pod


@st.composite
def nominations(draw: DrawFn) -> Sequence[Object]:
    """Return some such pods."""
    return [draw(nominated_pods(number)) for number in range(draw(st.integers(1, 4)))]


@st.composite
def incoming_pods(draw: DrawFn, nominated: Sequence[Object]) -> Object:
    """Return a pod to ask about: mostly another one, seldom one that is nominated itself."""
    if draw(strategies.seldom()):
        return draw(st.sampled_from(nominated))
    pod = draw(strategies.incoming_pods())
    pod["metadata"]["uid"] = "incoming"
    pod["spec"]["priority"] = draw(PRIORITIES)
    return pod


def responses(
    mirror: ClusterMirror, pod: Object, cluster: Cluster, cache: EquivalenceCache | None
) -> dict[str, Verdict]:
    names = [name_of(node) for node in cluster.nodes]
    value = decoded_pod(pod)
    evaluation = FreshEvaluation(mirror, value) if cache is None else cache.evaluation(value)
    verdicts = filter_nodes(PROFILE, evaluation, mirror.batch(names))
    found = [verdicts.status(position) for position in range(len(names))]
    return {name: (one.code.label, one.reasons) for name, one in zip(names, found, strict=True)}


@given(strategies.clusters(), nominations(), st.data())
def test_every_verdict_beside_nominated_pods_is_the_naive_one(
    cluster: Cluster, nominated: Sequence[Object], data: st.DataObject
) -> None:
    mirror = load(cluster.namespaces, cluster.nodes, [*cluster.pods, *nominated])
    naive = NaiveCluster(cluster.namespaces, cluster.nodes, cluster.pods)
    cache = EquivalenceCache(mirror, PROFILE.plugins, CacheOptions(mode="spec"))
    for _ in range(3):
        pod = data.draw(incoming_pods(nominated))
        expected = naive.filtered_next_to(pod, nominated)
        assert expected == responses(mirror, pod, cluster, None)
        assert expected == responses(mirror, pod, cluster, cache)
        assert expected == responses(mirror, pod, cluster, cache)
    assert not audit(mirror)


@given(strategies.clusters(), nominations(), st.data())
def test_verdicts_follow_nominations_that_come_and_go(
    cluster: Cluster, nominated: Sequence[Object], data: st.DataObject
) -> None:
    mirror = load(cluster.namespaces, cluster.nodes, cluster.pods)
    naive = NaiveCluster(cluster.namespaces, cluster.nodes, cluster.pods)
    cache = EquivalenceCache(mirror, PROFILE.plugins, CacheOptions(mode="spec"))
    pod = data.draw(incoming_pods(nominated))
    present: list[Object] = []
    for each in data.draw(st.permutations([*nominated, *nominated])):
        gone = each in present
        present = [other for other in present if other is not each] if gone else [*present, each]
        mirror.apply(ClusterEvent("Delete" if gone else "Add", decoded_pod(each)))
        assert naive.filtered_next_to(pod, present) == responses(mirror, pod, cluster, cache)
