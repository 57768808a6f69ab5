"""`--snapshot`: files, folders and pipes; and what the commands say of a dump that lacks kinds of objects."""

import gzip
import json
import resource
import time
import zlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click import unstyle
from click.testing import Result

from app.demo import demo_cluster
from app.objects.resources import DUMP_COMMAND
from tests.app.commands.invoked import kindred
from tests.app.feeds.dumps import as_json, kinded, listed
from tests.builders import Object, make_namespace, make_node, make_pod, term

DATA = Path(__file__).parents[1] / "feeds" / "data"
HOST = "kubernetes.io/hostname"
NODE = make_node("n1").label(HOST, "n1").allocatable(cpu="1", pods=10)
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


def saved(folder: Path, name: str, text: bytes) -> str:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(text)
    return str(folder / name)


def one_line(result: Result) -> str:
    return " ".join(unstyle(result.output).split())


def explained(folder: Path, *items: Object, pod: str = "default/p") -> Result:
    return kindred("explain", pod, "--snapshot", saved(folder, "dump.json", as_json(listed(*items))), "-o", "wide")


# Forms of files.


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        (
            b"kind: Pod\nmetadata:\n  name: {{ .Release.Name }}\n",
            "it has {{ }} of a template, which `helm template` renders",
        ),
        (b"services:\n  web: {image: nginx}\n", "kind: expected Pod, or a kind with a pod template, found services"),
        (b"replicaCount: 1\nimage: {repository: nginx}\n", "with a pod template, found replicaCount, image"),
    ],
)
def test_what_is_no_manifest_says_what_it_is(text: bytes, stated: str, tmp_path: Path) -> None:
    result = kindred("explain", "-f", saved(tmp_path, "x.yaml", text), "--demo")
    assert result.exit_code == 2
    assert stated in result.stderr


def test_an_empty_dump_says_how_it_comes_about(tmp_path: Path) -> None:
    """Source: k8s.io/cli-runtime pkg/resource/builder.go (mappingFor)."""
    result = kindred("pending", "--snapshot", saved(tmp_path, "dump.json", b""))
    assert "nothing was dumped; kubectl prints nothing if it does not know a kind" in result.stderr


TEXT = as_json(listed(*kinded(NODE, make_pod("p"), make_namespace("default"))))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(TEXT.decode().encode("utf-16"), id="powershell"),  # kubernetes/kubernetes#39007, fluxcd/flux2#1126
        pytest.param(b"\xfe\xff" + TEXT.decode().encode("utf-16-be"), id="utf-16-be"),
        pytest.param(b"\xef\xbb\xbf" + TEXT, id="utf-8-with-mark"),
        pytest.param(gzip.compress(TEXT), id="gzip"),
        pytest.param(
            b"Warning: v1 ComponentStatus is deprecated in v1.19+\n"
            b"I1126 10:00:00.000001    1 request.go:729] Waited for 1.19s due to client-side throttling\n" + TEXT,
            id="messages-of-kubectl",
        ),
    ],
)
def test_a_file_is_read_in_the_encodings_of_windows_compressed_and_after_messages(text: bytes, tmp_path: Path) -> None:
    result = kindred("pending", "-o", "name", "--snapshot", saved(tmp_path, "dump", text))
    assert (result.stdout, result.exit_code) == ("pod/p\n", 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT.decode().encode("utf-16")[:-1], "Error: --snapshot: UTF-16: truncated data\n"),
        (gzip.compress(TEXT)[:-9], "Error: --snapshot: gzip: truncated\n"),
        (gzip.compress(TEXT)[:20] + b"\xff" * 40, "Error: --snapshot: gzip: "),
        (
            gzip.compress(bytes(1 << 24)),
            "Error: --snapshot: a NUL at byte 0: neither JSON nor YAML in UTF-8 or UTF-16\n",
        ),
    ],
    ids=["utf-16-cut", "gzip-cut", "gzip-broken", "gzip-of-zeros"],
)
def test_a_broken_encoding_is_named(text: bytes, expected: str, tmp_path: Path) -> None:
    result = kindred("pending", "--snapshot", saved(tmp_path, "dump", text))
    assert result.stderr.startswith(expected)
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"NAME    READY   STATUS\nweb-0   0/1     Pending\n", "this is the table that kubectl prints; add -o json"),
        (
            b"Name:         web-0\nLabels:       app=web\n",
            "this is what `kubectl describe` prints; use `kubectl get -o json`",
        ),
        (b"./pods.json" + bytes(246) + b"ustar  \0", "this is an archive; unpack it, and give the folder"),
        (b"k8s\0\n\x09\n\x02v1", "this is an object in protobuf, as etcd has it"),
    ],
    ids=["table", "described", "tar", "protobuf"],
)
def test_a_manifest_and_a_dump_that_are_none_say_what_they_are(text: bytes, expected: str, tmp_path: Path) -> None:
    file = saved(tmp_path, "file", text)
    assert kindred("pending", "--snapshot", file).stderr.endswith(f": {expected}\n")
    assert kindred("explain", "-f", file, "--demo").stderr.endswith(f": {expected}.\n")


