"""Scores over a small cluster: what is counted for a node, how it is weighed, and who is left out."""

from collections.abc import Mapping, Sequence
from math import log
from typing import Final

import numpy as np
import pytest
from msgspec.structs import replace

from core.framework.interface import NOT_SCORED
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import SCHEDULE_ANYWAY, Pod
from core.plugins.podtopologyspread.constraints import own_constraints
from core.plugins.podtopologyspread.plugin import PreScoreState, rounded
from tests.core.plugins.podtopologyspread.spreading import (
    A1,
    A2,
    B1,
    HOST,
    NAMES,
    ZONE,
    by_name,
    incoming,
    mirror_of,
    placed,
    selecting,
    should,
    tell,
)

PODS: Final = placed(a1="web web web", a2="web db", b1="web", zoneless="web web", bare="web")
LABELLED: Final = ["a1", "a2", "b1"]


def raw(
    mirror: ClusterMirror,
    pod: Pod,
    names: Sequence[str] = NAMES,
    strangers: Sequence[Node] = (),
    *,
    require_all_topologies: bool = True,
) -> Mapping[str, int]:
    """Return the raw scores by node."""
    asked = [*names, *(node.name for node in strangers)]
    batch = mirror.batch(asked, {len(names) + at: node for at, node in enumerate(strangers)})
    constraints = own_constraints(pod, SCHEDULE_ANYWAY)
    state = PreScoreState(mirror, pod, constraints, batch, require_all_topologies=require_all_topologies)
    return by_name(state.score(batch).tolist(), asked)


def weighed(**counts: float) -> Mapping[str, int]:
    """Return rounded scores, and NOT_SCORED for all nodes that are not named."""
    return {**dict.fromkeys(NAMES, NOT_SCORED), **{name: round(count) for name, count in counts.items()}}


def test_without_requiring_all_labels_a_node_scores_for_those_it_has() -> None:
    # PreScore of scoring.go: without a zone a node is in the domain of the empty one, and has nothing of it.
    pod = incoming(should(ZONE), should(HOST, 2))
    scores = raw(mirror_of(*PODS), pod, require_all_topologies=False)
    assert scores == weighed(
        a1=4 * log(5) + 3 * log(7) + 1,
        a2=4 * log(5) + log(7) + 1,
        b1=log(5) + log(7) + 1,
        zoneless=2 * log(7) + 1,
        bare=0,
    )


def test_without_requiring_all_labels_the_empty_value_is_that_of_nodes_without_the_label_too() -> None:
    void = Node("void", {ZONE: ""})
    mirror = mirror_of(*PODS, *placed(void="web"), void)
    scores = raw(mirror, incoming(should(ZONE)), [*NAMES, "void"], require_all_topologies=False)
    assert scores == {**weighed(a1=4 * log(5), a2=4 * log(5), b1=log(5), zoneless=0, bare=0), "void": round(4 * log(5))}


@pytest.mark.parametrize(
    ("key", "strangers", "expected"),
    [
        pytest.param(ZONE, [Node("s", {ZONE: "a"})], {"a1": 4 * log(4), "s": 4 * log(4)}, id="known-domain"),
        pytest.param(
            ZONE, [Node("s", {ZONE: "x"}), Node("t", {ZONE: "x"})], {"a1": 4 * log(5), "s": 0, "t": 0}, id="new-domain"
        ),
        pytest.param(
            ZONE, [Node("s", {ZONE: "x"}), Node("t", {ZONE: "y"})], {"a1": 4 * log(6), "s": 0, "t": 0}, id="new-domains"
        ),
        pytest.param(ZONE, [Node("s")], {"a1": 4 * log(4), "s": NOT_SCORED}, id="no-domain"),
        pytest.param(HOST, [Node("s", {HOST: "s"})], {"a1": 3 * log(6), "s": 0}, id="its-pods"),
    ],
)
def test_a_node_that_the_mirror_does_not_know_is_one_more_without_pods(
    key: str, strangers: Sequence[Node], expected: Mapping[str, float]
) -> None:
    scores = raw(mirror_of(*PODS), incoming(should(key)), LABELLED, strangers)
    assert {name: round(score) for name, score in expected.items()} == {name: scores[name] for name in expected}


@pytest.mark.parametrize(
    ("strangers", "domains"),
    [
        pytest.param([Node("s")], 4, id="without-the-label"),
        pytest.param([Node("s", {ZONE: ""})], 4, id="with-the-empty-value"),
        pytest.param([Node("s", {ZONE: "x"})], 5, id="with-another-value"),
    ],
)
def test_strangers_without_the_label_are_in_the_domain_of_the_empty_value_where_labels_are_not_required(
    strangers: Sequence[Node], domains: int
) -> None:
    mirror = mirror_of(*placed(a1="web"), Node("c1", {ZONE: "c"}))
    names = ["a1", "b1", "c1", "bare"]
    scores = raw(
        mirror, incoming(should(ZONE, selector=selecting(app="web"))), names, strangers, require_all_topologies=False
    )
    assert scores["a1"] == round(log(domains + 2))


def test_without_requiring_all_labels_a_node_without_a_hostname_scores_nothing_beside_an_unknown_hostname() -> None:
    pod, strangers = incoming(should(HOST, max_skew=3)), [Node("s", {HOST: "s"}), Node("t")]
    scores = raw(mirror_of(*PODS), pod, ["a1", "bare"], strangers, require_all_topologies=False)
    assert scores == {"a1": round(3 * log(6) + 2), "bare": 0, "s": 2, "t": 0}


def test_a_node_of_which_nothing_is_known_is_not_scored_and_makes_no_difference() -> None:
    mirror, pod = mirror_of(*PODS), incoming(should(HOST))
    assert raw(mirror, pod, [*LABELLED, "nobody"]) == {**raw(mirror, pod, LABELLED), "nobody": NOT_SCORED}


def test_halves_are_rounded_up_as_go_rounds_them() -> None:
    # math.Round, where Python and numpy round 2.5 down, and adding a half rounds what is just below one up.
    numbers = np.array([0.0, 0.5, 1.5, 2.5, 2.4, 0.49999999999999994])
    assert rounded(numbers).tolist() == [0, 1, 2, 3, 2, 0]


def test_columns_that_were_dropped_meanwhile_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.mirror.label_columns.MAX_BYTES", 1)
    mirror, pod = mirror_of(*PODS), incoming(should(ZONE))
    raw(mirror, pod)
    # The ids of the zones are now in another order than in a column made from the nodes anew.
    labels = [{ZONE: "c", HOST: "a1"}, {ZONE: "c"}, {ZONE: "a"}]
    nodes = [replace(node, labels=each) for node, each in zip((A1, A2, B1), labels, strict=True)]
    tell(mirror, "Update", *nodes)
    found = [raw(mirror, pod, LABELLED)]
    raw(mirror, incoming(should(HOST)))
    found.append(raw(mirror, pod, LABELLED))
    assert found == [raw(mirror_of(*PODS, nodes=nodes), pod, LABELLED)] * 2
