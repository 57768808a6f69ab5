"""What is told of pods with very many terms, and what is left out."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.diagnosis import counted_terms, node_detail, summary
from core.diagnosis.counted_terms import Effect
from core.diagnosis.diagnosis import Diagnosis
from core.mirror.cluster import ClusterMirror
from tests.builders import PodBuilder, make_namespace, make_node, make_pod, term
from tests.conformance.engine import decoded_pod, load
from tests.core.profile_parts import affinity_profile

HOST = "kubernetes.io/hostname"
APPS = 30


def selecting(app: str) -> dict[str, Any]:
    return {"matchLabels": {"app": app}}


def cluster(*pods: PodBuilder) -> ClusterMirror:
    nodes = [make_node(name).label(HOST, name).obj() for name in ("n1", "n2")]
    running = [make_pod(f"web-{number}").label("app", f"app-{number}").on("n1") for number in range(APPS)]
    return load([make_namespace("default").obj()], nodes, [each.obj() for each in (*running, *pods)])


def decision_about(mirror: ClusterMirror, pod: PodBuilder) -> Diagnosis:
    return Diagnosis(affinity_profile(), mirror, decoded_pod(pod.obj()), mirror.batch(["n1", "n2"]))


def wanting_none_of(apps: int, key: str = HOST) -> PodBuilder:
    return make_pod("next").required_anti_affinity(*(term(key, selecting(f"app-{each}")) for each in range(apps)))


def test_pods_are_named_until_the_search_has_taken_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_terms, "_MAX_LOOKED_AT", 3 * (APPS + 1))
    told = node_detail.node_detail(decision_about(cluster(), wanting_none_of(5)), 0, 10)
    assert [each.pods for each in told.terms] == [1] * 5
    assert [len(each.named) for each in told.terms] == [1, 1, 1, 0, 0]


def test_pods_of_a_domain_are_looked_for_once_though_many_nodes_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_terms, "_MAX_LOOKED_AT", APPS + 1)
    decision = decision_about(cluster(), wanting_none_of(1))
    for _ in range(20):
        assert [len(each.named) for each in node_detail.node_detail(decision, 0, 10).terms] == [1]


def test_of_too_many_terms_those_are_told_that_do_something_to_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_detail, "_MAX_TERMS", 2)
    none_here = term(HOST, selecting("nowhere"))
    pod = make_pod("next").required_anti_affinity(none_here, none_here, none_here, term(HOST, selecting("app-7")))
    told = node_detail.node_detail(decision_about(cluster(), pod), 0, 10)
    assert [each.effect for each in told.terms] == [Effect.BLOCKS, Effect.NONE]


def test_nodes_are_told_by_twenty_topology_keys_at_most() -> None:
    keys = [f"example.com/{number}" for number in range(30)]
    pod = make_pod("next").required_anti_affinity(*(term(key, selecting("app-1")) for key in keys))
    told = summary.summary(decision_about(cluster(), pod), 5)
    assert [each.topology_key for each in told.topologies] == [summary.ZONE, *keys[:19]]
    assert len(told.terms) == 30


def test_a_long_selector_is_cut_for_people() -> None:
    values = [f"value-{number}" for number in range(1000)]
    wide = {"matchExpressions": [{"key": "app", "operator": "In", "values": values}]}
    told = summary.summary(decision_about(cluster(), make_pod("next").required_anti_affinity(term(HOST, wide))), 5)
    assert told.terms[0].selects.startswith("pods with app in (value-0")
    assert told.terms[0].selects.endswith(" ...")
    assert len(told.terms[0].selects) < 600


@given(st.lists(st.integers(1, 6), max_size=20), st.integers(0, 22))
def test_the_largest_are_those_of_a_stable_sort(numbers: list[int], limit: int) -> None:
    expected = sorted(range(len(numbers)), key=lambda place: -numbers[place])[:limit]
    assert summary._largest(np.array(numbers, np.int64), limit).tolist() == expected  # noqa: SLF001
