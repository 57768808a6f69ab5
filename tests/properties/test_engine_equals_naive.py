"""The law of the engine: for every cluster and pod it answers as the naive reference does."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from hypothesis import given
from hypothesis import strategies as st

from app.objects.decode_pod import decode_pod
from core.framework.evaluation import FreshEvaluation
from core.mirror.cluster import ClusterMirror
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.scheduling_cycle import UNKNOWN_NODE, filter_nodes, score_nodes
from tests.conformance.engine import ask, load
from tests.core.profile_parts import affinity_profile
from tests.properties import strategies
from tests.properties.strategies import Args, Cluster, Object, name_of
from tests.reference.naive import NaiveCluster

incoming_pods = strategies.incoming_pods()


def loaded(cluster: Cluster) -> tuple[ClusterMirror, NaiveCluster]:
    return (
        load(cluster.namespaces, cluster.nodes, cluster.pods),
        NaiveCluster(cluster.namespaces, cluster.nodes, cluster.pods),
    )


@given(strategies.clusters(), st.lists(incoming_pods, min_size=1, max_size=3), strategies.args())
def test_every_answer_over_all_nodes_and_over_fitting_ones_is_the_naive_one(
    cluster: Cluster, pods: Sequence[Object], args: Args
) -> None:
    mirror, naive = loaded(cluster)
    plugin = InterPodAffinity(**asdict(args))
    for pod in pods:
        expected = naive.response(pod, **asdict(args))
        assert expected == ask(plugin, mirror, pod, map(name_of, cluster.nodes))


@given(strategies.clusters(), incoming_pods, strategies.args(), strategies.unmirrored())
def test_nodes_that_only_the_question_brings_are_judged_from_their_labels(
    cluster: Cluster, pod: Object, args: Args, unmirrored: Sequence[Object]
) -> None:
    mirror, naive = loaded(cluster)
    expected = naive.response(pod, **asdict(args), unmirrored=unmirrored)
    assert expected == ask(InterPodAffinity(**asdict(args)), mirror, pod, map(name_of, cluster.nodes), unmirrored)


@given(strategies.clusters(), incoming_pods, strategies.args())
def test_the_scheduling_cycle_adds_nothing_but_a_verdict_on_unknown_names(
    cluster: Cluster, pod: Object, args: Args
) -> None:
    mirror, naive = loaded(cluster)
    response = naive.response(pod, **asdict(args))
    names = [name_of(node) for node in cluster.nodes]
    batch = mirror.batch(["unknown", *names])
    profile, decoded = affinity_profile(**asdict(args)), decode_pod(json.dumps(pod).encode())

    evaluation = FreshEvaluation(mirror, decoded)
    verdicts = filter_nodes(profile, evaluation, batch)
    statuses = [verdicts.status(position) for position in range(len(batch))]
    assert statuses[0] == UNKNOWN_NODE
    assert [response.filter[name] for name in names] == [(one.code.label, one.reasons) for one in statuses[1:]]

    scores = score_nodes(profile, evaluation, batch).tolist()
    assert [0, *(response.normalized_all.get(name, 0) for name in names)] == scores


@given(strategies.clusters(), st.lists(incoming_pods, min_size=2, max_size=4), st.data())
def test_the_order_of_the_questions_changes_no_answer(
    cluster: Cluster, pods: Sequence[Object], data: st.DataObject
) -> None:
    mirror, naive = loaded(cluster)
    names = [name_of(node) for node in cluster.nodes]
    for pod in [*pods, *data.draw(st.permutations(pods))]:
        requested = data.draw(st.permutations(names))
        assert naive.response(pod) == ask(InterPodAffinity(), mirror, pod, requested)
