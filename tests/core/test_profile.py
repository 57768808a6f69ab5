"""The profile beside a scheduler is inter-pod affinity, with the arguments that it was given."""

import pytest

from core.profile import affinity_profile
from core.scheduling_cycle import score_nodes
from tests.builders import labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, node_of, pod_of

WEB = make_pod("web").label("app", "web")
NODES = [make_node("n1").label("zone", "a"), make_node("n2").label("zone", "b")]
BY_ZONE = term("zone", labelled(app="web"))


def test_one_plugin_filters_and_scores_with_weight_one() -> None:
    profile = affinity_profile()
    assert [plugin.name for plugin in profile.filters] == ["InterPodAffinity"]
    assert [(plugin.name, weight) for plugin, weight in profile.scores] == [("InterPodAffinity", 1)]


def test_required_affinity_of_existing_pods_weighs_one_unless_told_otherwise() -> None:
    pods = [WEB.uid("1").required_affinity(BY_ZONE).on("n1"), WEB.uid("2").preferred_affinity(1, BY_ZONE).on("n2")]
    mirror = mirror_of(*NODES, *pods)
    third = mirror.batch(["n1", "n2", "bare"], {2: node_of(make_node("bare"))})
    assert score_nodes(affinity_profile(), mirror, pod_of(WEB), third).tolist() == [100, 100, 0]


def test_the_hard_weight_reaches_the_plugin() -> None:
    pods = [WEB.uid("1").required_affinity(BY_ZONE).on("n1"), WEB.uid("2").preferred_affinity(50, BY_ZONE).on("n2")]
    mirror = mirror_of(*NODES, *pods)
    batch = mirror.batch(["n1", "n2"])
    assert score_nodes(affinity_profile(), mirror, pod_of(WEB), batch).tolist() == [0, 100]
    heavy = affinity_profile(hard_pod_affinity_weight=100)
    assert score_nodes(heavy, mirror, pod_of(WEB), batch).tolist() == [100, 0]


def test_ignoring_preferences_of_existing_pods_reaches_the_plugin() -> None:
    mirror = mirror_of(*NODES, WEB.preferred_affinity(50, BY_ZONE).on("n1"))
    batch = mirror.batch(["n1", "n2"])
    assert score_nodes(affinity_profile(), mirror, pod_of(WEB), batch).tolist() == [100, 0]
    ignoring = affinity_profile(ignore_preferred_terms_of_existing_pods=True)
    assert score_nodes(ignoring, mirror, pod_of(WEB), batch).tolist() == [0, 0]


def test_an_argument_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="hardPodAffinityWeight"):
        affinity_profile(hard_pod_affinity_weight=101)
