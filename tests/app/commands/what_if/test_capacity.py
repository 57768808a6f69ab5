"""`kindred capacity`: how many more pods fit, what stops the next one, and how many nodes are needed."""

from pathlib import Path
from typing import Final

import pytest

from tests.app.commands.invoked import kindred
from tests.app.commands.what_if.asking import NODES, deployment, dump, manifest, node, replica, response
from tests.builders import Object, PodBuilder, make_pod


def test_as_many_fit_as_the_nodes_have_room_for(tmp_path: Path) -> None:
    """Nodes of 4 cpu, one of which has a pod of 1: three and four more of 1 cpu."""
    path = dump(tmp_path, *NODES, replica("web-1a-x", "n1"), deployment())
    status, found = response("capacity", "deploy/web", "--snapshot", path)
    counts = found["capacity"]
    assert (status, found["of"], counts["placed"], counts["least"], counts["most"]) == (
        0,
        ["Deployment shop/web"],
        7,
        7,
        7,
    )
    assert counts["by_zone"] == {"a": 3, "b": 4}
    assert counts["rejected"]["reasons"] == {"Insufficient cpu": 2}
    assert counts["fill"]["cpu"] == {"requested": 8000, "allocatable": 8000}


@pytest.mark.parametrize(("replicas", "status"), [(7, 0), (8, 1), (100_000, 1)])
def test_fewer_than_asked_for_ends_with_1(tmp_path: Path, replicas: int, status: int) -> None:
    path = dump(tmp_path, *NODES, replica("web-1a-x", "n1"), deployment())
    found = response("capacity", "deploy/web", "--replicas", replicas, "--snapshot", path)
    assert (found[0], found[1]["capacity"]["placed"]) == (status, 7)


def test_a_manifest_and_an_existing_pod_are_templates_too(tmp_path: Path) -> None:
    path = dump(tmp_path, *NODES, replica("web-1a-x", "n1"), deployment(cpu="2"))
    of_file = response("capacity", "-f", manifest(tmp_path, deployment("new", cpu="3")), "--snapshot", path)[1]
    assert (of_file["of"], of_file["capacity"]["placed"]) == (["Deployment shop/new"], 2)
    of_pod = response("capacity", "web-1a-x", "-n", "shop", "--snapshot", path)[1]
    assert (of_pod["of"], of_pod["capacity"]["placed"]) == (["Pod shop/web-1a-x"], 3)  # of the present template


def test_without_the_workload_a_pod_of_it_is_the_template(tmp_path: Path) -> None:
    path = dump(tmp_path, *NODES, replica("web-1a-x", "n1"))
    result = kindred("capacity", "shop/deploy/web", "--snapshot", path)
    assert "7 more fit: Deployment shop/web." in result.stdout
    assert "as the running pod, no Deployment is at hand" in result.stdout


def test_several_are_placed_in_turns(tmp_path: Path) -> None:
    """3 of 1 cpu and 1 of 2 cpu take 5: once whole on 8 cpu, then the three of 1 cpu that are left."""
    path = dump(tmp_path, *NODES, deployment(), deployment("api", cpu="2"))
    _, found = response("capacity", "deploy/web", "deploy/api", "--mix", "3,1", "--snapshot", path, "--orders", "1")
    assert found["capacity"]["by_template"] == [6, 1]
    assert found["capacity"]["stopped_at"] == 1


def test_pending_pods_come_first(tmp_path: Path) -> None:
    waits = make_pod("waits").in_namespace("shop").requests(cpu="3").phase("Pending")
    large = make_pod("large").in_namespace("shop").requests(cpu="9").phase("Pending")
    path = dump(tmp_path, *NODES, waits, large, deployment())
    result = kindred("capacity", "deploy/web", "--snapshot", path)
    assert "5 more fit: Deployment shop/web." in result.stdout
    assert "Before them, 1 of 2 pending pods find a place." in result.stdout
    assert "shop/large: no place: 0/2 nodes are available: 2 Insufficient cpu" in result.stdout


