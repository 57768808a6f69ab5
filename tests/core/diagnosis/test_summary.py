"""What a summary has and leaves out, where the golden cases have no such node, pod or number of terms."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.node_detail import node_detail
from core.diagnosis.summary import _largest, summary
from core.explaining.counted_terms import Effect
from core.mirror.affinity_counts import MAX_MATCHERS
from core.mirror.cluster import ClusterMirror
from core.objects.node import ZONE
from core.profile import full_profile
from tests.builders import PodBuilder, labelled, make_namespace, make_node, make_pod, term
from tests.conformance.engine import decoded_pod, load
from tests.core.decoded import mirror_of, pod_of
from tests.core.diagnosis.deciding import HOST
from tests.core.profile_parts import affinity_profile


def diagnosis_of(pod: PodBuilder, *labels: dict[str, str], limit: int | None = None) -> Diagnosis:
    """Diagnose a pod over nodes with these labels, with so much work."""
    nodes = [make_node(f"n{number}") for number in range(len(labels))]
    for number, of_node in enumerate(labels):
        for key, value in of_node.items():
            nodes[number] = nodes[number].label(key, value)
    mirror = mirror_of(*nodes)
    mirror.work.limit = limit
    return Diagnosis(affinity_profile(), mirror, pod_of(pod), mirror.batch(list(mirror.nodes.slots)))


def test_nodes_without_the_label_are_no_domain_though_the_pod_fits_there() -> None:
    reported = summary(diagnosis_of(make_pod("next"), {ZONE: "a"}, {}, {}), 5)
    [zones] = reported.topologies
    assert (zones.domains, zones.domains_with_fit) == (1, 1)
    assert [(each.value, each.nodes, each.fit) for each in zones.shown] == [("", 2, 2), ("a", 1, 1)]


def test_a_pod_that_takes_all_of_its_work_is_explained() -> None:
    many = [term(HOST, labelled(app=f"app-{number}")) for number in range(MAX_MATCHERS + 1)]
    pod = make_pod("next").required_anti_affinity(*many)
    spent = diagnosis_of(pod, {HOST: "n0"}).mirror.work.spent
    assert spent > 0
    assert len(diagnosis_of(pod, {HOST: "n0"}, limit=spent).terms) == len(many)


def test_a_claim_that_is_missing_is_the_reason_on_nodes_that_are_full_as_well() -> None:
    full, roomy = make_node("full").allocatable(cpu="1", pods=9), make_node("roomy").allocatable(cpu="8", pods=9)
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "gone"}}
    profile, mirror = full_profile(), mirror_of(full, roomy)
    found = Diagnosis(
        profile, mirror, pod_of(make_pod("p").requests(cpu="2").volume(claim)), mirror.batch(["full", "roomy"])
    )
    assert [found.deciding_plugin(position) for position in range(2)] == ["VolumeRestrictions"] * 2


APPS = 30


def selecting(app: str) -> dict[str, Any]:
    return {"matchLabels": {"app": app}}


def cluster(*pods: PodBuilder) -> ClusterMirror:
    nodes = [make_node(name).label(HOST, name).obj() for name in ("n1", "n2")]
    running = [make_pod(f"web-{number}").label("app", f"app-{number}").on("n1") for number in range(APPS)]
    return load([make_namespace("default").obj()], nodes, [each.obj() for each in (*running, *pods)])


def decision_about(mirror: ClusterMirror, pod: PodBuilder) -> Diagnosis:
    return Diagnosis(affinity_profile(), mirror, decoded_pod(pod.obj()), mirror.batch(["n1", "n2"]))


def test_domains_of_equally_many_pods_are_told_by_name_and_changes_whatever_the_limit() -> None:
    nodes = [make_node(name).label(HOST, name).obj() for name in ("n2", "n1")]
    pods = [make_pod(name).label("app", "app-0").on(name).obj() for name in ("n2", "n1")]
    mirror = load([make_namespace("default").obj()], nodes, pods)
    reported = summary(decision_about(mirror, wanting_none_of(1)), 5)
    assert [each.value for each in reported.terms[0].shown] == ["n1", "n2"]
    assert reported.helps[:1] == summary(decision_about(mirror, wanting_none_of(1)), 0).helps != []


def wanting_none_of(apps: int, key: str = HOST) -> PodBuilder:
    return make_pod("next").required_anti_affinity(*(term(key, selecting(f"app-{each}")) for each in range(apps)))


def test_pods_are_named_until_the_search_has_taken_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.explaining.counted_terms._MAX_LOOKED_AT", 3 * (APPS + 1))
    reported = node_detail(decision_about(cluster(), wanting_none_of(5)), 0, 10)
    assert [each.pods for each in reported.terms] == [1] * 5
    assert [len(each.named) for each in reported.terms] == [1, 1, 1, 0, 0]


def test_pods_of_a_domain_are_looked_for_once_though_many_nodes_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.explaining.counted_terms._MAX_LOOKED_AT", APPS + 1)
    decision = decision_about(cluster(), wanting_none_of(1))
    for _ in range(20):
        assert [len(each.named) for each in node_detail(decision, 0, 10).terms] == [1]


def test_of_too_many_terms_those_are_told_that_do_something_to_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.diagnosis.node_detail._MAX_TERMS", 2)
    none_here = term(HOST, selecting("nowhere"))
    pod = make_pod("next").required_anti_affinity(none_here, none_here, none_here, term(HOST, selecting("app-7")))
    reported = node_detail(decision_about(cluster(), pod), 0, 10)
    assert [each.effect for each in reported.terms] == [Effect.BLOCKS, Effect.NONE]


def test_nodes_are_told_by_twenty_topology_keys_at_most() -> None:
    keys = [f"example.com/{number}" for number in range(30)]
    pod = make_pod("next").required_anti_affinity(*(term(key, selecting("app-1")) for key in keys))
    reported = summary(decision_about(cluster(), pod), 5)
    assert [each.topology_key for each in reported.topologies] == [ZONE, *keys[:19]]
    assert len(reported.terms) == 30


def test_a_long_selector_is_cut_for_people() -> None:
    values = [f"value-{number}" for number in range(1000)]
    wide = {"matchExpressions": [{"key": "app", "operator": "In", "values": values}]}
    reported = summary(decision_about(cluster(), make_pod("next").required_anti_affinity(term(HOST, wide))), 5)
    assert reported.terms[0].selects.startswith("pods with app in (value-0")
    assert reported.terms[0].selects.endswith(" ...")
    assert len(reported.terms[0].selects) < 600


@given(st.lists(st.integers(1, 6), max_size=20), st.integers(0, 22))
def test_the_largest_are_those_of_a_stable_sort(numbers: list[int], limit: int) -> None:
    expected = sorted(range(len(numbers)), key=lambda place: -numbers[place])[:limit]
    assert _largest(np.array(numbers, np.int64), limit).tolist() == expected
