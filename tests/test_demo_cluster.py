"""The files in app/demo are the generator's output, and the demo is consistent like a real cluster."""

from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import app.demo
from tests.demo_cluster import HOSTNAME, REQUIRED, ZONE, cluster, cluster_text, request_text, requests

DEMO = Path(app.demo.__file__).parent
ITEMS: list[dict[str, Any]] = cluster()["items"]
NODES = {item["metadata"]["name"]: item for item in ITEMS if item["kind"] == "Node"}
PODS = [item for item in ITEMS if item["kind"] == "Pod"]
PLACED = [pod for pod in PODS if "nodeName" in pod["spec"]]
COUNTED = [pod for pod in PLACED if pod["status"]["phase"] not in {"Succeeded", "Failed"}]
NAMESPACES = {item["metadata"]["name"]: item for item in ITEMS if item["kind"] == "Namespace"}


def selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """Return whether the selector matches. The demo uses only matchLabels and In."""
    assert selector.keys() <= {"matchLabels", "matchExpressions"}
    expressions = selector.get("matchExpressions", [])
    assert all(expression["operator"] == "In" for expression in expressions)
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(expression["key"]) in expression["values"] for expression in expressions
    )


def term_matches(term: dict[str, Any], carrier: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether a term of the pod `carrier` matches the other pod."""
    namespace = other["metadata"]["namespace"]
    selector = term.get("namespaceSelector")
    named = term.get("namespaces", [])
    if not named and selector is None:
        named = [carrier["metadata"]["namespace"]]
    labels = NAMESPACES[namespace]["metadata"]["labels"]
    if namespace not in named and (selector is None or not selects(selector, labels)):
        return False
    return selects(term["labelSelector"], other["metadata"]["labels"])


def node_label(pod: dict[str, Any], key: str) -> str:
    """Return the value of the label on the pod's node."""
    return str(NODES[pod["spec"]["nodeName"]]["metadata"]["labels"][key])


def fellows(kind: str, pod: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Return, for each required term of the kind, the other pods that it matches in the pod's own domain."""
    terms = pod["spec"].get("affinity", {}).get(kind, {}).get(REQUIRED, [])
    return [
        [
            other
            for other in COUNTED
            if other is not pod
            and term_matches(term, pod, other)
            and node_label(other, term["topologyKey"]) == node_label(pod, term["topologyKey"])
        ]
        for term in terms
    ]


def in_bytes(quantity: str) -> int:
    """Return a memory quantity in bytes."""
    return int(quantity[:-2]) * {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}[quantity[-2:]]


def in_millicores(quantity: str) -> int:
    """Return a CPU quantity in thousandths of a core."""
    return int(quantity[:-1]) if quantity.endswith("m") else int(quantity) * 1000


def test_the_cluster_file_is_what_the_generator_makes() -> None:
    assert cluster_text() == (DEMO / "cluster.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", requests())
def test_a_request_file_is_what_the_generator_makes(name: str) -> None:
    assert request_text(name) == (DEMO / "requests" / f"{name}.json").read_text(encoding="utf-8")


def test_every_request_file_has_a_generator() -> None:
    assert set(requests()) == {path.stem for path in (DEMO / "requests").iterdir()}


def test_sixty_nodes_stand_in_three_zones_of_twenty() -> None:
    expected = {"eu-west-1a": 20, "eu-west-1b": 20, "eu-west-1c": 20}
    assert expected == Counter(node["metadata"]["labels"][ZONE] for node in NODES.values())
    assert all(name == node["metadata"]["labels"][HOSTNAME] for name, node in NODES.items())


def test_about_three_hundred_pods_stand_on_known_nodes_in_known_namespaces() -> None:
    assert 280 <= len(PODS) <= 340
    assert {pod["spec"]["nodeName"] for pod in PLACED} == set(NODES)
    assert {pod["metadata"]["namespace"] for pod in PODS} <= set(NAMESPACES)


def test_every_uid_is_a_uuid_and_no_two_are_equal() -> None:
    arriving = [request["Pod"] for request in requests().values()]
    uids = [item["metadata"]["uid"] for item in [*ITEMS, *arriving]]
    assert uids == [str(UUID(uid)) for uid in uids]
    assert len(uids) == len(set(uids))


def test_no_two_pods_share_a_name_or_an_address() -> None:
    names = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in PODS]
    addresses = [pod["status"]["podIP"] for pod in PLACED]
    assert len(names) == len(set(names))
    assert len(addresses) == len(set(addresses))


def test_pods_wait_fail_and_succeed_as_in_a_living_cluster() -> None:
    expected = {"Pending": 2, "Running": 289, "Succeeded": 14, "Failed": 1}
    assert expected == Counter(pod["status"]["phase"] for pod in PODS)
    assert expected["Pending"] == len(PODS) - len(PLACED)


def test_no_pod_stands_where_its_required_anti_affinity_forbids() -> None:
    rules = [others for pod in COUNTED for others in fellows("podAntiAffinity", pod)]
    assert len(rules) == 48  # api 30, cache 10, database 3, queue 3, prometheus 2
    assert not any(rules)


def test_every_pod_stands_where_its_required_affinity_asks() -> None:
    rules = [others for pod in PLACED for others in fellows("podAffinity", pod)]
    assert len(rules) == 24  # reports and cache warmers
    assert all(rules)


def test_each_database_replica_has_a_zone_of_its_own() -> None:
    databases = [pod for pod in COUNTED if pod["metadata"]["labels"].get("app") == "database"]
    expected = ["eu-west-1a", "eu-west-1b", "eu-west-1c"]
    assert expected == sorted(node_label(pod, ZONE) for pod in databases)


@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_no_node_is_promised_more_than_it_has(resource: str) -> None:
    amount = in_millicores if resource == "cpu" else in_bytes
    requested: Counter[str] = Counter()
    for pod in COUNTED:
        for container in pod["spec"]["containers"]:
            for quantities in filter(None, [container["resources"].get("requests")]):
                requested[pod["spec"]["nodeName"]] += amount(quantities[resource])
    for name, node in NODES.items():
        assert requested[name] <= amount(node["status"]["allocatable"][resource])


def test_the_target_of_the_example_stands_on_node1_in_a_production_namespace() -> None:
    (target,) = [pod for pod in PODS if pod["metadata"]["labels"].get("podenv") == "pro"]
    assert target["spec"]["nodeName"] == "node1"
    assert NAMESPACES[target["metadata"]["namespace"]]["metadata"]["labels"]["environment"] == "production"


@pytest.mark.parametrize("name", requests())
def test_a_request_asks_about_two_nodes_of_each_zone_for_a_pod_on_none(name: str) -> None:
    request = requests()[name]
    zones = [NODES[node]["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in request["NodeNames"]]
    assert Counter(dict.fromkeys(zones, 2)) == Counter(zones)
    assert len(set(zones)) == 3
    assert "nodeName" not in request["Pod"]["spec"]


def test_one_more_web_replica_belongs_to_the_running_ones() -> None:
    arriving = requests()["web"]["Pod"]["metadata"]
    owner = arriving["ownerReferences"]
    siblings = [pod for pod in PODS if pod["metadata"].get("ownerReferences") == owner]
    assert len(siblings) == 47
    assert all(pod["metadata"]["labels"] == arriving["labels"] for pod in siblings)
