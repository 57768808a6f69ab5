"""The README's promises: its commands print what it shows, its figures are measured, and it stays short."""

import gc
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from app.commands.cli import main
from app.commands.text_columns import WIDTH
from app.objects.resources import RESOURCES
from app.settings import Settings, variable_of
from core.profile import full_profile
from tests import readme_figures
from tests.demo_server import DemoServer, demo_server

README = Path("README.md").read_text(encoding="utf-8")
EXPLAINS = re.findall(r"^\$ \.venv/bin/kindred (explain [^\n]+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
CURLS = re.findall(r"^\$ (curl [^\n]+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def ids(curls: list[tuple[str, str]]) -> list[str]:
    return [re.sub(r".*/(\w+) -d @.*/([\w-]+)\.json.*", r"\1-\2", command) for command, _ in curls]


@pytest.fixture(scope="module")
def demo() -> Iterator[DemoServer]:
    """Run a service that is started as the README says."""
    with demo_server() as server:
        yield server


@pytest.mark.parametrize(("command", "answer"), CURLS, ids=ids(CURLS))
def test_a_curl_line_of_the_readme_gives_the_answer_below_it(command: str, answer: str, demo: DemoServer) -> None:
    curl, _, formatter = command.partition(" | ")
    arguments = shlex.split(curl)
    body = Path(arguments[arguments.index("-d") + 1].removeprefix("@")).read_bytes()
    path = next(argument for argument in arguments if argument.startswith("http")).split(":8888")[1]
    text = httpx.post(demo.url + path, content=body).text
    if formatter == "python3 -m json.tool":
        text = json.dumps(json.loads(text), indent=4)
    assert answer.rstrip("\n") == text


@pytest.mark.parametrize(("command", "answer"), EXPLAINS, ids=[command for command, _ in EXPLAINS])
def test_what_the_readme_shows_of_explain_is_what_it_prints(command: str, answer: str) -> None:
    result = CliRunner().invoke(main, shlex.split(command))
    gc.unfreeze()  # what was loaded, which would stay for all tests
    assert answer == result.output
    assert max(map(len, answer.splitlines())) <= WIDTH


@pytest.mark.parametrize(("command", "answer"), EXPLAINS, ids=[command for command, _ in EXPLAINS])
def test_the_service_that_the_readme_starts_explains_the_same(command: str, answer: str, demo: DemoServer) -> None:
    loaded, _, explained = answer.partition("\n")
    assert loaded.startswith("Loaded ")  # which a service did when it began
    assert (
        CliRunner().invoke(main, shlex.split(command.replace("--demo", f"--server {demo.admin}"))).output == explained
    )


def test_the_readme_shows_explain() -> None:
    assert EXPLAINS


def test_the_readme_shows_both_verbs() -> None:
    assert {"filter", "prioritize"} == {name.partition("-")[0] for name in ids(CURLS)}


def test_the_settings_of_the_first_page_to_read_have_the_defaults_that_it_says() -> None:
    page = Path("docs/run.md").read_text("utf-8")
    documented = dict(re.findall(r"^\| `(KINDRED_\w+)` \| `([^`]*)` \|", page, re.MULTILINE))
    assert documented
    actual = {variable_of(name): field.default for name, field in Settings.model_fields.items()}
    for variable, default in documented.items():
        assert default == (
            str(actual[variable]).lower() if isinstance(actual[variable], bool) else str(actual[variable])
        )


def test_the_dump_for_every_plugin_has_all_that_the_full_profile_reads() -> None:
    (kinds,) = re.findall(r"kubectl get -A -o json ([\w,\\\n]+)", Path("docs/plugins.md").read_text("utf-8"))
    assert {RESOURCES[kind].plural for kind in full_profile().kinds} == set(kinds.replace("\\\n", "").split(","))


@pytest.mark.parametrize(
    "target", re.findall(r"`?make ([a-z0-9-]+)", README + Path("CONTRIBUTING.md").read_text("utf-8"))
)
def test_a_make_target_that_the_docs_name_exists(target: str) -> None:
    assert re.search(rf"^{target}:", Path("Makefile").read_text("utf-8"), re.MULTILINE)


def test_the_readme_is_read_in_a_minute() -> None:
    assert len(README.splitlines()) <= 200


def test_the_figures_of_the_readme_are_those_of_the_saved_measurements() -> None:
    assert readme_figures.in_text(README) == README, "run: python -m tests.readme_figures --write"


def test_the_readme_has_no_figure_of_a_measurement_elsewhere() -> None:
    text = re.sub(r"^```.*?^```", "", readme_figures.outside(README), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"\d[\d.,]* (?:times|ms|MB|GB|seconds|%|pods a second)\b", text) == []


def test_a_block_of_figures_that_is_missing_is_an_error() -> None:
    with pytest.raises(ValueError, match="gains: begin"):
        readme_figures.in_text("no block")


def test_the_doctor_finds_what_is_broken_in_the_example_of_the_readme() -> None:
    (arguments,) = re.findall(r"^\$ \.venv/bin/kindred (doctor [^\n]+)$", README, re.MULTILINE)
    assert CliRunner().invoke(main, shlex.split(arguments)).exit_code == 1


def test_what_the_readme_applies_is_an_overlay_with_that_deployment() -> None:
    (overlay,) = re.findall(r"kubectl apply -k (\S+)", README)
    namespace, deployment = re.findall(r"kubectl -n (\S+) rollout status deployment/(\S+)", README)[0]
    base = Path("manifests/base/deployment.yaml").read_text("utf-8")
    assert Path(overlay, "kustomization.yaml").is_file()
    assert (f"  name: {deployment}\n" in base, f"  namespace: {namespace}\n" in base) == (True, True)
