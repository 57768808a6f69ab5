"""Bad input of `kindred filter` and `kindred serve`: one line of error, and exit status 2."""

import json
from pathlib import Path

import pytest
import uvicorn
from click.testing import Result

from tests.app.commands.test_cli import DUMP, LIKES_WEB, LOADED, WANTS_WEB, kindred, saved
from tests.app.dump.dumps import as_json, listed
from tests.app.questions import UNKNOWN, ZONE
from tests.builders import expressed, make_pod, term

BROKEN_NODE = {"kind": "Node", "metadata": {"name": 7}}
NEAR_NOBODY = make_pod("p").required_affinity(term(ZONE, expressed("app", "Near")))
OPERATOR_ERROR = (
    "Pod.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector."
    'matchExpressions[0].operator: "Near" is not a valid label selector operator'
)


@pytest.fixture(autouse=True)
def _nothing_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """See to it that a `serve` which should have been refused fails its test, instead of serving for ever."""

    def refuse(server: uvicorn.Server) -> None:
        raise AssertionError(f"{server} was started")

    monkeypatch.setattr(uvicorn.Server, "run", refuse)


@pytest.fixture
def dump(tmp_path: Path) -> str:
    return saved(tmp_path, "dump.json", as_json(DUMP))


@pytest.fixture
def pod(tmp_path: Path) -> str:
    return saved(tmp_path, "pod.json", WANTS_WEB.json())


def assert_refused(result: Result, message: str) -> None:
    """Hold a command to status 2, nothing on standard output and the message last on standard error."""
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.endswith(f"Error: {message}\n")
    assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize("command", [["serve"], ["filter", "--pod", "-"]], ids=" ".join)
def test_a_profile_that_is_none_is_refused(command: list[str], dump: str) -> None:
    result = kindred(*command, "--snapshot", dump, "--profile", "NodeName=3", stdin=LIKES_WEB.json())
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.endswith("Error: KINDRED_PROFILE='NodeName=3': NodeName=3: only scores have a weight\n")


@pytest.mark.parametrize("both", [False, True], ids=["neither", "both"])
def test_either_a_snapshot_or_the_demo_is_required(both: bool, dump: str, pod: str) -> None:  # noqa: FBT001 - one of two cases
    source = ["--demo", "--snapshot", dump] if both else []
    assert_refused(kindred("filter", *source, "--pod", pod), "Give either --snapshot FILE or --demo.")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--demo", "--snapshot", "DUMP"], "Give either --snapshot FILE or --demo."),
        (["--demo", "--context", "c"], "--kubeconfig and --context are for following a cluster, not for a dump."),
        (
            ["--snapshot", "DUMP", "--kubeconfig", "f"],
            "--kubeconfig and --context are for following a cluster, not for a dump.",
        ),
        (["--skip-invalid"], "--skip-invalid is for a dump; the watch always skips broken objects."),
    ],
    ids=["two-dumps", "demo-and-context", "dump-and-kubeconfig", "skip-invalid-of-a-cluster"],
)
def test_options_of_a_dump_and_of_a_cluster_do_not_mix(arguments: list[str], expected: str, dump: str) -> None:
    assert_refused(kindred("serve", *(dump if each == "DUMP" else each for each in arguments)), expected)


def test_without_any_cluster_it_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    expected = (
        "no cluster is configured: no kubeconfig given, $KUBECONFIG not set, not in a pod (KUBERNETES_SERVICE_HOST not "
        f"set), no file {tmp_path}/.kube/config"
    )
    assert_refused(kindred("serve"), expected)


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = kindred("serve", "--kubeconfig", str(tmp_path / "absent"))
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert str(tmp_path / "absent") in result.stderr


@pytest.mark.parametrize(
    ("option", "arguments"),
    [("--snapshot", ["--snapshot", "absent.json"]), ("--pod", ["--demo", "--pod", "absent.json"])],
    ids=["snapshot", "pod"],
)
def test_a_file_that_is_not_there_is_named(option: str, arguments: list[str]) -> None:
    message = f"Invalid value for '{option}': 'absent.json': No such file or directory"
    assert_refused(kindred("filter", *arguments), message)


