"""Two rules that exclude each other are told in one sentence."""

import numpy as np
import pytest
from msgspec.structs import replace

from core.diagnosis.amounts import cluster_amounts
from core.diagnosis.exclusion import exclusion
from core.explaining.counted_terms import Effect
from core.objects.affinity import parse_node_selector
from core.objects.volumes import PersistentVolume, PersistentVolumeClaim
from tests.builders import NodeBuilder, PodBuilder, labelled, make_pod, term
from tests.core.diagnosis.deciding import HOST, ZONE, asking, decision_of, roomy, using

HEAD = "two rules exclude each other: "
WEB, DB = labelled(app="web"), labelled(app="db")
A1, A2, B1, C1 = (roomy(name, zone=name[0]) for name in ("a1", "a2", "b1", "c1"))
IN_A = using("db", "a1").label("app", "db")
SELF = using("web", "a1").label("app", "web")


def web() -> PodBuilder:
    return asking().label("app", "web")


@pytest.mark.parametrize(
    ("pod", "others", "stated"),
    [
        pytest.param(
            web().required_affinity(term(ZONE, DB)).spread(ZONE, WEB),
            [A1, B1, C1, IN_A, SELF],
            f"its pod affinity by {ZONE} (only zone a) and its topology spread by {ZONE} (only zone b, c)",
            id="affinity-and-spread",
        ),
        pytest.param(
            web().required_affinity(term(ZONE, DB)).required_anti_affinity(term(ZONE, WEB)),
            [A1, A2, B1, IN_A, SELF],
            f"its pod affinity by {ZONE} (only zone a) and its pod anti-affinity by {ZONE} (only zone b)",
            id="affinity-and-anti-affinity",
        ),
        pytest.param(
            web().node_selector({ZONE: "a"}).spread(HOST, WEB, nodeAffinityPolicy="Ignore"),
            [A1, B1, C1, SELF],
            f"the node affinity or nodeSelector (only hostname a1) and its topology spread by {HOST} "
            "(only hostname b1, c1)",
            id="a-nodeSelector-and-spread",
        ),
        pytest.param(
            web().spread("rack", WEB).spread("row", WEB),
            [
                *(roomy(rack + row, rack=rack, row=row) for rack, row in ("a1", "a2", "b2")),
                using("web", "a2").label("app", "web"),
            ],
            "its topology spread by rack (only rack b) and its topology spread by row (only rack a)",
            id="kubernetes/kubernetes#128832",
        ),
        pytest.param(
            web().node_selector({"disk": "ssd"}),
            [
                roomy("a1", disk="ssd").taint("gpu", "", "NoSchedule"),
                roomy("a2"),
                roomy("a3"),
                roomy("a4"),
                roomy("a5"),
            ],
            "taints (only a2, a3, a4 and others) and the node affinity or nodeSelector (only a1)",
            id="labels-and-taints",
        ),
        pytest.param(
            web(),
            [A1, B1, C1, using("shy", "a1").required_anti_affinity(term(ZONE, WEB)), using("x", "b1", cpu="8")],
            "",
            id="one-node-is-left",
        ),
        pytest.param(
            web().node_selector({"disk": "none"}).spread(ZONE, WEB, nodeAffinityPolicy="Ignore"),
            [A1, B1, SELF],
            "",
            id="one-rule-leaves-no-node",
        ),
    ],
)
def test_rules_that_exclude_each_other_are_told(
    pod: PodBuilder, others: list[NodeBuilder | PodBuilder], stated: str
) -> None:
    decision = decision_of(pod, *others)
    stated = f"{HEAD}{stated}" if stated else ""
    assert exclusion(decision) == stated
    assert cluster_amounts(decision, 5).exclusion == stated


def test_a_volume_and_another_rule_exclude_each_other() -> None:
    """Source: kubernetes/kubernetes#119967: the volume is of one node, and the anti-affinity forbids it."""
    volume = PersistentVolume(name="pv", node_affinity=parse_node_selector([([(HOST, "In", ["a1"])], [])]))
    claim = PersistentVolumeClaim(namespace="default", name="data", volume="pv", bind_completed=True, uid="c")
    pod = (
        web()
        .required_anti_affinity(term(HOST, WEB))
        .volume({"name": "v", "persistentVolumeClaim": {"claimName": "data"}})
    )
    decision = decision_of(pod, A1, B1, SELF, objects=[volume, replace(claim, phase="Bound")])
    assert exclusion(decision) == (
        f"{HEAD}a volume (only hostname a1) and its pod anti-affinity by {HOST} (only hostname b1)"
    )


def test_a_term_blocks_the_nodes_that_it_blocks_one_by_one() -> None:
    pod = web().required_affinity(term("rack", DB)).required_anti_affinity(term(ZONE, WEB))
    nodes = (roomy("n1", rack="r1", zone="a"), roomy("n2", rack="r2", zone="b"), roomy("n3", zone="a"), roomy("n4"))
    placed = (using("db", "n1").label("app", "db"), using("web", "n2").label("app", "web"))
    shy = using("shy", "n2").required_anti_affinity(term(ZONE, WEB))
    for each in (pod, make_pod("db").label("app", "db").required_affinity(term("rack", DB)), pod.label("app", "db")):
        decision = decision_of(each, *nodes, *placed, shy)
        for counted in decision.terms:
            ids = [counted.value_id(decision.batch, position) for position in range(4)]
            expected = [counted.effect(each, counted.count(each)) is Effect.BLOCKS for each in ids]
            assert np.array_equal(counted.blocked(decision.batch), expected)
