"""`kindred explain`: of a dump as of a running service, its exit status, and what is said of bad input."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from app.commands.cli import main
from app.commands.dump import load_dump
from app.settings.settings import Settings
from app.wiring.main import create_service
from tests.app.commands.running import running
from tests.app.feeds.dumps import as_json, kinded, listed
from tests.builders import make_namespace, make_node, make_pod, term

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
WEB = {"matchLabels": {"app": "web"}}
REPELLED = make_pod("next").label("app", "web").required_anti_affinity(term(ZONE, WEB))
WAITING = make_pod("waiting").uid("4711").label("app", "web").required_anti_affinity(term(HOST, WEB))
DUMP = listed(
    *kinded(
        *(make_node(name).label(ZONE, name[0]).label(HOST, name).allocatable(pods=110) for name in ("a1", "a2", "b1")),
        make_pod("web").label("app", "web").on("a1"),
        make_pod("shy").required_anti_affinity(term(HOST, WEB)).on("b1"),
        WAITING,
        make_namespace("default"),
    )
)
POD = {"kind": "Pod", "apiVersion": "v1", **REPELLED.obj()}
DEPLOYMENT = {
    "kind": "Deployment",
    "metadata": {"name": "next", "namespace": "default"},
    "spec": {"template": {"metadata": REPELLED.obj()["metadata"], "spec": REPELLED.obj()["spec"]}},
}
ARGS = {"Pod": REPELLED.owned_by("ReplicaSet", "next", "r1").obj(), "NodeNames": ["b1", "a1"]}
NODE_C = {"kind": "Node", **make_node("c1").label(ZONE, "c").label(HOST, "c1").allocatable(pods=110).obj()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the dump, and manifests."""
    (tmp_path / "dump.json").write_bytes(as_json(DUMP))
    (tmp_path / "web2.yaml").write_text(yaml.safe_dump(make_pod("web-2").label("app", "web").obj()), "utf-8")
    for name, content in (
        ("pod", POD),
        ("deployment", DEPLOYMENT),
        ("args", ARGS),
        ("c1", NODE_C),
        ("nodes", listed(NODE_C, {"kind": "Node", **make_node("d1").allocatable(pods=110).obj()})),
        ("nameless", {"kind": "Pod", "metadata": {}}),
        ("service", {"kind": "Service", "metadata": {"name": "s"}}),
        ("whole-nodes", {"Pod": REPELLED.obj(), "Nodes": {"items": [make_node("x").allocatable(pods=110).obj()]}}),
        ("repeated", {"Pod": REPELLED.obj(), "NodeNames": ["a1", "a1"]}),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps(content), "utf-8")
    (tmp_path / "malformed.json").write_text('{"kind": "Pod",', "utf-8")
    (tmp_path / "two.yaml").write_text("kind: Pod\n---\nkind: Pod\n", "utf-8")
    return tmp_path


def explain(
    *arguments: str, stdin: bytes = b"", terminal: bool = False, environment: dict[str, str] | None = None
) -> Result:
    return CliRunner().invoke(main, ["explain", *arguments], input=stdin, color=terminal, env=environment)


def of_dump(folder: Path, *arguments: str, **how: Any) -> Result:  # noqa: ANN401  # as explain
    """Explain, with `@` before the names of files of the folder."""
    placed = [re.sub(r"^@", f"{folder}/", argument) for argument in arguments]
    return explain("--snapshot", str(folder / "dump.json"), *placed, **how)


def reported(result: Result) -> dict[str, Any]:
    assert result.exit_code in {0, 1}, result.output
    explanation: dict[str, Any] = json.loads(result.stdout)
    return explanation


# Exit status, and forms of the question.


