"""`kindred filter`: the results of the server without a server."""

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import uvicorn
import yaml
from click import unstyle
from click.testing import Result

from app.commands.filter import filter_names, filter_text
from app.commands.output import laid_out
from app.feeds.memory import MemoryLimit
from app.objects.resources import DUMP_COMMAND
from app.settings.settings import Settings
from app.wiring.main import create_service
from tests.app.asgi import ask
from tests.app.commands.invoked import kindred
from tests.app.feeds.dumps import as_json, kinded, listed, load
from tests.app.questions import AFFINITY_RULES, NEAR_WEB, UNKNOWN, ZONE
from tests.builders import expressed, make_namespace, make_node, make_pod, term

DEMO = Path(str(resources.files("app") / "demo"))
DUMP = listed(
    *kinded(
        *(make_node(name).label(ZONE, name[0]) for name in ("a1", "b1", "c1")),
        *(make_pod(f"web-{number}").label("app", "web").on(node) for number, node in enumerate(("a1", "a1", "b1"))),
        make_namespace("default"),
    )
)
LOADED = "Loaded 3 nodes, 3 pods, 1 namespaces\n"
WANTS_WEB = make_pod("p").required_affinity(NEAR_WEB)
LIKES_WEB = make_pod("p").preferred_affinity(10, NEAR_WEB)


@pytest.fixture
def dump(tmp_path: Path) -> str:
    return saved(tmp_path, "dump.json", as_json(DUMP))


@pytest.fixture
def pod(tmp_path: Path) -> str:
    return saved(tmp_path, "pod.json", WANTS_WEB.json())


def saved(folder: Path, name: str, text: bytes) -> str:
    (folder / name).write_bytes(text)
    return str(folder / name)


# The answers.


