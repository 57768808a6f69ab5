"""The sources of the site as `make docs` writes them. Links between them are checked by mkdocs itself."""

from pathlib import Path

import pytest
import yaml

from tests.site.__main__ import write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the sources once."""
    folder = tmp_path_factory.mktemp("site")
    write(folder)
    return folder


def test_the_site_has_every_page_and_the_reference(folder: Path) -> None:
    expected = {path.name for path in Path("docs").glob("*.md")} | {
        "index.md",
        "contributing.md",
        "routes.md",
        "help.md",
    }
    assert expected <= {path.name for path in folder.glob("*.md")}


def test_every_page_is_in_the_navigation(folder: Path) -> None:
    navigation = yaml.safe_load(Path("mkdocs.yml").read_text("utf-8"))["nav"]
    named = {page for each in navigation for page in (next(iter(each.values())) if isinstance(each, dict) else [each])}
    assert named == {path.name for path in folder.glob("*.md")}


def test_pictures_and_linked_files_are_copied(folder: Path) -> None:
    for path in ("images/data-flow.svg", "bench/latest.svg", "source/manifests/scheduler/decide.yaml"):
        assert (folder / path).is_file()