def test_several_manifests_without_a_namespace_are_of_that_of_the_option(folder: Path) -> None:
    """As kubectl takes them: the claim of the file is in the namespace of its pod."""
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {"volumeName": "v"}}
    pod = make_pod("p").volume({"name": "v", "persistentVolumeClaim": {"claimName": "c"}}).obj()
    pod["metadata"] = {"name": "p"}
    (folder / "both.json").write_bytes(as_json(listed({"kind": "Pod", **pod}, claim)))
    explanation = reported(of_dump(folder, "-f", "@both.json", "-n", "shop", "-o", "json"))
    assert explanation["summary"]["pod"] == "shop/p"
    assert "claim c" in explanation["manifest"]["completed"][-1]


def test_a_manifest_without_a_kind_is_in_the_namespace_of_the_option(folder: Path) -> None:
    """It is a pod, as everywhere. An empty -n is none, as in kubectl."""
    pod = make_pod("p").obj()
    pod["metadata"] = {"name": "p"}
    (folder / "kindless.json").write_bytes(as_json(pod))
    for namespace, expected in (("shop", "shop/p"), ("", "default/p")):
        explanation = reported(of_dump(folder, "-f", "@kindless.json", "-n", namespace, "-o", "json"))
        assert explanation["summary"]["pod"] == expected


def test_it_ends_with_0_if_the_pod_fits_somewhere_and_with_1_if_nowhere(folder: Path) -> None:
    assert of_dump(folder, "-f", "@pod.json").exit_code == 1
    assert of_dump(folder, "-f", "@pod.json", "--remove", "default/web").exit_code == 0


@pytest.mark.parametrize("file", ["pod.json", "deployment.json"])
def test_a_manifest_is_asked_about(folder: Path, file: str) -> None:
    summary = reported(of_dump(folder, "-f", f"@{file}", "-o", "json"))["summary"]
    assert (summary["nodes"], summary["fit"], [each["nodes"] for each in summary["reasons"]]) == (3, 0, [2, 1])


def test_extender_args_ask_about_their_nodes_whatever_is_supposed(folder: Path) -> None:
    assert reported(of_dump(folder, "-f", "@args.json", "-o", "json"))["summary"]["nodes"] == 2
    supposing = reported(of_dump(folder, "-f", "@args.json", "-o", "json", "--remove", "default/shy"))["summary"]
    assert (supposing["nodes"], supposing["fit"]) == (2, 1)


@pytest.mark.parametrize("name", ["default/waiting", "waiting", "pod/waiting", "default/po/waiting", "4711"])
def test_a_pod_of_the_dump_that_waits_for_a_node_is_known_by_name_and_uid(folder: Path, name: str) -> None:
    summary = reported(of_dump(folder, name, "-o", "json"))["summary"]
    assert (summary["pod"], summary["fit"], [each["node"] for each in summary["best"]]) == (
        "default/waiting",
        1,
        ["a2"],
    )


def test_of_a_workload_in_a_dump_it_is_the_pending_pod_or_the_next_one_of_its_template(folder: Path) -> None:
    def pod_of(*arguments: str) -> str:
        name: str = reported(of_dump(folder, *arguments, "-o", "json"))["summary"]["pod"]
        return name

    db = {"kind": "StatefulSet", **DEPLOYMENT, "metadata": {"name": "db", "namespace": "data"}}
    waits = make_pod("next-5-x").owned_by("ReplicaSet", "next-5", "r").label("pod-template-hash", "5")
    dump = listed(*DUMP["items"], DEPLOYMENT, {**db, "kind": "StatefulSet"}, *kinded(waits))
    (folder / "dump.json").write_bytes(as_json(dump))
    assert pod_of("deploy/next") == pod_of("deployments.apps", "next", "-n", "default") == "default/next-5-x"
    assert pod_of("sts/db") == pod_of("data/sts/db") == "data/db-0"
    rejected = of_dump(folder, "sts/db", "-n", "default")
    assert "StatefulSet default/db: no pending pod is of it" in rejected.stderr
    assert pod_of("sts/db", "-f", "@dump.json") == "data/db-0"