def test_filter_prints_the_result_over_all_nodes(dump: str, pod: str) -> None:
    result = kindred("filter", "--snapshot", dump, "--pod", pod)
    assert json.loads(result.stdout) == {
        "Nodes": None,
        "NodeNames": ["a1", "b1"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {"c1": AFFINITY_RULES},
        "Error": "",
    }
    assert list(json.loads(result.stdout)) == [
        "Nodes",
        "NodeNames",
        "FailedNodes",
        "FailedAndUnresolvableNodes",
        "Error",
    ]
    assert (result.exit_code, result.stderr) == (0, LOADED)


def test_the_profile_says_which_plugins_answer(dump: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINDRED_PROFILE", "NodePorts")
    pod = saved(tmp_path, "p", WANTS_WEB.node_selector({ZONE: "a"}).json())
    by_profile = {
        profile: json.loads(kindred("filter", "--snapshot", dump, "--pod", pod, *profile.split()).stdout)["NodeNames"]
        for profile in ("", "--profile affinity", "--profile MatchNodeSelector", "--profile full")
    }
    assert by_profile == {
        "": ["a1", "b1", "c1"],
        "--profile affinity": ["a1", "b1"],
        "--profile MatchNodeSelector": ["a1"],
        "--profile full": [],
    }


@pytest.mark.parametrize("request_file", sorted((DEMO / "requests").iterdir()), ids=lambda path: path.stem)
def test_the_demo_answers_its_requests_as_the_server_does(request_file: Path, tmp_path: Path) -> None:
    body = request_file.read_bytes()
    question = json.loads(body)
    pod = saved(tmp_path, "p", json.dumps(question["Pod"]).encode())
    result = kindred("filter", "--demo", "--pod", pod, "--nodes", ",".join(question["NodeNames"]))
    app = create_service(Settings(), load((DEMO / "cluster.json").read_bytes())[0], None).app
    assert ask(app, "POST", "/filter", body).json() == json.loads(result.stdout)
    assert result.exit_code == 0


def test_nodes_out_of_the_partition_fail(dump: str, pod: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINDRED_PARTITION", '{"out":["a1"]}')
    result = json.loads(kindred("filter", "--snapshot", dump, "--pod", pod).stdout)
    assert result["NodeNames"] == ["b1"]
    assert result["FailedAndUnresolvableNodes"]["a1"] == "node(s) out of the scheduler's partition"


# Where the input comes from.


@pytest.mark.parametrize(
    "text",
    [as_json(DUMP), yaml.safe_dump(DUMP).encode(), yaml.safe_dump_all(DUMP["items"]).encode()],
    ids=["json", "yaml", "yaml-documents"],
)
@pytest.mark.parametrize("from_stdin", [False, True], ids=["file", "stdin"])
def test_a_dump_is_read_in_every_form(text: bytes, from_stdin: bool, pod: str, tmp_path: Path) -> None:  # noqa: FBT001 - one of two cases
    snapshot = "-" if from_stdin else saved(tmp_path, "dump", text)
    result = kindred("filter", "--snapshot", snapshot, "--pod", pod, stdin=text if from_stdin else b"")
    assert json.loads(result.stdout)["NodeNames"] == ["a1", "b1"]
    assert (result.exit_code, result.stderr) == (0, LOADED)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(["--nodes", "c1,a1"], ["c1", "a1"], id="a-list"),
        pytest.param(["--nodes", "c1", "--nodes", "a1,b1"], ["c1", "a1", "b1"], id="repeated"),
        pytest.param(["--nodes", ",b1,,"], ["b1"], id="spare-commas"),
        pytest.param([], ["a1", "b1", "c1"], id="left-out"),
        pytest.param(["--nodes", "ghost"], ["ghost"], id="unknown"),
    ],
)
def test_nodes_are_asked_about_in_the_order_given(
    options: list[str], expected: list[str], dump: str, tmp_path: Path
) -> None:
    pod = saved(tmp_path, "p", LIKES_WEB.json())
    result = json.loads(kindred("filter", "--snapshot", dump, "--pod", pod, *options).stdout)
    assert expected == [*result["NodeNames"], *result["FailedAndUnresolvableNodes"]]


# The command itself.


"""Commands whose answer may be no; all others are done, or in error."""


# Help.


NEAR_NOBODY = make_pod("p").required_affinity(term(ZONE, expressed("app", "Near")))
OPERATOR_ERROR = (
    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector."
    'matchExpressions[0].operator: "Near" is not a valid label selector operator'
)


@pytest.fixture(autouse=True)
def _nothing_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """See to it that a `serve` which should have been refused fails its test, instead of serving for ever."""

    def refuse(server: uvicorn.Server) -> None:
        raise AssertionError(f"{server} was started")

    monkeypatch.setattr(uvicorn.Server, "run", refuse)


def assert_rejected(result: Result, message: str) -> None:
    """Hold a command to status 2, nothing on standard output and the message last on standard error."""
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.endswith(f"Error: {message}\n")
    assert isinstance(result.exception, SystemExit)


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
    assert_rejected(kindred("serve", *(dump if each == "DUMP" else each for each in arguments)), expected)


def test_without_any_cluster_it_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    expected = (
        "no cluster is configured: no kubeconfig given, $KUBECONFIG not set, not in a pod (KUBERNETES_SERVICE_HOST not "
        f"set), no file {tmp_path}/.kube/config"
    )
    assert_rejected(kindred("serve"), expected)


def test_broken_objects_are_named_and_counted_when_they_are_skipped(pod: str, tmp_path: Path) -> None:
    items = [*DUMP["items"], *[{"kind": "Node"}] * 25]
    dump = saved(tmp_path, "dump", as_json(listed(*items)))
    result = kindred("filter", "--snapshot", dump, "--skip-invalid", "--pod", pod)
    rendered = [f"Invalid: items[{number}] (Node ?): metadata.name: required" for number in range(7, 27)]
    assert result.stderr.splitlines() == [*rendered, "... and 5 more", LOADED.rstrip() + "; invalid: 25"]
    assert json.loads(result.stdout)["NodeNames"] == ["a1", "b1"]
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(b"{", "malformed JSON: input data was truncated", id="malformed"),
        pytest.param(
            b"kind: Deployment",
            f"no object that a rule reads, but Deployment; a dump is what `{DUMP_COMMAND}` prints",
            id="no-dump",
        ),
    ],
)
@pytest.mark.parametrize("command", ["serve", "filter"])
def test_what_is_no_dump_is_refused(command: str, text: bytes, message: str, pod: str, tmp_path: Path) -> None:
    question = [] if command == "serve" else ["--pod", pod]
    assert_rejected(kindred(command, "--snapshot", saved(tmp_path, "dump", text), *question), message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(b"", "--pod: expected a pod or an object with a pod template, found nothing", id="empty"),
        pytest.param(
            b"a: 1\n---\nb: 2\n",
            "--pod: expected a pod or an object with a pod template, found an object without a kind",
            id="two",
        ),
        pytest.param(b'{"metadata":{', "--pod: malformed JSON: input data was truncated", id="truncated"),
    ],
)
def test_a_broken_manifest_is_refused_with_the_field(text: bytes, message: str, dump: str, tmp_path: Path) -> None:
    assert_rejected(kindred("filter", "--snapshot", dump, "--pod", saved(tmp_path, "p", text)), message)


def test_a_pod_with_a_broken_term_is_an_error_of_the_command(dump: str, tmp_path: Path) -> None:
    result = kindred("filter", "--snapshot", dump, "--pod", saved(tmp_path, "p", NEAR_NOBODY.json()))
    assert_rejected(result, OPERATOR_ERROR)


