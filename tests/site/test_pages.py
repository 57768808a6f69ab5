"""Pages of the site from pages of the repository."""

from pathlib import Path

import pytest

from tests.site.pages import BrokenLinkError, page_of_site


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a checkout with the files that links lead to."""
    for path in ("docs/run.md", "docs/images/a.svg", "CONTRIBUTING.md", "manifests/scheduler/decide.yaml"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        pytest.param("docs/a.md", "[run](run.md#demo)", "[run](run.md#demo)", id="page-to-page"),
        pytest.param("README.md", "[run](docs/run.md)", "[run](run.md)", id="readme-to-page"),
        pytest.param("docs/a.md", "[c](../CONTRIBUTING.md#x)", "[c](contributing.md#x)", id="page-to-root"),
        pytest.param("docs/a.md", "[all](../manifests/scheduler)", "all", id="folder"),
        pytest.param("README.md", "![p](docs/images/a.svg)", "![p](images/a.svg)", id="picture"),
        pytest.param("README.md", "[p](https://example.org/a.md)", "[p](https://example.org/a.md)", id="address"),
        pytest.param("README.md", "```\n[run](nothing.md)\n```\n", "```\n[run](nothing.md)\n```\n", id="code"),
    ],
)
def test_a_link_leads_to_the_page_of_the_site(root: Path, page: str, text: str, expected: str) -> None:
    (root / page).write_text(text)
    assert page_of_site(root, page) == (expected, set())


def test_a_link_to_a_file_leads_to_its_copy(root: Path) -> None:
    (root / "docs/a.md").write_text("[decide](../manifests/scheduler/decide.yaml)")
    expected = "manifests/scheduler/decide.yaml"
    assert page_of_site(root, "docs/a.md") == (f"[decide](source/{expected})", {expected})


def test_a_link_to_nothing_is_an_error_that_names_both(root: Path) -> None:
    (root / "docs/a.md").write_text("[gone](../gone.md)")
    with pytest.raises(BrokenLinkError, match=r"docs/a\.md: no file gone\.md"):
        page_of_site(root, "docs/a.md")