def test_a_compressed_text_without_end_is_refused_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.commands.dump.MAX_DUMP_BYTES", 1 << 20)
    pack = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    packed = b"".join([*(pack.compress(b" " * (1 << 20)) for _ in range(256)), pack.flush()])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = kindred("pending", "--snapshot", saved(tmp_path, "dump", packed))
    assert result.stderr == "Error: --snapshot: more than 1048576 bytes (the largest dump)\n"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # KiB; unpacked, it has 256 MiB


def test_a_pipe_of_several_commands_is_read() -> None:
    result = kindred("pending", "-o", "name", "--snapshot", "-", stdin=TEXT + as_json(listed(*kinded(make_pod("q")))))
    assert result.stdout == "pod/p\npod/q\n"


def test_a_folder_is_all_its_files_of_json_and_yaml_and_the_others_are_named(tmp_path: Path) -> None:
    # The folders of openshift/must-gather#188, and other files of such folders.
    saved(tmp_path, "cluster-scoped-resources/core/nodes/n1.yaml", as_json(kinded(NODE)[0]))
    saved(tmp_path, "namespaces/default/core/pods.yaml", as_json({**listed(make_pod("p").obj()), "kind": "PodList"}))
    saved(tmp_path, "namespaces/default/pods/p/p.yaml", as_json(kinded(make_pod("p"))[0]))
    saved(tmp_path, "namespaces/default/pods/p/p/logs/current.log", b"{")
    empty = {"apiVersion": "v1", "kind": "PersistentVolumeClaimList", "items": []}
    saved(tmp_path, "namespaces/default/core/persistentvolumeclaims.yaml", as_json(empty))
    saved(tmp_path, "monitoring/alerts.json", b'{"status":"success","data":{}}')
    saved(tmp_path, "etcd_info/endpoint_status.json", b'[{"Endpoint":"https://10.0.0.1:2379"}]')
    result = kindred("pending", "-o", "name", "--snapshot", str(tmp_path))
    assert result.stdout == "pod/p\n"
    assert result.stderr == (
        "Left out: etcd_info/endpoint_status.json: [0].kind: required\n"
        "Left out: monitoring/alerts.json: kind: required, found status, data\n"
        "Loaded 1 nodes, 1 pods, 0 namespaces (1 pods pending or ended: not counted); 1\n"
        "  there more than once (the newest counts)\n"
    )


def test_a_file_of_a_folder_that_was_cut_off_is_an_error_unless_it_may_be_skipped(tmp_path: Path) -> None:
    saved(tmp_path, "nodes.json", as_json(kinded(NODE)[0]))
    saved(tmp_path, "pods.json", as_json(listed(*kinded(make_pod("p"))))[:-9])
    cut = "pods.json: malformed JSON: input data was truncated\n"
    result = kindred("pending", "--snapshot", str(tmp_path))
    assert (result.exit_code, result.stderr) == (2, f"Error: {cut}")
    result = kindred("pending", "--snapshot", str(tmp_path), "--skip-invalid")
    assert (result.exit_code, result.stderr.splitlines(keepends=True)[0]) == (0, f"Left out: {cut}")


