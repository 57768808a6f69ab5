"""A node is added where the bound volumes of the pod can be reached."""

from msgspec.structs import replace

from core.diagnosis.remedies.remedy import AddNode, Kind, RemovePod
from core.objects.affinity import parse_node_selector
from core.objects.volumes import (
    PersistentVolume,
    PersistentVolumeClaim,
)
from tests.builders import PodBuilder
from tests.core.diagnosis.deciding import HOST, ZONE, asking, roomy, using
from tests.core.diagnosis.remedies.helping import helps, of_kind

GI = 2**30
DATA = PersistentVolumeClaim(namespace="default", name="data", storage_class="fast", requested=10 * GI, uid="c")
BOUND = replace(DATA, volume="pv", bind_completed=True, phase="Bound")
VOLUME = PersistentVolume(name="pv", storage_class="fast")


def with_claims(*names: str, **requests: str) -> PodBuilder:
    pod = asking(**requests)
    for name in names:
        pod = pod.volume({"name": f"v-{name}", "persistentVolumeClaim": {"claimName": name}})
    return pod


def test_a_node_is_added_where_the_volume_is() -> None:
    in_z = replace(VOLUME, node_affinity=parse_node_selector([([(ZONE, "In", ["z"])], [])]))
    found = helps(with_claims("data"), roomy("n1", zone="a"), objects=[BOUND, in_z])
    step = AddNode("n1-copy", "n1", "z", labels={ZONE: "z"})
    assert [("n1-copy", [step])] == of_kind(Kind.ADD_NODE, found)
    assert found[0].text == "add a node like n1 in zone z"


def test_a_node_of_the_volumes_zone_is_the_pattern() -> None:
    labelled = replace(VOLUME, labels={ZONE: "b"})
    nodes = roomy("n1", zone="a"), roomy("n2", zone="b"), using("full", "n2", cpu="8")
    found = helps(with_claims("data", cpu="4"), *nodes, objects=[BOUND, labelled])
    assert [("n2-copy", [AddNode("n2-copy", "n2", "b")])] == of_kind(Kind.ADD_NODE, found)
    assert [("n2", [RemovePod("default/full", "full", "n2")])] == of_kind(Kind.REMOVE_POD, found)


def test_a_local_volume_wants_its_node_back() -> None:
    local = replace(VOLUME, node_affinity=parse_node_selector([([(HOST, "In", ["n7"])], [])]))
    found = helps(with_claims("data"), roomy("n1"), objects=[BOUND, local])
    assert [("n7", [AddNode("n7", "n1", "")])] == of_kind(Kind.ADD_NODE, found)
    assert found[0].text == "add a node like n1 named n7"


def test_a_claim_that_is_missing_or_unbound_has_no_remedy() -> None:
    assert not helps(with_claims("missing"), roomy("n1"))
    assert not helps(with_claims("data"), roomy("n1"), objects=[replace(DATA, storage_class="gone")])
