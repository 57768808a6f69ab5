"""The ways to make a class cold again."""

import pytest

from core.mirror.cluster import ClusterMirror
from core.mirror.match_counters import MAX_MATCH_COUNTERS
from core.objects.pod import Pod
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from tests.bench import cluster
from tests.bench.forgetting import AskedTerms, push_out_counters
from tests.conformance.engine import decoded_pod, load

NODES = 10
PODS = 500
APPS = cluster.app_count(PODS)


@pytest.fixture
def mirror() -> ClusterMirror:
    return load(cluster.namespaces(), cluster.nodes(NODES), cluster.pods(PODS, NODES))


def ask(mirror: ClusterMirror, pod: Pod) -> set[str]:
    """Evaluate a pod. Return the mirror's counters."""
    names = [cluster.node_name(index) for index in range(NODES)]
    InterPodAffinity().pre_filter(mirror, pod)
    InterPodAffinity().pre_score(mirror, pod, mirror.batch(names))
    return {*mirror.affinity.match_counts()}


def incoming(kind: str) -> Pod:
    return decoded_pod(cluster.incoming(kind, 0, APPS))


def test_pushing_out_leaves_no_counter_that_was_there_before(mirror: ClusterMirror) -> None:
    before = ask(mirror, incoming("pref_mix"))
    push_out_counters(mirror)
    after = {*mirror.affinity.match_counts()}
    assert before
    assert not before & after
    assert len(after) == MAX_MATCH_COUNTERS


def test_counters_stay_while_pods_share_no_term_and_go_when_one_comes_again(mirror: ClusterMirror) -> None:
    terms = AskedTerms(mirror)
    terms.begin(incoming("pref_mix"))
    counters = ask(mirror, incoming("pref_mix"))
    terms.begin(incoming("anti_self_host"))
    assert counters == {*mirror.affinity.match_counts()}
    terms.begin(incoming("pref_mix"))
    assert not counters & {*mirror.affinity.match_counts()}