def test_what_a_folder_lacks_is_added_to_one_file(tmp_path: Path) -> None:
    saved(tmp_path, "nodes.json", as_json(kinded(NODE)[0]))
    volume = {"name": "d", "persistentVolumeClaim": {"claimName": "c"}}
    saved(tmp_path, "p.json", as_json({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"volumes": [volume]}}))
    assert f" >> {tmp_path}/more.json" in kindred("explain", "default/p", "--snapshot", str(tmp_path)).output


def test_a_folder_without_an_object_is_no_dump(tmp_path: Path) -> None:
    saved(tmp_path, "nodes.txt", TEXT)
    result = kindred("pending", "--snapshot", str(tmp_path))
    assert result.stderr == "Error: --snapshot: no object in 0 files of .json, .yaml, .yml\n"
    assert result.exit_code == 2


def test_help_has_the_whole_command_in_one_line() -> None:
    for command in ("explain", "pending", "filter", "serve"):
        assert f" {DUMP_COMMAND} > cluster.json\n" in kindred(command, "--help").output


# What a dump lacks.


def test_the_volume_rules_of_a_dump_without_claims_are_not_judged_and_the_others_are(tmp_path: Path) -> None:
    # aws/karpenter-provider-aws#2971, kubernetes/kubernetes#81020
    dump = saved(tmp_path, "dump.json", (DATA / "without-claims.json").read_bytes())
    result = kindred("explain", "default/db-0", "--snapshot", dump)
    assert "create the PersistentVolumeClaim" not in one_line(result)
    assert "Insufficient cpu (NodeResourcesFit" in one_line(result)
    reported = [line for line in result.stdout.splitlines() if line.startswith("Not judged: ")]
    assert reported == ["Not judged: VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone: the"]
    kinds = "pv,pvc,sc,csinodes,csidrivers,csistoragecapacities,volumeattachments"
    assert f"  kubectl get -A -o json {kinds} >> {dump}\n" in result.stdout


def test_what_the_command_adds_to_the_dump_is_judged(tmp_path: Path) -> None:
    pod = kinded(make_pod("p").volume(CLAIM))
    assert "may fit on 1 of 1 node" in one_line(explained(tmp_path, *kinded(NODE), *pod))
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "other", "namespace": "default"}}
    csi_node = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n1"}}
    with (tmp_path / "dump.json").open("ab") as dump:
        dump.write(as_json(listed(claim, csi_node)))
    result = kindred("explain", "default/p", "--snapshot", str(tmp_path / "dump.json"))
    assert 'persistentvolumeclaim "data" not found' in one_line(result)
    assert result.exit_code == 1


def test_a_claim_that_the_scheduler_did_not_find_is_not_there(tmp_path: Path) -> None:
    (pod,) = kinded(make_pod("p").volume(CLAIM))
    message = '0/1 nodes are available: persistentvolumeclaim "data" not found. preemption: not helpful.'
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    reported = one_line(explained(tmp_path, *kinded(NODE), {**pod, "status": {"conditions": [condition]}}))
    assert "Pod default/p fits on none of 1 node." in reported
    assert 'persistentvolumeclaim "data" not found (VolumeRestrictions' in reported


NEAR = {"matchLabels": {"app": "db"}}
OTHER = make_pod("db").in_namespace("data").label("app", "db").on("n1")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"matchLabels": {"kubernetes.io/metadata.name": "data"}}, "fits on 1 of 1 node"),
        ({"matchLabels": {"kubernetes.io/metadata.name": "elsewhere"}}, "fits on none of 1 node"),
        ({}, "fits on 1 of 1 node"),
        ({"matchLabels": {"team": "data"}}, "Not judged: InterPodAffinity: the dump has no Namespace of some pods"),
    ],
    ids=["by-name", "by-another-name", "any", "by-label"],
)
def test_namespaces_of_pods_are_known_by_name_and_not_by_other_labels(
    selector: Object, expected: str, tmp_path: Path
) -> None:
    pod = make_pod("p").required_affinity({**term(HOST, NEAR), "namespaceSelector": selector})
    assert expected in one_line(explained(tmp_path, *kinded(NODE, pod, OTHER)))


