"""The addresses at which the site is published: those of the package and of the alerts are pages of it."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import pytest
import yaml

ROOT: Final = Path(__file__).parents[2]
SITE: Final = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))


def pages(nav: list[Any]) -> Iterator[str]:
    """Yield the pages of a part of the navigation."""
    for each in nav:
        if isinstance(each, str):
            yield each
        else:
            for inner in each.values():
                yield from pages(inner)


def addresses() -> Iterator[str]:
    """Yield the addresses that the package and the alerts name."""
    yield from tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"].values()
    alerts = yaml.safe_load((ROOT / "manifests/observability/settings.yaml").read_text("utf-8"))
    yield alerts["data"]["runbookUrl"]


@pytest.mark.parametrize("address", [*addresses()])
def test_an_address_is_a_page_of_the_site(address: str) -> None:
    published = {
        urljoin(SITE["site_url"], page.replace(".md", ".html").replace("index.html", "")) for page in pages(SITE["nav"])
    }
    assert urlsplit(address).scheme == "https"
    assert address in published
