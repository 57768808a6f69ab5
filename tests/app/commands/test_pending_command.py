"""`kindred pending`: of a dump as of a running service, by namespace, in every format, and of bad input."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from app.commands.cli import main
from app.main import create_service
from app.settings.settings import Settings
from tests.app.commands.running import running
from tests.app.dump.dumps import as_json, kinded, listed
from tests.builders import make_namespace, make_node, make_pod
from tests.conformance.engine import load

NODES = [make_node(name).allocatable(cpu=4, memory="8Gi", pods=10) for name in ("n1", "n2")]
PODS = [
    make_pod("late").in_namespace("shop").requests(cpu=5).created("2026-01-02T00:00:00Z"),
    make_pod("early").in_namespace("shop").requests(cpu=5).created("2026-01-01T00:00:00Z"),
    make_pod("small").requests(cpu=1).created("2026-01-03T00:00:00Z"),
    make_pod("bound").requests(cpu=1).on("n1"),
]


@pytest.fixture
def dump(tmp_path: Path) -> str:
    (tmp_path / "dump.json").write_bytes(as_json(listed(*kinded(*NODES, *PODS, make_namespace("shop")))))
    return str(tmp_path / "dump.json")


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    """Serve the same cluster, and give the URL of the admin port."""
    mirror = load([], [node.obj() for node in NODES], [pod.obj() for pod in PODS])
    admin = create_service(Settings(admin="127.0.0.1:0"), mirror, None).admin
    assert admin is not None
    with running(admin) as server:
        yield server.url


def pending(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["pending", *arguments])


def names(*arguments: str) -> list[str]:
    result = pending(*arguments, "-o", "name")
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_pods_are_listed_oldest_first_of_all_namespaces_unless_one_is_named(service: str) -> None:
    at = ("--server", service)
    assert names(*at) == ["pod/early", "pod/late", "pod/small"]
    assert names(*at, "-n", "shop") == ["pod/early", "pod/late"]
    assert names(*at, "-n", "shop", "-A") == names(*at, "-A") == names(*at)
    assert names(*at, "-n", "nowhere") == []


def test_a_dump_is_answered_as_a_service_answers(service: str, dump: str) -> None:
    found = [json.loads(pending(*ways, "-o", "json").stdout) for ways in (("--server", service), ("--snapshot", dump))]
    for each in found:
        for pod in each["pods"]:
            assert pod.pop("seconds") > 0
    of_service, of_dump = found
    assert of_service["classes"] == of_dump["classes"]
    assert of_service["pods"] == of_dump["pods"]
    assert names("--snapshot", dump, "-n", "shop") == ["pod/early", "pod/late"]


def test_json_is_what_the_route_says_and_yaml_the_same(service: str) -> None:
    found: dict[str, Any] = json.loads(pending("--server", service, "-o", "json").stdout)
    assert found.keys() >= {"generation", "nodes", "standing", "problems", "pods", "classes"}
    assert [each["class"] for each in found["pods"]] == [0, 0, 1]
    shown = yaml.safe_load(pending("--server", service, "-o", "yaml").stdout)
    assert [each["pod"] for each in shown["pods"]] == [each["pod"] for each in found["pods"]]


def test_the_demo_cluster_has_pods_that_fit_nowhere() -> None:
    result = pending("--demo", "-n", "data")
    assert result.exit_code == 0
    assert "queue-3" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--server", "http://127.0.0.1:1"], "use --snapshot FILE, or `kubectl kindred", id="no-service"),
        pytest.param(["--demo", "--server", "http://x"], "--server is for a running service, not", id="both"),
        pytest.param(["--profile", "full"], "--profile is for a dump (--snapshot or --demo), not", id="profile"),
        pytest.param(["--demo", "--profile", "none"], "none", id="unknown-profile"),
        pytest.param(["--snapshot", "/dev/null"], "Error: ", id="empty-dump"),
    ],
)
def test_what_is_wrong_is_said_with_exit_status_2(arguments: list[str], message: str) -> None:
    result = pending(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr.splitlines()[-1]


def test_pods_of_several_schedulers_are_judged_by_the_profile_of_each(tmp_path: Path) -> None:
    spec = {"containers": [{"resources": {"requests": {"cpu": "5"}}}]}
    pods = [
        {"kind": "Pod", "metadata": {"name": name, "namespace": "shop"}, "spec": {**spec, "schedulerName": name}}
        for name in ("strict", "lax", "unknown")
    ]
    (tmp_path / "dump.json").write_bytes(as_json(listed(*kinded(*NODES, make_namespace("shop")), *pods)))
    (tmp_path / "scheduler.yaml").write_text(
        """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: strict
  - schedulerName: lax
    plugins: {filter: {disabled: [{name: NodeResourcesFit}]}}
""",
        "utf-8",
    )
    arguments = ("--snapshot", f"{tmp_path}/dump.json", "--scheduler-config", f"{tmp_path}/scheduler.yaml")
    answer = json.loads(pending(*arguments, "-o", "json").stdout)
    by_name = {each["pod"]: answer["classes"][each["class"]] for each in answer["pods"]}
    assert {name: each["fit"] for name, each in by_name.items()} == {"shop/strict": 0, "shop/lax": 2, "shop/unknown": 0}
    assert by_name["shop/lax"]["scheduler"]["filters_off"] == ["NodeResourcesFit"]
    table = pending(*arguments).stdout
    assert "no scheduler profile unknown" in " ".join(table.split())


def test_a_pod_that_only_an_unjudged_device_could_place_is_not_said_to_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = "example.com/gpu"
    device_class = {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"extendedResourceName": gpu}}
    pods = [make_pod(name).scheduler(name).requests(**{gpu: 1}) for name in ("plain", "claims")]
    nodes = make_node("n1").allocatable(pods=9), make_namespace("default")
    (tmp_path / "dump.json").write_bytes(as_json(listed(*kinded(*nodes, *pods), device_class)))
    decides = {"PROFILE": "full", "DECIDE": "listed-nodes", "DECIDE_CLAIMS_SCHEDULER": "claims", "KUBERNETES": "1.37"}
    for name, value in decides.items():
        monkeypatch.setenv(f"KINDRED_{name}", value)
    answer = json.loads(pending("--snapshot", f"{tmp_path}/dump.json", "-o", "json").stdout)
    by_name = {each["pod"]: answer["classes"][each["class"]] for each in answer["pods"]}
    states = {name: each["state"] for name, each in by_name.items()}
    assert states == {"default/plain": "unschedulable", "default/claims": "not judged"}
    for each in by_name.values():
        assert [rule["plugin"] for rule in each["not_judged"]] == ["DynamicResources"]