@pytest.mark.parametrize(("replicas", "status"), [(1, 0), (2, 1)])
def test_enough_is_in_every_order(tmp_path: Path, replicas: int, status: int) -> None:
    """A pending pod of 3 cpu leaves room for one more, and a pending pod of 2 cpu for two."""
    waits = [make_pod(f"waits-{cpu}").in_namespace("shop").requests(cpu=cpu).phase("Pending") for cpu in "23"]
    path = dump(tmp_path, node("n1"), *waits, deployment())
    words = "deploy/web", "--replicas", replicas, "--orders", "20", "--snapshot", path
    found = response("capacity", *words)
    assert (found[0], found[1]["capacity"]["least"], found[1]["capacity"]["most"]) == (status, 1, replicas)


def test_nodes_like_another_are_added_for_what_does_not_fit(tmp_path: Path) -> None:
    daemon = make_pod("proxy-x").in_namespace("shop").owned_by("DaemonSet", "proxy", "d").requests(cpu="1").on("n1")
    path = dump(tmp_path, *NODES, daemon, deployment(cpu="3"))
    status, found = response(
        "capacity", "deploy/web", "--replicas", "5", "--add-node-like", "n1", "--in-zone", "z", "--snapshot", path
    )
    assert (status, len(found["capacity"]["added"]), found["capacity"]["added_zone"]) == (0, 3, "z")
    text = kindred("capacity", "deploy/web", "--replicas", "5", "--add-node-like", "n1", "--snapshot", path).stdout
    assert "3 nodes like n1 in zone a are needed." in text


def test_an_added_node_is_in_its_zone_by_every_label_of_a_zone(tmp_path: Path) -> None:
    """Volumes are bound to the zone by the label of their CSI driver, which the cloud sets as the other one."""
    driver, beta = "topology.ebs.csi.aws.com/zone", "failure-domain.beta.kubernetes.io/zone"
    labelled = node("n1").label(driver, "a").label(beta, "a").label("topology.example.com/zone", "other")
    nodes = [labelled, node("n2", "b", cpu="1")]
    path = dump(tmp_path, *nodes, deployment(cpu="3", nodeSelector={driver: "z", beta: "z"}))
    words = "capacity", "deploy/web", "--replicas", "1", "--snapshot", path, "--add-node-like"
    assert response(*words, "n1", "--in-zone", "z")[1]["capacity"]["added"] == ["n1-copy-1"]
    for selector in ({driver: "a"}, {"topology.example.com/zone": "z"}):
        path = dump(tmp_path, *nodes, replica("web-1a-x", "n1"), deployment(cpu="4", nodeSelector=selector))
        assert response(*words, "n1", "--in-zone", "z")[1]["capacity"]["added"] == []


def test_that_a_workload_has_other_pods_too_is_said(tmp_path: Path) -> None:
    jobs = [{"name": name, "template": {"spec": deployment()["spec"]}} for name in ("driver", "worker")]
    job_set = {**deployment("train"), "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    path = manifest(tmp_path, {**job_set, "spec": {"replicatedJobs": jobs}})
    text = " ".join(kindred("capacity", "-f", path, "--snapshot", dump(tmp_path, *NODES)).stdout.split())
    assert (
        "1 pod of JobSet shop/train: not judged: the pods of spec.replicatedJobs[1].template.spec.template, as those"
        " that fit are of spec.replicatedJobs[0].template.spec.template." in text
    )


def test_nodes_for_the_pending_pods_alone(tmp_path: Path) -> None:
    waits = [make_pod(f"waits-{each}").in_namespace("shop").requests(cpu="4").phase("Pending") for each in range(4)]
    path = dump(tmp_path, *NODES, *waits)
    result = kindred("capacity", "--add-node-like", "n1", "--snapshot", path)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "4 of 4 pending pods find a place.")
    assert "2 nodes like n1 in zone a are needed." in result.stdout


