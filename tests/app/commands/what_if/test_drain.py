"""`kindred drain`: kubectl's messages, the rounds of budgets, and where the pods go.

The expected behaviour is that of k8s.io/kubectl pkg/drain/filters.go, and of eviction in k8s.io/kubernetes
pkg/registry/core/pod/storage/eviction.go.
"""

from pathlib import Path

import pytest

from core.objects.node import ZONE
from tests.app.commands.invoked import kindred
from tests.app.commands.what_if.asking import budget, deployment, dump, node, replica, response, with_local_data
from tests.builders import Object, PodBuilder, make_pod

DAEMON = make_pod("proxy-x").in_namespace("shop").owned_by("DaemonSet", "proxy", "d").phase("Running").on("n1")
STATIC = make_pod("etcd-n1").in_namespace("shop").owned_by("Node", "n1", "n").phase("Running").on("n1")
BARE = make_pod("bare").in_namespace("shop").phase("Running").on("n1")


def not_ready(pod: PodBuilder) -> Object:
    found = pod.obj()
    found["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    return {"kind": "Pod", "apiVersion": "v1", **found}


def test_a_pod_that_finds_a_place_is_placed_there(tmp_path: Path) -> None:
    path = dump(tmp_path, node("n1"), node("n2"), replica("web-1a-x", "n1"), deployment())
    status, found = response("drain", "n1", "--snapshot", path)
    (pod,) = found["pods"]
    assert (status, found["ok"], pod["move"]["placed"], pod["move"]["nodes"]) == (0, True, "always", {"n2": 3})
    assert not found["assumed"]["uncertainties"]


def test_what_comes_is_of_the_template_and_not_as_the_running_pod(tmp_path: Path) -> None:
    path = dump(tmp_path, node("n1"), node("n2"), replica("web-1a-x", "n1"), deployment(cpu="5"))
    status, found = response("drain", "n1", "--snapshot", path)
    (pod,) = found["pods"]
    assert (status, pod["move"]["placed"], pod["move"]["rejected"]["fate"]) == (1, "never", "unschedulable")
    assert pod["move"]["rejected"]["reasons"]["Insufficient cpu"] == 1


def test_a_pod_that_comes_back_to_the_drained_node_has_no_other_place(tmp_path: Path) -> None:
    pod = replica("web-1a-x", "n1").toleration("", "Exists").node_selector({"kubernetes.io/hostname": "n1"})
    result = kindred("drain", "n1", "--snapshot", dump(tmp_path, node("n1"), node("n2"), pod))
    assert result.exit_code == 1
    assert "The drain of n1 ends; 0 of 1 pod finds a place." in result.stdout
    assert "back to a node that is out: it tolerates the taints there" in result.stdout


@pytest.mark.parametrize("limit", [1, 2])
def test_pods_of_a_job_on_several_nodes_share_its_retries(tmp_path: Path, limit: int) -> None:
    job = {**deployment("work"), "apiVersion": "batch/v1", "kind": "Job"}
    job["spec"]["backoffLimit"] = limit
    pods = [make_pod(f"work-{on}").in_namespace("shop").owned_by("Job", "work", "j").on(on) for on in ("n1", "n2")]
    path = dump(tmp_path, node("n1"), node("n2"), node("n3"), *pods, job)
    _, found = response("drain", "n1", "n2", "--snapshot", path)
    assert [bool(each["move"]["stays_away"]) for each in found["pods"]] == [limit == 1] * 2


def test_without_the_owner_it_is_as_the_running_pod_and_that_is_said(tmp_path: Path) -> None:
    path = dump(tmp_path, node("n1"), node("n2"), replica("web-1a-x", "n1"))
    result = kindred("drain", "n1", "--snapshot", path)
    assert "1 pod of Deployment shop/web: as the running pod, no Deployment is at hand." in result.stdout


@pytest.mark.parametrize(
    ("flags", "messages"),
    [
        (
            (),
            {
                "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore)": ["shop/proxy-x"],
                "cannot delete Pods with local storage (use --delete-emptydir-data to override)": ["shop/bare"],
            },
        ),
        (
            ("--ignore-daemonsets", "--delete-emptydir-data"),
            {"cannot delete Pods that declare no controller (use --force to override)": ["shop/bare"]},
        ),
        (("--ignore-daemonsets", "--delete-emptydir-data", "--force"), {}),
    ],
)
def test_what_kubectl_refuses_in_its_own_words(
    tmp_path: Path, flags: tuple[str, ...], messages: dict[str, list[str]]
) -> None:
    path = dump(tmp_path, node("n1"), node("n2"), DAEMON, STATIC, with_local_data(BARE))
    status, found = response("drain", "n1", "--snapshot", path, *flags)
    assert {each["message"]: each["pods"] for each in found["rejections"]} == messages
    assert status == bool(messages)
    assert found["command"] == "kubectl drain n1 --ignore-daemonsets --delete-emptydir-data --force"


def test_pods_of_daemon_sets_and_static_pods_stay_and_bare_pods_do_not_come_again(tmp_path: Path) -> None:
    path = dump(tmp_path, node("n1"), node("n2"), DAEMON, STATIC, BARE)
    text = kindred("drain", "n1", "--ignore-daemonsets", "--force", "--snapshot", path).stdout
    assert "2 pods of DaemonSets, or static, stay." in text
    assert "Do not come again: shop/bare: no controller makes it again." in text


def test_a_budget_lets_pods_go_in_rounds(tmp_path: Path) -> None:
    pods = [replica(f"web-1a-{name}", "n1") for name in "xyz"]
    path = dump(tmp_path, node("n1"), node("n2"), *pods, deployment(), budget("web", 1))
    status, found = response("drain", "n1", "--snapshot", path)
    assert (status, found["rounds"], sorted(each["round"] for each in found["pods"])) == (0, 3, [1, 2, 3])
    text = kindred("drain", "n1", "--snapshot", path).stdout
    assert "The drain of n1 ends in 3 rounds; 3 of 3 pods find a place." in text


def test_a_budget_without_disruptions_makes_the_drain_endless(tmp_path: Path) -> None:
    path = dump(tmp_path, node("n1"), node("n2"), replica("web-1a-x", "n1"), deployment(), budget("web", 0))
    result = kindred("drain", "n1", "--snapshot", path)
    assert result.exit_code == 1
    assert "The drain of n1 does not end" in result.stdout
    assert "shop/web-1a-x on n1" in result.stdout
    assert "(shop/web)" in result.stdout


def test_a_pod_that_finds_no_place_holds_up_the_others_of_its_budget(tmp_path: Path) -> None:
    """Issue kubectl#719: pods that fit nowhere else are lost to their budget, so the next one is never evicted."""
    pods = [replica(f"web-1a-{name}", "n1", "3") for name in "xyz"]
    path = dump(tmp_path, node("n1", cpu="9"), node("n2", cpu="4"), *pods, deployment(cpu="3"), budget("web", 1))
    _, found = response("drain", "n1", "--snapshot", path, "--orders", "1")
    assert [each["round"] for each in found["pods"] if each["round"]] != [1, 1, 1]
    assert sum(bool(each["blocked"]) for each in found["pods"]) == 1
    assert sum(each["move"]["rejected"] is not None for each in found["pods"]) == 1


@pytest.mark.parametrize(
    ("allowed", "ends", "chance"), [(1, "ends in some orders only", "in some orders: "), (0, "does not end", "")]
)
def test_in_how_many_orders_a_budget_keeps_a_pod_is_said(tmp_path: Path, allowed: int, ends: str, chance: str) -> None:
    """Only the small one has a successor. So it must go first, as it does in the first order."""
    pods = [replica("small", "n1"), replica("large", "n1", "9")]
    path = dump(tmp_path, node("n1", cpu="30"), node("n2"), *pods, budget("web", allowed))
    text = " ".join(kindred("drain", "n1", "--snapshot", path).stdout.split())
    assert f"The drain of n1 {ends}" in text
    assert f"shop/small on n1: {chance}its PodDisruptionBudget" in text


def test_two_budgets_on_a_pod_are_an_error_of_the_api_server(tmp_path: Path) -> None:
    path = dump(tmp_path, node("n1"), node("n2"), replica("web-1a-x", "n1"), budget("one", 5), budget("two", 5))
    result = kindred("drain", "n1", "--snapshot", path)
    assert result.exit_code == 1
    assert "it has more than one PodDisruptionBudget" in result.stdout


@pytest.mark.parametrize(
    ("policy", "healthy", "desired", "is_evicted"),
    [
        ("", 1, 2, False),
        ("", 2, 2, True),
        ("IfHealthyBudget", 1, 2, False),
        ("", 0, 0, False),
        ("AlwaysAllow", 1, 2, True),
    ],
)
def test_an_unready_pod_goes_by_the_policy_of_its_budget(
    tmp_path: Path, policy: str, healthy: int, desired: int, *, is_evicted: bool
) -> None:
    of = budget("web", 0, healthy=healthy, desired=desired)
    if policy:
        of["spec"]["unhealthyPodEvictionPolicy"] = policy
    path = dump(tmp_path, node("n1"), node("n2"), not_ready(replica("web-1a-x", "n1")), deployment(), of)
    status, _ = response("drain", "n1", "--snapshot", path)
    assert status == (not is_evicted)


def test_a_pod_that_is_pinned_to_the_node_finds_no_place(tmp_path: Path) -> None:
    pinned = deployment(nodeSelector={"kubernetes.io/hostname": "n1"})
    path = dump(tmp_path, node("n1"), node("n2"), replica("web-1a-x", "n1"), pinned)
    result = kindred("drain", "n1", "--snapshot", path)
    assert result.exit_code == 1
    assert "Evicted, and without a place" in result.stdout
    assert "shop/web-1a-x: no place" in result.stdout


def test_all_replicas_on_one_node_is_a_warning(tmp_path: Path) -> None:
    """Issue kubernetes#31487."""
    pods = [replica("web-1a-x", "n1"), replica("web-1a-y", "n2")]
    path = dump(tmp_path, node("n1"), node("n2"), *pods, deployment())
    printed = kindred("drain", "n1", "--snapshot", path).stdout
    assert "Warning: all replicas of Deployment shop/web end on one node." in printed


def test_volumes_keep_a_pod_in_its_zone(tmp_path: Path) -> None:
    pod = replica("db-0", "n1", of="db").obj()
    pod["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "name": "db", "uid": "s", "controller": True}]
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}]
    metadata = {"name": "data-db-0", "namespace": "shop", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    objects: list[Object] = [
        {"kind": "Pod", "apiVersion": "v1", **pod},
        {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": metadata, "spec": {"volumeName": "pv-1"}},
        {
            "kind": "PersistentVolume",
            "apiVersion": "v1",
            "metadata": {"name": "pv-1"},
            "spec": {
                "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
                "claimRef": {"name": "data-db-0", "namespace": "shop"},
            },
        },
    ]
    path = dump(tmp_path, node("n1"), node("n2"), node("n3", "b"), *objects)
    result = kindred("drain", "n1", "--snapshot", path)
    assert result.exit_code == 0, result.stdout
    assert "shop/db-0 n2, stays in a with its volumes" in " ".join(result.stdout.split())


def test_pods_of_a_scheduler_without_a_profile_are_unknown(tmp_path: Path) -> None:
    path = dump(tmp_path, node("n1"), node("n2"), replica("web-1a-x", "n1"), deployment(schedulerName="mine"))
    result = kindred("drain", "n1", "--snapshot", path)
    assert (result.exit_code, "its scheduler mine has no known profile" in result.stdout) == (1, True)


def test_the_loser_of_a_race_for_a_place_depends_on_chance(tmp_path: Path) -> None:
    """Two pods, and room for one: by their order of arrival, either is placed."""
    pods = [replica("web-1a-x", "n1", "3"), replica("api-1a-x", "n1", "3", of="api")]
    both = deployment(cpu="3"), deployment("api", cpu="3")
    path = dump(tmp_path, node("n1", cpu="8"), node("n2", cpu="4"), *pods, *both)
    _, found = response("drain", "n1", "--snapshot", path, "--orders", "20")
    assert [each["move"]["placed"] for each in found["pods"]] == ["sometimes", "sometimes"]
    assert "a place in some orders" in kindred("drain", "n1", "--snapshot", path, "--orders", "20").stdout


def test_a_dump_without_budgets_says_so_with_the_command_that_adds_them(tmp_path: Path) -> None:
    path = dump(tmp_path, node("n1"), node("n2"), replica("web-1a-x", "n1"))
    result = kindred("drain", "n1", "--snapshot", path)
    assert "Not judged: the dump has no poddisruptionbudgets. This adds them:" in result.stdout
    assert f"  kubectl get -A -o json pdb >> {path}" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("n9",), "Error: no such node: n9"),
        (("-l", "rack=r1"), "Error: --selector rack=r1: no node matches"),
        (("--zone", "z"), "Error: --zone z: no node is in it; there are a"),
        (("n1", "n2"), "Error: all nodes are chosen, so that none is left for their pods"),
        ((), "Error: give nodes by name, by labels or by zone"),
        (("n1", "--orders", "0"), "Error: Invalid value for '--orders': 0 is not in the range 1<=x<=100."),
        (("n1", "--kubeconfig", "x"), "Error: --kubeconfig is for a kubeconfig, not for a dump."),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: tuple[str, ...], error: str) -> None:
    path = dump(tmp_path, node("n1"), node("n2"), replica("web-1a-x", "n1"))
    result = kindred("drain", *arguments, "--snapshot", path)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == error


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (("-l", "rack in (r1,r2)"), "kubectl drain -l 'rack in (r1,r2)' --ignore-daemonsets"),
        (("--zone", "a"), f"kubectl drain -l {ZONE}=a --ignore-daemonsets"),
        (("-l", "rack=r1", "--zone", "b"), "kubectl drain n1 n3 --ignore-daemonsets"),
        (("n3", "-l", "rack=r1"), "kubectl drain n3 n1 --ignore-daemonsets"),
    ],
)
def test_the_command_has_the_selector_if_it_alone_chooses(
    tmp_path: Path, arguments: tuple[str, ...], command: str
) -> None:
    """Kubectl takes names or one selector (k8s.io/kubectl pkg/cmd/drain/drain.go, Complete)."""
    path = dump(tmp_path, node("n1").label("rack", "r1"), node("n2", "c"), node("n3", "b"), DAEMON)
    assert command in kindred("drain", *arguments, "--ignore-daemonsets", "--snapshot", path).stdout.splitlines()


def test_the_command_is_one_line_to_be_copied(tmp_path: Path) -> None:
    names = [f"ip-10-0-0-{number}.eu-west-1.compute.internal" for number in range(9)]
    path = dump(tmp_path, *map(node, names))
    lines = kindred("drain", *names[1:], "--snapshot", path).stdout.splitlines()
    assert f"kubectl drain {' '.join(names[1:])}" in lines


def test_names_of_a_dump_are_no_commands_of_the_shell(tmp_path: Path) -> None:
    path = dump(tmp_path, node("n1;reboot"), node("n2"))
    assert "kubectl drain 'n1;reboot'" in kindred("drain", "n1;reboot", "--snapshot", path).stdout.splitlines()


def test_text_fits_into_80_columns() -> None:
    result = kindred("drain", "node1", "node35", "--demo")
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize("output", ["wide", "yaml"])
def test_other_formats(output: str) -> None:
    assert "node35" in kindred("drain", "node35", "--demo", "-o", output).stdout