def test_a_broken_object_ends_the_command_with_its_name_and_field(pod: str, tmp_path: Path) -> None:
    dump = saved(tmp_path, "dump", as_json(listed(*DUMP["items"], BROKEN_NODE)))
    message = "items[7] (unreadable): metadata.name: expected str | null, got int"
    assert_refused(kindred("filter", "--snapshot", dump, "--pod", pod), message)


def test_broken_objects_are_named_and_counted_when_they_are_skipped(pod: str, tmp_path: Path) -> None:
    items = [*DUMP["items"], *[{"kind": "Node"}] * 25]
    dump = saved(tmp_path, "dump", as_json(listed(*items)))
    result = kindred("filter", "--snapshot", dump, "--skip-invalid", "--pod", pod)
    shown = [f"Invalid: items[{number}] (Node ?): metadata.name: required" for number in range(7, 27)]
    assert result.stderr.splitlines() == [*shown, "... and 5 more", LOADED.rstrip() + "; invalid: 25"]
    assert json.loads(result.stdout)["NodeNames"] == ["a1", "b1"]
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(b"{", "malformed JSON: input data was truncated", id="malformed"),
        pytest.param(b'{"kind":"Pod"}', "the object (Pod ?): metadata.name: required", id="broken-object"),
        pytest.param(
            b"kind: Deployment",
            "items: required; a dump is what `kubectl get nodes,pods,namespaces -A -o json` prints",
            id="no-dump",
        ),
    ],
)
@pytest.mark.parametrize("command", ["serve", "filter"])
def test_what_is_no_dump_is_refused(command: str, text: bytes, message: str, pod: str, tmp_path: Path) -> None:
    question = [] if command == "serve" else ["--pod", pod]
    assert_refused(kindred(command, "--snapshot", saved(tmp_path, "dump", text), *question), message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(b"", "--pod: expected one manifest, found 0.", id="empty"),
        pytest.param(b"a: 1\n---\nb: 2\n", "--pod: expected one manifest, found 2.", id="two"),
        pytest.param(b'{"metadata":{}}', "Pod.metadata.name: required", id="no-name"),
        pytest.param(
            b"kind: Deployment\nmetadata: {name: x}", "Pod.kind: expected Pod, got Deployment", id="another-kind"
        ),
        pytest.param(b"[1]", "Pod: expected object, got array", id="array"),
        pytest.param(b'{"metadata":{', "Pod: malformed JSON: input data was truncated", id="truncated"),
        pytest.param(b'{"metadata":{"name":"p"},"spec":[]}', "Pod.spec: expected object | null, got array", id="spec"),
    ],
)
def test_a_broken_manifest_is_refused_with_the_field(text: bytes, message: str, dump: str, tmp_path: Path) -> None:
    assert_refused(kindred("filter", "--snapshot", dump, "--pod", saved(tmp_path, "p", text)), message)


def test_standard_input_can_be_only_one_of_the_two_files() -> None:
    result = kindred("filter", "--snapshot", "-", "--pod", "-", stdin=as_json(DUMP))
    assert_refused(result, "Pod.kind: expected Pod, got List")


def test_a_pod_with_a_broken_term_is_an_error_of_the_command(dump: str, tmp_path: Path) -> None:
    result = kindred("filter", "--snapshot", dump, "--pod", saved(tmp_path, "p", NEAR_NOBODY.json()))
    assert_refused(result, OPERATOR_ERROR)


def test_a_dump_without_nodes_is_warned_of(pod: str, tmp_path: Path) -> None:
    dump = saved(tmp_path, "dump", as_json(listed()))
    result = kindred("filter", "--snapshot", dump, "--pod", pod, "--nodes", "a1")
    assert result.stderr == (
        "Loaded 0 nodes, 0 pods, 0 namespaces\nWarning: the dump has no node; every request will fail.\n"
    )
    assert json.loads(result.stdout)["FailedAndUnresolvableNodes"] == {"a1": UNKNOWN}


def test_a_node_name_that_is_not_utf_8_is_refused_without_a_traceback(dump: str, pod: str) -> None:
    # The shell's byte 0xff, as Python hands it over.
    result = kindred("filter", "--snapshot", dump, "--pod", pod, "--nodes", "\udcff")
    assert_refused(result, "--nodes: a name is not UTF-8.")