def test_a_dump_without_nodes_is_warned_of(pod: str, tmp_path: Path) -> None:
    dump = saved(tmp_path, "dump", as_json(listed()))
    result = kindred("filter", "--snapshot", dump, "--pod", pod, "--nodes", "a1")
    assert result.stderr == (
        "Loaded 0 nodes, 0 pods, 0 namespaces\n"
        "Warning: the dump has no node, so no pod fits anywhere. This adds them:\n"
        f"  kubectl get -A -o json no >> {dump}\n"
    )
    assert json.loads(result.stdout)["FailedAndUnresolvableNodes"] == {"a1": UNKNOWN}


def test_a_node_name_that_is_not_utf_8_is_refused_without_a_traceback(dump: str, pod: str) -> None:
    # The shell's byte 0xff, as Python hands it over.
    result = kindred("filter", "--snapshot", dump, "--pod", pod, "--nodes", "\udcff")
    assert_rejected(result, "an argument is not UTF-8")


def test_a_snapshot_that_takes_most_of_the_memory_is_refused(
    monkeypatch: pytest.MonkeyPatch, dump: str, pod: str
) -> None:
    size = Path(dump).stat().st_size
    monkeypatch.setattr("app.commands.dump.memory_limit", lambda: MemoryLimit(size, "the limit of the cgroup"))
    result = kindred("filter", "--snapshot", dump, "--pod", pod)
    expected = f"Error: --snapshot: more than {size // 2} bytes (half of the limit of the cgroup)"
    assert (result.exit_code, result.stderr.splitlines()) == (2, [expected])


def test_yaml_that_would_take_most_of_the_memory_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pod: str
) -> None:
    (tmp_path / "dump.yaml").write_bytes(b"kind: List\nitems: []\n" + b"#" * 1000)
    monkeypatch.setattr("app.commands.dump.memory_limit", lambda: MemoryLimit(32 * 1024, "the limit of the cgroup"))
    result = kindred("filter", "--snapshot", str(tmp_path / "dump.yaml"), "--pod", pod)
    expected = "Error: --snapshot: 1021 bytes of YAML, more than 512: dump it as JSON\n"
    assert (result.exit_code, result.stderr) == (2, expected)


HOST = "kubernetes.io/hostname"
WEB = {"matchLabels": {"app": "web"}}
RULES = "node(s) didn't match pod anti-affinity rules"
FILTERED: dict[str, Any] = {
    "Nodes": None,
    "NodeNames": ["a1"],
    "FailedNodes": {"b1": RULES},
    "FailedAndUnresolvableNodes": {"c1": "node(s) didn't match pod affinity rules"},
    "Error": "",
}


@pytest.fixture
def requested(tmp_path: Path) -> list[str]:
    """Return the arguments for a pod that must not be beside the one on b1."""
    pod = make_pod("next").required_anti_affinity(term(HOST, WEB))
    nodes = (make_node(name).label(HOST, name) for name in ("a1", "b1"))
    dump = listed(*kinded(*nodes, make_pod("web").label("app", "web").on("b1"), make_namespace("default")))
    (tmp_path / "dump.json").write_bytes(as_json(dump))
    (tmp_path / "pod.json").write_text(json.dumps(pod.obj()))
    return ["--snapshot", str(tmp_path / "dump.json"), "--pod", str(tmp_path / "pod.json")]


def printed(*arguments: str) -> Result:
    result = kindred(*arguments)
    assert result.exit_code == 0, result.output
    return result


def test_filter_prints_the_message_of_the_protocol_unless_another_format_is_wanted(requested: list[str]) -> None:
    plain = printed("filter", *requested).stdout
    assert json.loads(plain)["FailedNodes"] == {"b1": RULES}
    assert printed("filter", *requested, "-o", "json").stdout == plain
    assert yaml.safe_load(kindred("filter", *requested, "-o", "yaml").stdout) == json.loads(plain)
    assert printed("filter", *requested, "-o", "name").stdout == "node/a1\n"
    assert printed("filter", *requested, "-o", "table").stdout.splitlines() == [
        "Fits on 1 of 2 nodes by InterPodAffinity alone (`kindred explain` judges all).",
        "NODE  VERDICT  REASON",
        "a1    fits",
        f"b1    fails    {RULES}",
    ]


def test_unresolvable_nodes_are_apart_from_those_that_preemption_could_help() -> None:
    lines = unstyle(laid_out(filter_text(FILTERED, [*"abcd"], wide=False))).splitlines()
    assert lines[0] == "Fits on 1 of 3 nodes."
    assert [line.split()[:2] for line in lines[2:]] == [["a1", "fits"], ["b1", "fails"], ["c1", "unresolvable"]]
    assert list(filter_names(FILTERED)) == ["node/a1"]


def test_an_error_is_all_there_is_to_say() -> None:
    rejected = {**dict.fromkeys(FILTERED), "Error": "too much work"}
    assert laid_out(filter_text(rejected, [], wide=False)) == "Error: too much work"
    assert list(filter_names(rejected)) == []
