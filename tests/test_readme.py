"""The README: its requests have the shown output, its figures are measured, and it stays short."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from click.testing import CliRunner

from app.commands import cli
from app.objects.resources import DUMP_COMMAND, RESOURCES
from app.settings.settings import Settings, variable_of
from app.settings.types import split_address
from core.profile import full_profile
from core.releases.release import RELEASES
from tests.app.serving import Service, demo_server
from tests.markdown import assert_rendered

README = Path("README.md").read_text(encoding="utf-8")
EXPLAINS = re.findall(r"^\$ \.venv/bin/kindred (explain [^\n]+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^\$ (.+)$", README, re.MULTILINE)
CURLS = re.findall(r"^\$ (curl [^\n]+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def ids(curls: list[tuple[str, str]]) -> list[str]:
    return [re.sub(r".*/(\w+) -d @.*/([\w-]+)\.json.*", r"\1-\2", command) for command, _ in curls]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Run a service with the command of the README."""
    with demo_server(tmp_path_factory.mktemp("demo")) as service:
        yield service


@pytest.mark.parametrize(("command", "response"), CURLS, ids=ids(CURLS))
def test_a_curl_line_of_the_readme_gives_the_answer_below_it(command: str, response: str, demo: Service) -> None:
    curl, _, formatter = command.partition(" | ")
    arguments = shlex.split(curl)
    body = Path(arguments[arguments.index("-d") + 1].removeprefix("@")).read_bytes()
    path = next(argument for argument in arguments if argument.startswith("http")).split(":8888")[1]
    text = httpx.post(demo.url + path, content=body).text
    if formatter == "python3 -m json.tool":
        text = json.dumps(json.loads(text), indent=4)
    assert response.rstrip("\n") == text


@pytest.mark.parametrize(("command", "rendered"), EXPLAINS, ids=[command for command, _ in EXPLAINS])
def test_the_service_that_the_readme_starts_explains_the_same(command: str, rendered: str, demo: Service) -> None:
    loaded, pod, explained = rendered.partition("\nPod ")
    assert loaded.startswith("Loaded ")  # only `kindred serve` prints it at the start
    output = CliRunner().invoke(cli.main, shlex.split(command.replace("--demo", f"--server {demo.admin_url}"))).output
    assert_rendered(output, f"{pod[1:]}{explained}")


def test_make_run_serves_the_demo() -> None:
    # The environment that runs the tests, whatever its name, stands for the one that make would install.
    command = ["make", "--assume-old=.venv/.serving", f"BIN={Path(sys.executable).parent}", "run"]
    environment = os.environ | {"KINDRED_LISTEN": "127.0.0.1:0"}
    with subprocess.Popen(  # noqa: S603  # the Makefile of this project
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            page = next(filter(None, (re.search(r"in a browser: (\S+)/", line) for line in process.stdout)))
            assert httpx.get(f"{page[1]}/readyz").status_code == 200
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def test_the_readme_names_the_addresses_of_the_demo() -> None:
    host, number = split_address(Settings().listen)
    found = set(re.findall(r"http://[\d.]+:\d+", README))
    assert {f"http://{host}:{port}" for port in (number, number + 2)} == found


def test_each_command_of_the_readme_is_of_a_kind_that_a_test_here_runs_or_looks_up() -> None:
    kinds = (
        r"make \S+",
        r"curl .*",
        r"\.venv/bin/kindred (explain|doctor) .*",
        r"kubectl (apply -k|-n \S+ rollout) .*",
    )
    assert EXPLAINS
    assert {"filter", "prioritize"} == {name.partition("-")[0] for name in ids(CURLS)}
    assert [command for command in COMMANDS if not any(re.fullmatch(kind, command) for kind in kinds)] == []


def test_the_settings_of_the_first_page_to_read_have_the_defaults_that_it_says() -> None:
    page = Path("docs/run.md").read_text("utf-8")
    documented = dict(re.findall(r"^\| `(KINDRED_\w+)` \| `([^`]*)` \|", page, re.MULTILINE))
    assert documented
    actual = {variable_of(name): field.default for name, field in Settings.model_fields.items()}
    for variable, default in documented.items():
        assert default == (
            str(actual[variable]).lower() if isinstance(actual[variable], bool) else str(actual[variable])
        )


def test_the_dump_of_the_docs_has_all_that_the_full_profile_reads() -> None:
    assert f"$ {DUMP_COMMAND} > cluster.json\n" in Path("docs/run.md").read_text("utf-8")
    read = {RESOURCES[kind].short or RESOURCES[kind].plural for kind in full_profile().kinds}
    assert read <= set(DUMP_COMMAND.rpartition(" ")[2].split(","))
    pages = [README, *(page.read_text("utf-8") for page in Path("docs").glob("*.md"))]
    assert not any("kubectl get nodes,pods" in page for page in pages)


@pytest.mark.parametrize(
    "target", re.findall(r"`?make ([a-z0-9-]+)", README + Path("CONTRIBUTING.md").read_text("utf-8"))
)
def test_a_make_target_that_the_docs_name_exists(target: str) -> None:
    assert re.search(rf"^{target}:", Path("Makefile").read_text("utf-8"), re.MULTILINE)


def test_the_readme_names_the_versions_that_are_supported() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    assert f"Kubernetes {RELEASES[0]} to {RELEASES[-1]}." in README
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer" in README


@pytest.mark.parametrize("registration", ["score-offload", "full-offload", "decide"])
def test_the_readme_says_of_each_registration_what_its_file_does_without_kindred(registration: str) -> None:
    reported = dict(re.findall(r"^\| ([\w ,]+) \| [^|]+ \| (pods?[^|]+|no pod[^|]+) \|$", README, re.MULTILINE))
    effect = reported[registration.replace("-", " ")]
    (extender,) = yaml.safe_load(Path(f"manifests/scheduler/{registration}.yaml").read_text("utf-8"))["extenders"]
    assert ("filterVerb" not in extender or extender["ignorable"]) == effect.startswith("pods are placed without")


def test_what_the_readme_applies_is_an_overlay_with_that_deployment() -> None:
    (overlay,) = re.findall(r"kubectl apply -k (\S+)", README)
    namespace, deployment = re.findall(r"kubectl -n (\S+) rollout status deployment/(\S+)", README)[0]
    base = Path("manifests/base/deployment.yaml").read_text("utf-8")
    assert Path(overlay, "kustomization.yaml").is_file()
    assert (f"  name: {deployment}\n" in base, f"  namespace: {namespace}\n" in base) == (True, True)