def test_what_is_supposed_changes_the_answer(folder: Path) -> None:
    def fit(*arguments: str) -> int:
        number: int = reported(of_dump(folder, "-f", "@pod.json", "-o", "json", *arguments))["summary"]["fit"]
        return number

    both = ("--remove", "default/web", "--remove", "default/shy")
    assert fit(*both) == 3
    assert fit(*both, "--assume", f"{folder}/web2.yaml@b1") == 2
    assert fit(*both, "--assume", "default/web@b1") == 2
    assert fit("--add-node", "@c1.json") == 1
    assert fit("--add-node", "@nodes.json") == 2
    assert fit("--add-node", "@c1.json", "--assume", f"{folder}/web2.yaml@c1") == 0


def test_limit_score_and_profile_are_as_the_route_has_them(folder: Path) -> None:
    requested = ("-f", "@pod.json", "-o", "json", "--limit", "1", "--score", "all", "--profile", "full")
    summary = reported(of_dump(folder, *requested))["summary"]
    assert (len(summary["best"]), len(summary["topologies"][0]["shown"])) == (1, 1)
    assert len(summary["scores"]) > 1


def test_a_node_that_only_an_unjudged_device_could_accept_is_not_said_to_fit(folder: Path) -> None:
    gpu = "example.com/gpu"
    device_class = {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"extendedResourceName": gpu}}
    nodes = kinded(make_node("n1").allocatable(pods=10), make_namespace("default"))
    for name in ("kindred", "kindred-volumes"):
        nodes += kinded(make_pod(name).scheduler(name).requests(**{gpu: 1}))
    (folder / "devices.json").write_bytes(as_json(listed(*nodes, device_class)))
    decides = {
        "KINDRED_PROFILE": "full",
        "KINDRED_DECIDE": "listed-nodes",
        "KINDRED_DECIDE_CLAIMS_SCHEDULER": "kindred-volumes",
        "KINDRED_KUBERNETES": "1.37",
    }

    def text(name: str, *arguments: str) -> tuple[int, str]:
        at = ("--snapshot", f"{folder}/devices.json", f"default/{name}", "--why-not", "n1")
        result = explain(*at, *arguments, environment=decides)
        return result.exit_code, " ".join(result.stdout.split())

    status, plain = text("kindred")
    assert status == 1
    assert "fits on none of 1 node" in plain
    assert "Not judged: DynamicResources: devices of DeviceClass gpu need the in-tree plugin" in plain
    assert "give the pod spec.schedulerName: kindred-volumes" in plain
    _, claims = text("kindred-volumes")
    assert "may fit on 1 of 1 node: not every rule was judged" in claims
    assert "Node n1: it passes the judged rules" in claims
    assert " fits" not in claims


# A running service.


@pytest.fixture
def service(folder: Path) -> Iterator[str]:
    """Serve the dump, and give the URL of the admin port."""
    settings = Settings(admin="127.0.0.1:0", profile="full")
    dump = load_dump(settings, {"snapshot": str(folder / "dump.json"), "demo": False, "skip_invalid": False})
    admin = create_service(settings, dump.mirror, None, {}, dump.release, freshness=dump.freshness).admin
    assert admin is not None
    with running(admin) as server:
        yield server.url


QUESTIONS = [
    pytest.param(["default/shy", "--why-not", "b1"], id="by-name"),
    pytest.param(["-f", "@pod.json", "--why-not", "a1", "--why-not", "b1", "--limit", "2"], id="manifest"),
    pytest.param(["-f", "@args.json"], id="extender-args"),
    pytest.param(["-f", "@args.json", "--score", "all", "--remove", "default/web"], id="what-if"),
]  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_running_service_says_what_is_said_of_its_dump(service: str, folder: Path, question: list[str]) -> None:
    placed = [argument.replace("@", f"{folder}/", 1) if argument[0] == "@" else argument for argument in question]
    requested = explain(*placed, "--server", service, "-o", "json")
    read = of_dump(folder, *question, "-o", "json")
    assert reported(requested) == reported(read)
    assert reported(requested)["equivalence"] is not None
    assert requested.exit_code == read.exit_code
    assert explain(*placed, "--server", service).stdout == of_dump(folder, *question).stdout


