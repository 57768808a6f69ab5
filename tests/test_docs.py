"""The links, variables, keys and routes in docs/ and manifests/ exist. Command lines: tests/test_command_lines.py."""

import re
import tomllib
from pathlib import Path

import pytest

from app.admin.openapi import describe
from app.commands import cli
from app.settings.configuration import FILE_VARIABLE, HEAD
from app.settings.settings import Settings, key_of, variable_of
from app.wiring.main import create_service
from core.mirror.cluster import ClusterMirror

PAGES = [Path("README.md"), Path("CONTRIBUTING.md"), *sorted(Path("docs").glob("*.md")), Path("manifests/README.md")]
EXAMPLE = re.compile(r"^```yaml\n# kindred.yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
OF_TESTS = re.compile(r"KINDRED_(TEST|E2E|LOAD|BENCH)_\w+|KINDRED_SERVICE_\w+|KINDRED_PORT\w*|KINDRED_X|KINDRED_")
each_page = pytest.mark.parametrize("page", PAGES, ids=str)


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ +(.*)$", page.read_text("utf-8"), re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


@each_page
def test_a_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\((?!https?://)([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page.resolve()
        assert file.exists(), f"{page}: {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{page}: {target}"


@pytest.mark.parametrize("page", sorted(Path("docs").glob("*.md")), ids=str)
def test_a_page_says_first_whom_it_is_for(page: Path) -> None:
    title, first, *_ = page.read_text("utf-8").split("\n\n")
    assert title.startswith("# ")
    assert first.startswith("For ")


@pytest.mark.parametrize("page", [*PAGES, Path("CHANGELOG.md")], ids=str)
def test_no_line_of_a_merge_is_left(page: Path) -> None:
    assert re.findall(r"^(?:<{7}|={7}|>{7})(?: .*)?$", page.read_text("utf-8"), re.MULTILINE) == []


INSTALL = re.compile(r"(?:(?:pip|pipx|uv tool) install|uvx|pipx run) +(?:-\S+ +)*['\"]?([a-zA-Z][\w-]*)")
"""Matches the name of a distribution in an install command."""


def test_what_a_reader_is_told_to_install_is_this_project() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]["name"]
    texts = [path.read_text("utf-8") for path in (*PAGES, *Path("app").rglob("*.py"))]
    assert {name for text in texts for name in INSTALL.findall(text)} <= {project}, "`kindred` on PyPI is another"


def test_every_command_is_on_the_page_of_commands() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \|", Path("docs/commands.md").read_text("utf-8"), re.MULTILINE)
    named = {name.split()[0] for row in rows for name in re.findall(r"`([^`]*)`", row)}
    assert cli.COMMANDS.keys() <= named


@each_page
def test_a_variable_is_a_setting(page: Path) -> None:
    known = {variable_of(name) for name in Settings.model_fields} | {FILE_VARIABLE}
    named = set(re.findall(r"\bKINDRED_\w*", page.read_text("utf-8")))
    assert {name for name in named - known if not OF_TESTS.fullmatch(name)} == set()


@each_page
def test_a_route_is_served(page: Path) -> None:
    settings = Settings(admin="127.0.0.1:0", health_port=0)
    service = create_service(settings, ClusterMirror(), None)
    served = {path: set(methods) for port in service.ports for path, methods in describe(port.app)["paths"].items()}
    served["/openapi.json"] = {"get"}  # the description does not contain itself
    served["/events"] = {"get"}  # a stream without an end
    for method, path in re.findall(r"`(GET|POST|PUT|DELETE) (/[a-z/.-]+)", page.read_text("utf-8")):
        begun = [each for each in served if each == path or each.startswith(path.rstrip("/") + "/{")]
        assert any(method.lower() in served[each] for each in begun), f"{page}: {method} {path}"


def test_the_settings_that_pages_name_by_key_exist() -> None:
    keys = {key_of(name) for name in Settings.model_fields}
    examples = [block for page in PAGES for block in EXAMPLE.findall(page.read_text("utf-8"))]
    assert examples
    for block in examples:
        found = re.findall(r"^(\w+):", block, re.MULTILINE)
        assert found[: len(HEAD)] == [*HEAD]
        assert set(found[len(HEAD) :]) <= keys
