"""`kindred removal`: which nodes could go, and the pod and the rule in the way of the others.

The rules are those of kubernetes/autoscaler cluster-autoscaler/simulator/drainability/rules, and of karpenter's
do-not-disrupt.
"""

from pathlib import Path

import pytest

from tests.app.commands.invoked import kindred
from tests.app.commands.what_if.asking import budget, deployment, dump, node, replica, response, with_local_data
from tests.builders import Object, PodBuilder, make_pod

NODES = [node("n1"), node("n2"), node("n3")]


SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (make_pod("bare").in_namespace("shop").on("n1"), "no controller makes it again"),
        (replica("web-1a-x", "n1").annotated(SAFE, "false"), f"{SAFE} is false"),
        (
            replica("web-1a-x", "n1").annotated("karpenter.sh/do-not-disrupt", "true"),
            "karpenter.sh/do-not-disrupt is true",
        ),
        (with_local_data(replica("web-1a-x", "n1")), "it has an emptyDir or hostPath volume"),
        (with_local_data(replica("web-1a-x", "n1").annotated(SAFE, "true")), ""),
        (make_pod("proxy").in_namespace("shop").owned_by("DaemonSet", "proxy", "d").on("n1"), ""),
    ],
)
def test_a_pod_may_keep_its_node(tmp_path: Path, pod: PodBuilder | Object, why: str) -> None:
    path = dump(tmp_path, *NODES, pod, deployment())
    status, found = response("removal", "n1", "--snapshot", path)
    (removal,) = found["nodes"]
    assert (status, removal["goes"], removal["why"]) == (int(bool(why)), "never" if why else "always", why)


@pytest.mark.parametrize(("allowed", "goes"), [(0, "never"), (1, "always")])
def test_a_budget_may_keep_a_node(tmp_path: Path, allowed: int, goes: str) -> None:
    path = dump(tmp_path, *NODES, replica("web-1a-x", "n1"), deployment(), budget("web", allowed))
    _, found = response("removal", "n1", "--snapshot", path)
    assert found["nodes"][0]["goes"] == goes
    assert (goes == "never") == ("shop/web" in found["nodes"][0]["why"])


def test_a_pod_without_another_place_keeps_its_node(tmp_path: Path) -> None:
    path = dump(tmp_path, *NODES, replica("web-1a-x", "n1"), deployment(cpu="5"))
    result = kindred("removal", "--snapshot", path)
    assert result.exit_code == 0  # n2 and n3 could go
    assert "2 of 3 nodes could go, each by itself: n2, n3." in result.stdout
    assert "n1 shop/web-1a-x no place: 0/2 nodes are available: 2 Insufficient cpu" in " ".join(result.stdout.split())


def test_what_can_go_together_and_what_it_saves(tmp_path: Path) -> None:
    pods = [replica(f"web-1a-{each}", f"n{each}", "2") for each in (1, 2, 3)]
    path = dump(tmp_path, *NODES, *pods, deployment(cpu="2"))
    _, found = response("removal", "--snapshot", path)
    assert [each["goes"] for each in found["nodes"]] == ["always", "always", "always"]
    assert len(found["together"]) == 1  # 6 cpu need two nodes of 4
    assert found["saved"] == {"cpu": 4000, "memory": 8 * 1024**3}
    assert response("removal", "--tries", "0", "--snapshot", path)[1]["together"] == []


def test_a_node_that_goes_in_some_orders_only_is_said_to_stay(tmp_path: Path) -> None:
    nodes = [node("n1", cpu="3"), node("n2", cpu="2"), node("n3", cpu="1")]
    pods = [replica("web-1a-s", "n1"), replica("db-1a-l", "n1", "2", of="db")]
    path = dump(tmp_path, *nodes, *pods, deployment(), deployment("db", cpu="2"))
    options = "removal", "n1", "--snapshot", path, "--orders"
    assert response(*options, "1")[1]["nodes"][0]["goes"] == "always"
    status, found = response(*options, "9")
    assert (status, found["nodes"][0]["goes"], found["assumed"]["orders"]) == (1, "sometimes", 9)
    assert "n1 shop/db-1a-l a place in some orders: 0/2 nodes" in " ".join(kindred(*options, "9").stdout.split())


@pytest.mark.parametrize(("nodes", "status"), [(("n2", "n3"), 0), (("n1", "n2"), 1), ((), 0)])
def test_each_chosen_node_has_to_go_for_a_yes(tmp_path: Path, nodes: tuple[str, ...], status: int) -> None:
    path = dump(tmp_path, *NODES, make_pod("bare").in_namespace("shop").on("n1"))
    assert kindred("removal", *nodes, "--snapshot", path).exit_code == status


def test_no_node_that_could_go_ends_with_1(tmp_path: Path) -> None:
    bare = [make_pod(f"bare-{each}").in_namespace("shop").on(f"n{each}") for each in (1, 2, 3)]
    result = kindred("removal", "--snapshot", dump(tmp_path, *NODES, *bare))
    assert (result.exit_code, result.stdout.splitlines()[0]) == (1, "0 of 3 nodes could go, each by itself.")


def test_an_unknown_node_is_one_line(tmp_path: Path) -> None:
    result = kindred("removal", "n9", "--snapshot", dump(tmp_path, *NODES))
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, "Error: no such node: n9")


@pytest.mark.parametrize("output", ["table", "wide", "yaml"])
def test_the_demo_in_other_formats(output: str) -> None:
    result = kindred("removal", "--demo", "-o", output)
    assert "node37" in result.stdout
    assert output != "table" or max(map(len, result.stdout.splitlines())) <= 80


def test_of_many_nodes_that_stay_the_rules_in_the_way_are_counted(tmp_path: Path) -> None:
    nodes = [node(f"m{each:02}") for each in range(24)]
    bare = [make_pod(f"bare-{each}").in_namespace("shop").on(f"m{each:02}") for each in range(3)]
    local = [with_local_data(replica(f"web-1a-{each}", f"m{each:02}")) for each in range(3, 24)]
    path = dump(tmp_path, *nodes, *bare, *local, deployment())
    text = " ".join(kindred("removal", "--snapshot", path).stdout.split())
    rules = "it has an emptyDir or hostPath volume (21 nodes), no controller makes it again (3 nodes)"
    assert f"... and 4 more, see -o wide In the way: {rules}." in text