WRONG = [
    pytest.param(["default/nobody"], "neither in the mirror nor in a recent request; it may have ended, and", id="pod"),
    pytest.param(["x", "-n", "deploy"], "pod deploy/pod/x: neither in the mirror", id="namespace-named-as-a-type"),
    pytest.param(["-f", "@pod.json", "--why-not", "z9"], "node: node z9: not among the nodes", id="node"),
    pytest.param(["-f", "@args.json", "--why-not", "a2"], "node: node a2: not among the", id="node-not-asked"),
    pytest.param(["-f", "@nameless.json"], "metadata.name: required", id="nameless"),
    pytest.param(["-f", "@service.json"], "kind: expected Pod, or a kind with a pod template", id="service"),
    pytest.param(["-f", "@repeated.json"], "NodeNames[1]: a1 is at position 0", id="repeated"),
    pytest.param(["-f", "@repeated.json", "--remove", "default/web"], "node_names[1]: a1 is at ",
                 id="repeated-what-if"),
    pytest.param(["-f", "@pod.json", "--remove", "x/y"], "remove[0]: pod x/y: neither in the mirror", id="remove"),
    pytest.param(["-f", "@pod.json", "--remove", "default/web", "--remove", "default/web"],
                 "remove[1]: pod default/web (default/web) cannot be removed", id="removed-twice"),
    pytest.param(["-f", "@pod.json", "--assume", "x/y@a1"], "assume[0].pod: pod x/y: neither in the", id="assume"),
    pytest.param(["-f", "@pod.json", "--assume", "default/web@a2"],
                 "assume[0]: pod default/web (default/web) cannot be placed on a2", id="assumed-twice"),
    pytest.param(["-f", "@pod.json", "--assume", "@nameless.json@a1"], "assume[0].pod.metadata.name: required",
                 id="assumed-nameless"),
    pytest.param(["-f", "@pod.json", "--assume", "@pod.json@z9"], "assume[0]: pod default/next (default/next) cannot "
                 "be placed on z9", id="assumed-nowhere"),
    pytest.param(["-f", "@pod.json", "--add-node", "@c1.json", "--add-node", "@nodes.json"],
                 "add_nodes[1]: node c1 cannot be added", id="node-twice"),
    pytest.param(["-f", "@pod.json", "--add-node", "@pod.json"], "add_nodes[0].kind: expected Node, got Pod",
                 id="no-node"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "message"), WRONG)