def test_a_term_of_another_pod_by_labels_of_namespaces_is_not_judged(tmp_path: Path) -> None:
    repels = {**term(HOST, {"matchLabels": {"app": "p"}}), "namespaceSelector": {"matchLabels": {"team": "x"}}}
    other = make_pod("other").in_namespace("data").required_anti_affinity(repels).on("n1")
    reported = one_line(explained(tmp_path, *kinded(NODE, make_pod("p").label("app", "p"), other)))
    assert "Not judged: InterPodAffinity: the dump has no Namespace of some pods" in reported
    assert "fits on 1 of 1 node" in one_line(explained(tmp_path, *kinded(NODE, make_pod("p").label("app", "q"), other)))


def test_a_score_that_needs_what_is_not_there_changes_no_verdict(tmp_path: Path) -> None:
    reported = one_line(explained(tmp_path, *kinded(NODE, make_pod("p").label("app", "p"))))
    assert "Pod default/p fits on 1 of 1 node." in reported
    assert "not in these scores: PodTopologySpread: the dump has no services, replicasets, statefulsets, " in reported


STATIC = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"}}
STATIC |= {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
DYNAMIC = {**STATIC, "provisioner": "disk.csi.example"}


@pytest.mark.parametrize(
    ("spec", "storage_class", "rules"),
    [
        ({"volumeName": "v"}, None, "VolumeBinding, VolumeZone"),
        ({"storageClassName": "local"}, None, "VolumeBinding, VolumeZone"),
        ({"storageClassName": "local"}, STATIC, "VolumeBinding, VolumeZone"),
        ({"storageClassName": "local"}, DYNAMIC, "VolumeBinding: capacity for new volumes"),
    ],
    ids=["bound", "class-unknown", "static", "made"],
)
def test_a_claim_is_judged_as_far_as_the_objects_behind_it_are_there(
    spec: Object, storage_class: Object | None, rules: str, tmp_path: Path
) -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec}
    claim["metadata"] = {
        "name": "data",
        "namespace": "default",
        "annotations": {"pv.kubernetes.io/bind-completed": "yes"} if "volumeName" in spec else None,
    }
    items = [claim, *([storage_class] if storage_class else []), *kinded(NODE, make_pod("p").volume(CLAIM))]
    reported = one_line(explained(tmp_path, *items))
    assert f"{rules}: the dump has no " in reported
    assert "may fit on 1 of 1 node" in reported


def test_nodes_without_any_pod_are_said_to_be_judged_as_empty(tmp_path: Path) -> None:
    warning = "Warning: the dump has no pod; nodes are judged as if they were empty. This adds them:\n"
    warning += f"  kubectl get -A -o json po >> {tmp_path / 'dump.json'}\n"
    pods = {"apiVersion": "v1", "kind": "PodList", "items": []}
    for text, expected in ((as_json(listed(*kinded(NODE))), warning), (as_json(listed(*kinded(NODE), pods)), "")):
        reported = kindred("pending", "--snapshot", saved(tmp_path, "dump.json", text)).stderr
        assert reported == f"Loaded 1 nodes, 0 pods, 0 namespaces\n{expected}"


@pytest.mark.parametrize(
    ("others", "reported"),
    [
        ([], 1),  # kubectl get nodes,pods -o json, without -A
        ([make_pod("q").in_namespace("kube-system").on("n1")], 0),
        ([make_namespace("default")], 0),
        ([make_namespace("default"), make_namespace("kube-system")], 1),
    ],
)
def test_a_dump_of_one_namespace_is_said_to_lack_the_others(
    others: Sequence[Any], reported: int, tmp_path: Path
) -> None:
    dump = saved(tmp_path, "dump.json", as_json(listed(*kinded(NODE, make_pod("p").on("n1"), *others))))
    warning = (
        "Warning: all pods are in the namespace default; those of others use nodes, too. This adds them:\n"
        f"  kubectl get -A -o json po >> {dump}\n"
    )
    assert kindred("pending", "--snapshot", dump).stderr.count(warning) == reported


