"""What a question reads from the API server beside the mirror: no more than it needs, and what is lacking is said."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.api_server.credentials import load_credentials
from app.commands.rbac import cluster_rules
from app.settings.settings import Settings
from app.simulation.objects_at_hand import OF_OWNERS, ServerObjects, Taken
from app.simulation.questions import AnyQuestion, CapacityQuestion, DrainQuestion, LossQuestion, RemovalQuestion
from app.simulation.raw_objects import RawObjects
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from tests.app.api_server.client_setting import write_kubeconfig
from tests.app.commands.what_if.asking import budget, deployment, replica
from tests.app.commands.why.cluster import SmallCluster, small_cluster

OWNERS = {"replicasets", "statefulsets", "replicationcontrollers", "deployments", "daemonsets", "jobs", "limitranges"}
OWNERS |= {"priorityclasses", "runtimeclasses"}


@pytest.fixture
def server() -> Iterator[SmallCluster]:
    with small_cluster() as served:
        of = deployment()
        served.add("deployments", {name: of[name] for name in ("metadata", "spec")})
        served.add("poddisruptionbudgets", budget("web", 1))
        volume = {"name": "d", "emptyDir": {}}
        served.add("pods", replica("web-1a-x", "n1").volume(volume).obj())
        yield served


def taken(server: SmallCluster, question: AnyQuestion, tmp_path: Path, nodes: int = 50) -> tuple[Taken, RawObjects]:
    mirror, raw = ClusterMirror(), RawObjects()
    for number in range(nodes):
        mirror.apply(ClusterEvent("Add", Node(f"n{number}", {})))
    credentials = load_credentials(write_kubeconfig(tmp_path / "kubeconfig", server.url), None)
    return ServerObjects(credentials, mirror).take(question, raw), raw


@pytest.mark.parametrize(
    ("question", "more"),
    [
        (DrainQuestion(nodes=["n1"]), {"pods", "poddisruptionbudgets"}),
        (RemovalQuestion(), {"pods", "poddisruptionbudgets"}),
        (LossQuestion(), set()),
        (CapacityQuestion(of=["deploy/web"]), {"resourcequotas"}),
    ],
)
def test_a_question_lists_what_it_reads(
    server: SmallCluster, question: AnyQuestion, more: set[str], tmp_path: Path
) -> None:
    found, raw = taken(server, question, tmp_path)
    assert found == Taken([])
    assert {*server.lists()} == OWNERS | more
    assert raw.named("Deployment", "shop/web") is not None


def selectors(server: SmallCluster) -> list[str]:
    return [each.query["fieldSelector"] for each in server.requested if each.path == "/api/v1/pods"]


def test_the_pods_of_a_few_nodes_are_listed_by_node_and_those_of_many_together(
    server: SmallCluster, tmp_path: Path
) -> None:
    alive = "status.phase!=Succeeded,status.phase!=Failed"
    taken(server, DrainQuestion(nodes=["n1", "n2"]), tmp_path)
    assert selectors(server) == [f"{alive},spec.nodeName=n1", f"{alive},spec.nodeName=n2"]
    server.requested.clear()
    taken(server, DrainQuestion(nodes=[f"n{number}" for number in range(40)]), tmp_path)
    assert set(selectors(server)) == {alive}


def test_what_is_forbidden_is_a_lack_with_the_right_to_add(server: SmallCluster, tmp_path: Path) -> None:
    server.forbidden = {"list deployments"}
    (lack,) = taken(server, LossQuestion(), tmp_path)[0].lacks
    assert lack.why.startswith("deployments: forbidden; the RBAC rule that is missing: ")
    assert lack.why.endswith('missing: apiGroups: ["apps"], resources: ["deployments"], verbs: ["list"]')


def test_pods_that_are_listed_by_node_are_one_lack(server: SmallCluster, tmp_path: Path) -> None:
    server.forbidden = {"list pods"}
    (lack,) = taken(server, DrainQuestion(nodes=["n1", "n2"]), tmp_path)[0].lacks
    assert lack.why.startswith("pods: forbidden")


def test_an_api_server_that_does_not_respond_is_one_lack(server: SmallCluster, tmp_path: Path) -> None:
    server.url = "http://127.0.0.1:9"
    (lack,) = taken(server, LossQuestion(), tmp_path)[0].lacks
    assert lack.why.startswith("owners and facts of pods: GET /apis/apps/v1/replicasets at http://127.0.0.1:9")


def test_the_roles_of_a_service_with_an_admin_port_have_what_questions_list() -> None:
    rules = cluster_rules(Settings(admin="127.0.0.1:8890"))
    for each in OF_OWNERS:
        assert {"apiGroups": [each.group], "resources": [each.plural], "verbs": ["list"]} in rules
        assert not any(each.plural in rule["resources"] for rule in cluster_rules(Settings()))