def test_what_is_wrong_is_one_line_that_names_the_field(
    service: str, folder: Path, question: list[str], message: str
) -> None:
    placed = [argument.replace("@", f"{folder}/", 1) if argument[0] == "@" else argument for argument in question]
    for result in (explain(*placed, "--server", service), of_dump(folder, *question)):
        assert (result.exit_code, result.stdout) == (2, "")
        (line,) = [each for each in result.stderr.splitlines() if not each.startswith("Loaded ")]
        assert line.startswith("Error: ")
        assert message in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["a/web", "-n", "b"], "a/web is not of the namespace of -n.", id="another-namespace"),
        pytest.param(["web", "-n", "a", "-A"], "Give either -n or -A.", id="n-and-a"),
        pytest.param(["-f", "@pod.json", "-n", "a"], "is of the namespace default, not of that of -n.",
                     id="n-and-f"),
        pytest.param(["-f", "@args.json", "-n", "a"], "has no namespace for -n: the pod of ExtenderArgs has its own.",
                     id="n-and-args"),
        pytest.param([], "Give a pod (NAME, NAMESPACE/NAME, TYPE/NAME or a uid), or -f FILE.", id="neither"),
        pytest.param(["default/web", "-f", "@pod.json"], "no pod or pod template is named default/web", id="other"),
        pytest.param(["-f", "@absent.json"], "absent.json: No such file or directory.", id="no-such-file"),
        pytest.param(["-f", "@malformed.json"], "malformed.json: malformed JSON", id="malformed"),
        pytest.param(["-f", "@two.yaml"], "expected one pod or pod template, found 2: Pod;", id="two"),
        pytest.param(["-f", "@whole-nodes.json", "--remove", "default/web"], "whole-nodes.json: NodeNames: required",
                     id="whole-nodes-what-if"),
        pytest.param(["default/web", "--assume", "default/web"], "--assume default/web: expected POD@NODE",
                     id="no-at"),
        pytest.param(["default/web", "--assume", "@a1"], "expected POD@NODE or FILE@NODE.", id="no-pod"),
        pytest.param(["default/web", "--assume", "/absent.yaml@a1"], "/absent.yaml: No such file or directory.",
                     id="no-assumed-file"),
        pytest.param(["default/web", "--add-node", "@malformed.json"], "malformed.json: malformed JSON",
                     id="malformed-node"),
        pytest.param(["default/web", "--add-node", "-"], "--add-node -: expected a manifest, found none.",
                     id="empty-node"),
        pytest.param(["default/web", "--demo"], "Give either --snapshot FILE or --demo.", id="two-dumps"),
        pytest.param(["default/web", "--server", "http://127.0.0.1:8890"], "--server is for a running service",
                     id="dump-and-service"),
        pytest.param(["default/web", "--profile", "nonsense"], "KINDRED_PROFILE='nonsense'", id="profile"),
        pytest.param(["default/\udcff"], "an argument is not UTF-8", id="not-utf-8"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(folder: Path, arguments: list[str], message: str) -> None:
    result = of_dump(folder, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("option", ["--profile", "--config", "--kubernetes", "--feature-gates"])
def test_settings_of_a_dump_are_not_for_a_service(option: str) -> None:
    result = explain("default/web", option, "affinity")
    assert result.exit_code == 2
    assert f"{option} is for a dump (--snapshot or --demo), not for a running service." in result.stderr


# kubectl.


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel as docs/explain.md does, without its dependencies, which are those of this Python."""
    folder = tmp_path_factory.mktemp("installed")
    scripts = Path(sys.executable).parent
    commands = (
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")],
        [str(scripts / "uv"), "pip", "install", "--quiet", "--offline", "--no-deps", "--python", sys.executable],
    )
    subprocess.run(commands[0], check=True, capture_output=True)  # noqa: S603  # our own arguments
    (wheel,) = (folder / "dist").iterdir()
    subprocess.run([*commands[1], "--target", str(folder), str(wheel)], check=True)  # noqa: S603  # the same
    return folder


def test_kubectl_finds_the_plugin_of_the_wheel(folder: Path, installed: Path) -> None:
    environment = {**os.environ, "PATH": f"{installed / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    environment["PYTHONPATH"] = str(installed)
    by_kubectl = ["kubectl", "kindred"] if shutil.which("kubectl") else ["kubectl-kindred"]
    requested = ["explain", "--snapshot", str(folder / "dump.json"), "-f", str(folder / "pod.json")]
    program = shutil.which(by_kubectl[0], path=environment["PATH"])
    assert program is not None
    ran = subprocess.run(  # noqa: S603  # our own program
        [program, *by_kubectl[1:], *requested], check=False, capture_output=True, text=True, env=environment
    )
    assert (ran.returncode, ran.stdout.splitlines()[0]) == (1, "Pod default/next fits on none of 3 nodes.")


SCHEDULER = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}
"""
SPEC: dict[str, Any] = {"containers": [{"resources": {"requests": {"cpu": "1k"}}}]}
LARGE = {"kind": "Pod", "metadata": {"name": "large"}, "spec": SPEC}
OTHER = {**LARGE, "spec": {**SPEC, "schedulerName": "other"}}


@pytest.fixture
def configured(tmp_path: Path) -> Path:
    """Give a folder with the dump, the pods and the configuration."""
    (tmp_path / "dump.json").write_bytes(as_json(DUMP))
    (tmp_path / "scheduler.yaml").write_text(SCHEDULER, "utf-8")
    (tmp_path / "large.json").write_text(json.dumps(LARGE), "utf-8")
    (tmp_path / "other.json").write_text(json.dumps(OTHER), "utf-8")
    return tmp_path


def test_a_rule_that_the_scheduler_does_not_run_refuses_nothing_and_is_listed(configured: Path) -> None:
    assert of_dump(configured, "-f", "@large.json").exit_code == 1
    result = of_dump(configured, "-f", "@large.json", "--scheduler-config", "@scheduler.yaml", "-o", "wide")
    assert result.exit_code == 0
    assert "Pod default/large fits on 3 of 3 nodes." in result.stdout
    assert "Not in the scheduler's profile default-scheduler, nor judged by Kindred:" in result.stdout
    assert "  NodeResourcesFit" in result.stdout
    assert "not in the scheduler's profile: NodeResourcesFit" in result.stdout


def test_who_judges_is_only_told_where_a_kindred_is_registered(configured: Path) -> None:
    without = (configured / "scheduler.yaml").read_text("utf-8").partition("    plugins")[0]
    extender = "extenders: [{urlPrefix: 'http://kindred:8888', prioritizeVerb: prioritize, weight: 1}]\n"
    (configured / "without.yaml").write_text(without, "utf-8")
    (configured / "with.yaml").write_text(without + extender, "utf-8")
    for arguments, is_reported in (
        ([], False),
        (["--scheduler-config", "@without.yaml"], False),
        (["--scheduler-config", "@with.yaml"], True),
        (["--profile", "affinity"], True),
    ):
        result = of_dump(configured, "-f", "@large.json", *arguments)
        assert result.exit_code == 1
        assert ("judged by kube-scheduler" in " ".join(result.stdout.split())) is is_reported


def test_a_scheduler_without_a_profile_is_said_and_every_rule_judged(configured: Path) -> None:
    result = of_dump(configured, "-f", "@other.json", "--scheduler-config", "@scheduler.yaml")
    assert result.exit_code == 1
    assert "No profile of the configuration has schedulerName other: this" in result.stdout
    assert "Insufficient cpu" in result.stdout


def test_a_bad_configuration_of_the_scheduler_is_an_error_that_names_the_field(configured: Path) -> None:
    arguments = "    pluginConfig: [{name: NodeResourcesFit, args: {ignored: []}}]"
    (configured / "scheduler.yaml").write_text(SCHEDULER + arguments, "utf-8")
    result = of_dump(configured, "-f", "@large.json", "--scheduler-config", "@scheduler.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "scheduler.yaml: profiles[0].pluginConfig[0].args: NodeResourcesFit" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param([], ("1.36", "nodes", "v1.36.2", []), id="the newest kubelet"),
        pytest.param(["--kubernetes", "1.35"], ("1.35", "setting", "1.35", []), id="the setting"),
        pytest.param(
            ["--feature-gates", "VolumeLimitScaling=true,NodeDeclaredFeatures=false"],
            ("1.36", "nodes", "v1.36.2", []),
            id="gates that the release has",
        ),
    ],
)
def test_a_dump_is_answered_as_the_release_of_its_newest_kubelet_or_of_the_settings(
    folder: Path, arguments: list[str], expected: tuple[str, str, str, list[str]]
) -> None:
    nodes = kinded(*(make_node(name).label(ZONE, name[0]).label(HOST, name) for name in ("a1", "a2")))
    for node, version in zip(nodes, ("v1.35.4", "v1.36.2"), strict=True):
        node["status"] = {**node.get("status", {}), "nodeInfo": {"kubeletVersion": version}}
    (folder / "dump.json").write_bytes(as_json(listed(*nodes, *kinded(make_namespace("default")))))
    result = of_dump(folder, "-f", "@pod.json", "-o", "json", *arguments)
    kubernetes = reported(result)["kubernetes"]
    assert tuple(kubernetes[member] for member in ("release", "source", "told", "ignored_gates")) == expected
