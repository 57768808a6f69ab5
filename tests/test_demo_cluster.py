"""The files in app/demo are the generator's output."""

from pathlib import Path

import pytest

import app.demo
from tests.demo_cluster import cluster_text, request_text, requests

DEMO = Path(app.demo.__file__).parent


def test_the_cluster_file_is_what_the_generator_makes() -> None:
    assert cluster_text() == (DEMO / "cluster.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", requests())
def test_a_request_file_is_what_the_generator_makes(name: str) -> None:
    assert request_text(name) == (DEMO / "requests" / f"{name}.json").read_text(encoding="utf-8")


def test_every_request_file_has_a_generator() -> None:
    assert set(requests()) == {path.stem for path in (DEMO / "requests").iterdir()}