def test_nodes_that_do_not_help_all_are_not_said_to_be_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = [make_pod(f"waits-{at}").in_namespace("shop").requests(cpu=cpu) for at, cpu in enumerate("4449")]
    path = dump(tmp_path, *NODES, *(each.phase("Pending") for each in waits))
    words = "capacity", "--add-node-like", "n1", "--snapshot", path
    assert "1 node like n1 in zone a is added." in kindred(*words).stdout
    for module in ("app.commands.what_if.capacity", "app.simulation.questions"):
        monkeypatch.setattr(f"{module}.MAX_ADDED", 1)
    assert "1 node like n1 in zone a is added, as many as Kindred adds." in kindred(*words).stdout


CLAIM: Final[Object] = {
    "kind": "PersistentVolumeClaim",
    "apiVersion": "v1",
    "metadata": {"namespace": "shop", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
    "spec": {"storageClassName": "fast", "accessModes": ["ReadWriteOncePod"], "volumeName": "v"},
    "status": {"phase": "Bound"},
}
VOLUME: Final[Object] = {"kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": "v"}, "spec": {}}


def claim(name: str, **metadata: object) -> Object:
    return CLAIM | {"metadata": {**CLAIM["metadata"], "name": name, **metadata}}


def fast(mode: str) -> Object:
    made = {"metadata": {"name": "fast"}, "provisioner": "x", "volumeBindingMode": mode}
    return {"kind": "StorageClass", "apiVersion": "storage.k8s.io/v1", **made}


def stateful_set() -> Object:
    claims = [{"metadata": {"name": "data"}, "spec": {"storageClassName": "fast", "accessModes": ["ReadWriteOncePod"]}}]
    found = deployment("db")
    return found | {"kind": "StatefulSet", "spec": {**found["spec"], "volumeClaimTemplates": claims}}


OF_ANOTHER_CLASS: Final = {**claim("data-db-0"), "spec": {**CLAIM["spec"], "storageClassName": "former"}}


@pytest.mark.parametrize("retained", [[], [claim("data-db-0"), VOLUME], [OF_ANOTHER_CLASS, VOLUME]])
@pytest.mark.parametrize("mode", ["WaitForFirstConsumer", "Immediate"])
def test_each_replica_of_a_stateful_set_brings_claims_of_its_own(
    tmp_path: Path, retained: list[Object], mode: str
) -> None:
    """Also where a claim of a former replica is left. They are those of the template, whatever that one is like."""
    path = dump(tmp_path, *NODES, fast(mode), *retained)
    words = "capacity", "-f", manifest(tmp_path, stateful_set()), "--snapshot", path
    assert response(*words)[1]["capacity"]["placed"] == 8
    not_known = "claim data-db-0: class fast makes its volume before the pod is scheduled; where is not known"
    assert (not_known in " ".join(kindred(*words).stdout.split())) == (mode == "Immediate")


