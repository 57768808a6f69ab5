"""`kindred loss`: which zone can fail, also where a zone that fails still counts for topology spread."""

from pathlib import Path
from typing import Any

import pytest

from core.objects.node import ZONE
from tests.app.commands.invoked import kindred
from tests.app.commands.what_if.asking import deployment, dump, node, replica, response

NODES = [node(f"n{zone}", zone) for zone in "abc"]
PODS = [replica(f"web-1a-{zone}", f"n{zone}") for zone in "abc"]


def spread(**constraint: object) -> dict[str, Any]:
    of = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **constraint}
    return deployment(topologySpreadConstraints=[{"labelSelector": {"matchLabels": {"app": "web"}}, **of}])


def test_a_cluster_with_room_survives_the_loss_of_any_one_zone(tmp_path: Path) -> None:
    path = dump(tmp_path, *NODES, *PODS, deployment())
    status, found = response("loss", "--strict", "--snapshot", path)
    assert (status, found["survived"], [each["value"] for each in found["domains"]]) == (0, True, ["a", "b", "c"])
    assert "The cluster survives the loss of any one of 3 domains" in kindred("loss", "--snapshot", path).stdout


def test_without_room_it_does_not_and_strict_ends_with_1(tmp_path: Path) -> None:
    large = [replica(f"web-1a-{zone}", f"n{zone}", "3") for zone in "abc"]
    path = dump(tmp_path, *NODES, *large, deployment(cpu="3"))
    assert kindred("loss", "--snapshot", path).exit_code == 0
    status, found = response("loss", "--strict", "--snapshot", path)
    assert (status, found["survived"]) == (1, False)
    assert [each["without_place"] for each in found["domains"]] == [1, 1, 1]
    (workload,) = found["domains"][0]["workloads"]
    assert (workload["owner"], workload["replicas"], workload["left"], workload["again"]) == (
        "Deployment shop/web",
        3,
        1,
        0,
    )


def test_a_lost_zone_still_counts_for_topology_spread_while_its_nodes_are_there(tmp_path: Path) -> None:
    """Issue kubernetes#123019: with nodeTaintsPolicy Ignore, the lost zone has 0 pods, so no other may have 2."""
    path = dump(tmp_path, *NODES, *PODS, spread())
    status, found = response("loss", "--strict", "--snapshot", path)
    assert (status, {each["state"] for each in found["domains"]}) == (1, {"out"})
    reasons = found["domains"][0]["moves"][0]["rejected"]["reasons"]
    assert reasons["node(s) didn't match pod topology spread constraints"] == 2


def test_with_node_taints_policy_honor_it_does_not_count(tmp_path: Path) -> None:
    path = dump(tmp_path, *NODES, *PODS, spread(nodeTaintsPolicy="Honor"))
    assert response("loss", "--strict", "--snapshot", path)[0] == 0


def test_the_text_counts_the_losses_that_are_not_survived(tmp_path: Path) -> None:
    nodes = [node("na", "a"), node("nb", "b"), node("nc", "c", cpu="8")]
    path = dump(tmp_path, *nodes, replica("web-1a-x", "nc", "5"), deployment(cpu="5"))
    text = " ".join(kindred("loss", "--snapshot", path).stdout.split())
    assert f"does not survive the loss of 1 of 3 domains of {ZONE}, each by itself: pods find no place." in text
    assert "Without c, whose nodes do not answer:" in text


def test_budgets_do_not_matter_and_bare_pods_do_not_come_again(tmp_path: Path) -> None:
    bare = PODS[0].obj()
    del bare["metadata"]["ownerReferences"]
    path = dump(tmp_path, *NODES, {"kind": "Pod", "apiVersion": "v1", **bare})
    status, found = response("loss", "--strict", "--snapshot", path)
    assert status == 0
    (move,) = next(each for each in found["domains"] if each["value"] == "a")["moves"]
    assert move["stays_away"] == "no controller makes it again"


def test_the_worst_is_first_and_only_chooses(tmp_path: Path) -> None:
    pods = [replica("web-1a-x", "nb", "3"), replica("web-1a-y", "nc", "3"), replica("api-1a-x", "nc", "3", of="api")]
    nodes = [node("na", "a"), node("nb", "b"), node("nc", "c", cpu="8")]
    path = dump(tmp_path, *nodes, *pods, deployment(cpu="3"), deployment("api", cpu="3"))
    _, found = response("loss", "--snapshot", path)
    assert next((each["value"], each["without_place"]) for each in found["domains"]) == ("c", 2)
    assert [
        each["value"] for each in response("loss", "--only", "a", "--only", "b", "--snapshot", path)[1]["domains"]
    ] == [
        "a",
        "b",
    ]


@pytest.mark.parametrize(("by", "domains"), [("node", 3), ("rack", 2), ("zone", 3), (ZONE, 3)])
def test_domains_are_of_any_label(tmp_path: Path, by: str, domains: int) -> None:
    racks = [each.label("rack", rack) for each, rack in zip(NODES, "112", strict=True)]
    path = dump(tmp_path, *racks, *PODS)
    assert len(response("loss", "--by", by, "--snapshot", path)[1]["domains"]) == domains


def test_nodes_without_the_label_stay(tmp_path: Path) -> None:
    path = dump(tmp_path, *NODES[:2], NODES[2].without_label(ZONE), *PODS)
    assert response("loss", "--snapshot", path)[1]["nodes_without_key"] == 1
    assert f"1 node without {ZONE} stays." in " ".join(kindred("loss", "--snapshot", path).stdout.split())


def test_what_it_leaves_out_is_said(tmp_path: Path) -> None:
    text = " ".join(kindred("loss", "--snapshot", dump(tmp_path, *NODES, *PODS)).stdout.split())
    for each in (
        "or for good if",
        "limited rate",
        "StatefulSet waits until the object of its node",
        "ReadWriteOncePod",
    ):
        assert each in text


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--by", "rack"), "Error: --by rack: no node has the label rack"),
        (("--by", "a/cloud"), "Error: --by a/cloud: no node has the label a/cloud; there is cloud"),
        (("--by", "hostname"), "Error: --by hostname: no node has the label hostname; there is kubernetes.io/hostname"),
        (("--only", "z"), f"Error: --only z: no node has it as {ZONE}"),
        (("--by", "cloud"), "Error: --by cloud: all nodes have cloud=x, so that none is left"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: tuple[str, ...], error: str) -> None:
    path = dump(tmp_path, *(each.label("cloud", "x") for each in NODES), *PODS)
    result = kindred("loss", *arguments, "--snapshot", path)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, error)


@pytest.mark.parametrize("output", ["table", "wide", "yaml"])
def test_the_demo_in_other_formats(output: str) -> None:
    result = kindred("loss", "--demo", "-o", output)
    assert "eu-west-1c" in result.stdout
    assert output != "table" or max(map(len, result.stdout.splitlines())) <= 80


def test_a_domain_of_an_empty_value_has_a_name(tmp_path: Path) -> None:
    nodes = [
        node("n1").label("tier", ""),
        node("n2").label(
            "tier",
            "x",
        ),
    ]
    path = dump(tmp_path, *nodes, replica("web-1a-x", "n1", "3"), replica("web-1a-y", "n2", "3"))
    text = kindred("loss", "--by", "tier", "--snapshot", path).stdout
    assert '\n""' in text
    assert 'Without "", whose nodes do not answer:' in text
