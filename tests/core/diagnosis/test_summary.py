"""Sums over domains and terms, on clusters in which the golden cases have no such node or pod."""

from typing import Final

from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.summary import ZONE, summary
from core.mirror.affinity_counts import MAX_KEPT_MATCHERS
from core.profile import full_profile
from tests.builders import PodBuilder, labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, pod_of
from tests.core.profile_parts import affinity_profile

HOST: Final = "kubernetes.io/hostname"


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
    told = summary(diagnosis_of(make_pod("next"), {ZONE: "a"}, {}, {}), 5)
    [zones] = told.topologies
    assert (zones.domains, zones.domains_with_fit) == (1, 1)
    assert [(each.value, each.nodes, each.fit) for each in zones.shown] == [("", 2, 2), ("a", 1, 1)]


def test_a_pod_that_takes_all_of_its_work_is_explained() -> None:
    many = [term(HOST, labelled(app=f"app-{number}")) for number in range(MAX_KEPT_MATCHERS + 1)]
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