@pytest.mark.parametrize(
    ("of_claims", "reported"), [(["other"], 1), (["default"], 0), (["default", "other"], 0), ([], 0)]
)
def test_a_dump_with_the_claims_of_one_namespace_is_said_to_lack_the_others(
    of_claims: Sequence[str], reported: int, tmp_path: Path
) -> None:
    """Else a claim of another namespace would not exist. `kubectl get pvc` without -A prints those of one."""
    claims = [{"kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": each}} for each in of_claims]
    pods = make_pod("p").volume(CLAIM), make_pod("q").in_namespace("other").on("n1")
    dump = saved(tmp_path, "dump.json", as_json(listed(*kinded(NODE, *pods), *claims)))
    warning = (
        "Warning: all persistentvolumeclaims are in the namespace other, but pods of others name some. "
        "This adds them:\n"
        f"  kubectl get -A -o json pvc >> {dump}\n"
    )
    assert kindred("pending", "--snapshot", dump).stderr.count(warning) == reported


def test_a_dump_of_pods_alone_says_how_to_add_the_nodes(tmp_path: Path) -> None:
    """`kubectl get all -A -o json` prints no node: kubernetes/kubectl#151."""
    dump = saved(tmp_path, "dump.json", as_json(listed(*kinded(make_pod("p")))))
    reported = kindred("pending", "--snapshot", dump).stderr
    assert "Warning: the dump has no node, so no pod fits anywhere. This adds them:" in reported
    assert f"  kubectl get -A -o json no >> {dump}\n" in reported


def test_pending_says_what_is_not_judged(tmp_path: Path) -> None:
    dump = saved(tmp_path, "dump.json", as_json(listed(*kinded(NODE, make_pod("p").volume(CLAIM)))))
    (pod,) = json.loads(kindred("pending", "--snapshot", dump, "-o", "json").stdout)["classes"]
    assert {each["plugin"] for each in pod["not_judged"]} == {
        "VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits",
    }  # fmt: skip
    assert pod["not_judged"][0]["command"].endswith(f" >> {dump}")


def test_a_response_to_a_scheduler_warns_of_what_its_profile_reads(tmp_path: Path) -> None:
    dump = saved(tmp_path, "dump.json", as_json(listed(*kinded(NODE))))
    pod = saved(tmp_path, "pod.json", make_pod("p").json())
    assert "responses" not in kindred("filter", "--snapshot", dump, "--pod", pod).stderr
    lines = kindred("filter", "--snapshot", dump, "--pod", pod, "--profile", "full").stderr.splitlines()[2:]
    assert lines[1].startswith("Warning: the dump has no persistentvolumes, persistentvolumeclaims, storageclasses, ")
    assert lines[2] == (
        "  kubectl get -A -o json pv,pvc,sc,csinodes,csidrivers,csistoragecapacities,volumeattachments >> " + dump
    )


# The demo.


def test_pods_of_the_demo_wait_for_minutes_whenever_it_is_loaded() -> None:
    pods = json.loads(kindred("pending", "--demo", "-o", "json").stdout)["pods"]
    seconds = {each["pod"]: each["seconds"] for each in pods}
    expected = {"data/queue-3": 537, "batch/train-speech-8wq2d": 360, "dev/integration-test-ktqc8": 180}
    assert seconds == pytest.approx(expected, abs=40)
    waiting = json.loads(kindred("explain", "data/queue-3", "--demo", "-o", "json").stdout)["summary"]["waiting"]
    assert waiting["created"] == waiting["changed"]
    assert time.time() - datetime.fromisoformat(waiting["created"]).timestamp() == pytest.approx(537, abs=40)


def test_devices_of_the_demo_need_no_selectors_because_make_run_installs_nothing_that_evaluates_them() -> None:
    assert '"cel"' not in demo_cluster(0).decode()
    summary = json.loads(kindred("explain", "batch/train-speech-8wq2d", "--demo", "-o", "json").stdout)["summary"]
    assert (summary["not_judged"], summary["nodes"], summary["fit"]) == ([], 60, 0)
    assert "1 held by dev/notebook" in str(summary["amounts"])
