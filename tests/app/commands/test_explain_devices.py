"""Devices of a dump, in explanations of the command."""

from collections.abc import Sequence
from pathlib import Path

from click.testing import CliRunner

from app.commands.cli import main
from tests.app.feeds.dumps import as_json, kinded, listed
from tests.builders import make_namespace, make_node, make_pod


def test_devices_of_a_dump_are_judged_or_the_command_adds_them(tmp_path: Path) -> None:
    api = {"apiVersion": "resource.k8s.io/v1"}
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": "n1", "pool": pool, "devices": [{"name": "g0"}]}
    slices = [api | {"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}]
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}]
    claim = api | {"kind": "ResourceClaim", "spec": {"devices": {"requests": requests}}}
    results = [{"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "g0"}]
    mine = claim | {"metadata": {"name": "mine", "namespace": "default"}}
    in_status = {"allocation": {"devices": {"results": results}}}
    taken_by = claim | {"metadata": {"name": "other", "namespace": "default"}, "status": in_status}
    pod = make_pod("p").obj() | {"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}]}}
    device_class = api | {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    nodes = kinded(make_node("n1").allocatable(pods=10), make_namespace("default"))
    plain = [*nodes, {"kind": "Pod", **pod}, device_class, mine]

    def text(*objects: object, more: Sequence[str] = (), release: str = "1.36") -> str:
        (tmp_path / "devices.json").write_bytes(as_json(listed(*objects)))
        arguments = "--snapshot", f"{tmp_path}/devices.json", "default/p", *more
        result = CliRunner().invoke(main, ["explain", *arguments], env={"KINDRED_KUBERNETES": release})
        return " ".join(result.stdout.split())

    assert "fits on 1 of 1 node" in text(*plain, *slices)
    taken = text(*plain, *slices, taken_by)
    assert "fits on none of 1 node" in taken
    assert "cannot allocate all claims (DynamicResources" in taken
    user = make_pod("user").uid("user").on("n1").obj()
    user["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "other"}]
    reserved = {"reservedFor": [{"resource": "pods", "name": "user", "uid": "user"}]}
    in_use = taken_by | {"status": in_status | reserved}, {"kind": "Pod", **user}
    assert "1 held by default/user, none free" in text(*plain, *slices, *in_use)
    assert "fits on 1 of 1 node" in text(*plain, *slices, *in_use, more=("--remove", "default/user"))
    of_more = {"nodeName": "n2", "pool": pool | {"name": "n2"}}
    more = [
        slices[0] | {"metadata": {"name": "s2"}, "spec": spec | of_more},
        *kinded(make_node("n2").allocatable(pods=1)),
    ]
    (tmp_path / "bare.json").write_bytes(as_json(listed(*more[1:])))
    (tmp_path / "more.json").write_bytes(as_json(listed(*more)))
    assert "fits on none of 2 nodes" in text(*plain, *slices, *in_use, more=("--add-node", f"{tmp_path}/bare.json"))
    with_devices = text(*plain, *slices, *in_use, more=("-o", "wide", "--add-node", f"{tmp_path}/more.json"))
    assert "fits on 1 of 2 nodes" in with_devices
    assert "Supposed more nodes: n2 more devices: s2" in with_devices
    for objects, verdict in ((slices, "may fit on 1 of 1 node"), ([*slices, taken_by], "fits on none of 1 node")):
        without_rules = text(*plain, *objects, release="1.37")
        assert verdict in without_rules
        assert "taints by DeviceTaintRules: the dump has no devicetaintrules" in without_rules
    none = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRuleList", "items": []}
    assert "Not judged" not in text(*plain, *slices, none, release="1.37")
    for some, kinds in (([mine], "deviceclasses"), ([device_class], "resourceslices,resourceclaims")):
        lacking = text(*nodes, {"kind": "Pod", **pod}, *some)
        assert f"Not judged: DynamicResources: the dump has no {kinds.replace(',', ', ')}" in lacking
        lists = [f"kubectl get --raw /apis/resource.k8s.io/v1/{each} >>" for each in kinds.split(",")]
        assert all(each in lacking for each in lists)
        assert "may fit on 1 of 1 node" in lacking


def test_the_devices_of_pods_that_a_controller_deletes_first_are_free(tmp_path: Path) -> None:
    api = {"apiVersion": "resource.k8s.io/v1"}
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": "n1", "pool": pool, "devices": [{"name": "g0"}]}
    claimed = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "train-1", "uid": "train-1", "controller": True}
    results = [{"request": "r", "driver": "gpu.example.com", "pool": "n1", "device": "g0"}]
    users = [{"resource": "pods", "name": "train-1", "uid": "train-1"}]
    old = make_pod("train-1").uid("train-1").owned_by("DaemonSet", "train", "d").on("n1").obj()
    old["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    old["status"] = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "train-1-gpu"}]}
    in_use = {
        "kind": "ResourceClaim",
        "metadata": {"name": "train-1-gpu", "namespace": "default", "ownerReferences": [owner]},
        "spec": claimed,
        "status": {"allocation": {"devices": {"results": results}}, "reservedFor": users},
    }
    objects = [
        *kinded(make_node("n1").allocatable(pods=10), make_namespace("default")),
        api | {"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec},
        api | {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        api | {"kind": "ResourceClaimTemplate", "metadata": {"name": "one"}, "spec": {"spec": claimed}},
        api | in_use,
        {"apiVersion": "v1", "kind": "Pod", **old},
    ]
    (tmp_path / "dump.json").write_bytes(as_json(listed(*objects)))
    of_pod = {"containers": [{"name": "c", "image": "x:2"}], "resourceClaims": old["spec"]["resourceClaims"]}
    template = {"metadata": {"labels": {"app": "train"}}, "spec": of_pod}
    metadata = {"name": "train", "namespace": "default", "uid": "d"}
    workload = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": {"template": template}}
    (tmp_path / "next.json").write_bytes(as_json(workload))
    arguments = "--snapshot", f"{tmp_path}/dump.json", "-f", f"{tmp_path}/next.json"
    result = CliRunner().invoke(main, ["explain", *arguments], env={"KINDRED_KUBERNETES": "1.36"})
    text = " ".join(result.stdout.split())
    assert "its present pods are supposed gone: 1" in text
    assert "fits on 1 of 1 node" in text