@pytest.mark.parametrize("mode", ["WaitForFirstConsumer", "Immediate"])
@pytest.mark.parametrize("owner", [[], [stateful_set()]])
@pytest.mark.parametrize("of", ["sts/db", "db-0", "pod/db-0"])
def test_so_does_each_that_is_like_a_running_one(tmp_path: Path, owner: list[Object], of: str, mode: str) -> None:
    """The claim of the running one is in use, and only one pod may have it."""
    pod = make_pod("db-0").in_namespace("shop").label("app", "db").requests(cpu="1").phase("Running").on("n1")
    pod = pod.volume({"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}})
    stored = pod.owned_by("StatefulSet", "db", "s")
    path = dump(tmp_path, *NODES, fast(mode), claim("data-db-0"), VOLUME, stored, *owner)
    assert response("capacity", of, "-n", "shop", "--snapshot", path)[1]["capacity"]["placed"] == 7


def test_each_replica_like_a_pod_has_ephemeral_claims_of_its_own(tmp_path: Path) -> None:
    spec = {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"]}
    volume = {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web-1a-x", "uid": "uid-web-1a-x", "controller": True}
    own = claim("web-1a-x-data", ownerReferences=[owner])
    path = dump(tmp_path, *NODES, fast("WaitForFirstConsumer"), own, VOLUME, replica("web-1a-x", "n1").volume(volume))
    assert response("capacity", "web-1a-x", "-n", "shop", "--snapshot", path)[1]["capacity"]["placed"] == 7


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "Error: give a workload, a pod or a manifest, or a node to add for the pending pods"),
        (("deploy/none",), "Error: deploy/none: there is no such pod, and no pod of such a workload: ask"),
        (("ds/proxy",), "Error: ds/proxy: its pods belong to nodes, and it has no replicas"),
        (("proxy-x",), "Error: proxy-x: its pods belong to nodes, and it has no replicas"),
        (("deploy/web", "--mix", "1,2"), "Error: --mix 1,2: expected 1 number of at least 1"),
        (("deploy/web", "--mix", "1,x"), "Error: --mix 1,x: expected numbers with commas"),
        (("deploy/web", "--mix", "0"), "Error: --mix 0: expected 1 number of at least 1"),
        (("--add-node-like", "n9"), "Error: --add-node-like n9: no such node"),
        (("deploy/web", "--add-node-like", "n1"), "Error: --add-node-like: give replicas, too"),
        (("deploy/web", "--in-zone", "z"), "Error: --in-zone: give a node to add, too"),
        (("deploy/web", "--replicas", "1000001"), "1000001 is not in the range 1<=x<=1000000."),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: tuple[str, ...], error: str) -> None:
    daemon = make_pod("proxy-x").in_namespace("shop").owned_by("DaemonSet", "proxy", "d").on("n1")
    path = dump(tmp_path, *NODES, daemon, replica("web-1a-x", "n1"))
    result = kindred("capacity", *arguments, "--snapshot", path)
    assert result.exit_code == 2
    assert error in result.stderr.splitlines()[-1]


def test_workloads_of_one_name_in_two_namespaces(tmp_path: Path) -> None:
    other = replica("web-1a-y", "n2").in_namespace("dev")
    path = dump(tmp_path, *NODES, replica("web-1a-x", "n1"), other)
    result = kindred("capacity", "deploy/web", "--snapshot", path)
    assert "there are several of that name, in dev, shop: give a namespace" in result.stderr


@pytest.mark.parametrize("pods", [[], [replica("web-1a-x", "n1")]])
def test_stored_workloads_of_one_name_in_two_namespaces(tmp_path: Path, pods: list[PodBuilder]) -> None:
    """Also where not all of them have pods."""
    other = deployment()
    other["metadata"]["namespace"] = "dev"
    result = kindred("capacity", "deploy/web", "--snapshot", dump(tmp_path, *NODES, *pods, deployment(), other))
    assert "there are several of that name, in dev, shop: give a namespace" in result.stderr


def test_a_daemon_set_has_no_replicas(tmp_path: Path) -> None:
    found = deployment("proxy") | {"kind": "DaemonSet"}
    for words in (("-f", manifest(tmp_path, found)), ("ds/proxy",)):
        result = kindred("capacity", *words, "--snapshot", dump(tmp_path, *NODES, found))
        assert "Error: DaemonSet shop/proxy: its pods belong to nodes, and it has no replicas" in result.stderr


def test_a_cluster_without_nodes(tmp_path: Path) -> None:
    result = kindred("capacity", "deploy/web", "--snapshot", dump(tmp_path, deployment()))
    text = " ".join(result.stdout.split())
    assert "The next one of Deployment shop/web has no place: no nodes available to schedule pods." in text


@pytest.mark.parametrize("output", ["table", "wide", "yaml"])
def test_the_demo_in_other_formats(output: str) -> None:
    result = kindred("capacity", "shop/deploy/api", "--replicas", "9", "--demo", "-o", output)
    assert "eu-west-1c" in result.stdout
    assert output != "table" or max(map(len, result.stdout.splitlines())) <= 80
