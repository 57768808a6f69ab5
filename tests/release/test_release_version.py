"""One version: the changelog's newest release, the package, chart, labels, and the image that manifests name."""

import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from app import __version__
from release.checkout import newest_release

MANIFESTS = Path("manifests")
CHANGELOG = Path("CHANGELOG.md").read_text("utf-8")
KUSTOMIZATIONS = sorted(MANIFESTS.rglob("kustomization.yaml"))


def loaded(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return found


def test_the_newest_release_of_the_changelog_is_the_version_and_has_a_date() -> None:
    assert newest_release(CHANGELOG) == __version__
    (day,) = re.findall(rf"^## {re.escape(__version__)} - (\S+)$", CHANGELOG, re.MULTILINE)
    assert date.fromisoformat(day) >= date(2026, 11, 23)


def test_what_is_not_released_is_above_the_newest_release() -> None:
    headings = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert headings[1].startswith(f"{__version__} - ")


def test_the_package_has_its_version_from_the_code() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "app/__init__.py"


def test_the_chart_is_of_the_version() -> None:
    chart = loaded(MANIFESTS / "chart" / "Chart.yaml")
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


@pytest.mark.parametrize("path", KUSTOMIZATIONS, ids=lambda path: str(path.parent.relative_to(MANIFESTS)))
def test_images_and_labels_of_a_kustomization_are_of_the_version(path: Path) -> None:
    kustomization = loaded(path)
    tags = {image["newTag"] for image in kustomization.get("images", []) if image["name"] == "kindred"}
    labels = {pairs["pairs"]["app.kubernetes.io/version"] for pairs in kustomization.get("labels", [])}
    assert tags | labels <= {__version__}
    assert bool(tags) == (path.parts[1] == "overlays")
    assert bool(labels) == (path.parent.name not in {"tls-secret", "leader"}), "which add no object"


def test_make_image_makes_the_image_that_manifests_name() -> None:
    makefile = Path("Makefile").read_text("utf-8")
    (name,) = re.findall(r"^image:.*\n\t.* -t (\S+) \.$", makefile, re.MULTILINE)
    assert name == "kindred:$(VERSION)"
    assert loaded(MANIFESTS / "chart" / "values.yaml")["image"] == {
        "repository": "kindred",
        "tag": "",
        "digest": "",
        "pullPolicy": "",
    }


def test_the_page_names_the_image_of_the_version() -> None:
    text = Path("docs/install.md").read_text("utf-8")
    named = set(re.findall(r"\bkindred:([\w.]+)", text)) | set(re.findall(r"newTag: (\S+)", text))
    assert named == {__version__}
