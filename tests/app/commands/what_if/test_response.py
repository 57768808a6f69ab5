"""A running service gives the same text as a command that reads the cluster itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.app.admin.test_what_if_routes import port
from tests.app.commands.invoked import kindred
from tests.app.commands.running import running
from tests.app.commands.what_if.asking import budget, deployment, dump, node, replica


class Both(NamedTuple):
    """A dump, and the address of a service of it."""

    dump: str
    url: str


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Both]:
    objects = node("n1"), node("n2", "b"), replica("web-1a-x", "n1"), deployment(cpu="3"), budget("web", 1)
    path = dump(tmp_path, *objects)
    with running(port(path)) as service:
        yield Both(path, service.url)


@pytest.mark.parametrize(
    "words",
    [
        "drain n1 --ignore-daemonsets",
        "loss --by node --strict",
        "removal",
        "capacity shop/deploy/web --mix 2",
        "capacity --add-node-like n1",
    ],
)
def test_the_text_and_the_status_are_the_same(both: Both, words: str) -> None:
    of_service, of_dump = (
        kindred(*words.split(), "--server", both.url),
        kindred(*words.split(), "--snapshot", both.dump),
    )
    assert of_service.stderr == ""
    assert (of_service.exit_code, of_service.stdout) == (of_dump.exit_code, of_dump.stdout)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("drain n9 --server {url}", "Error: {url}: 400 Bad Request: nodes: no such node: n9"),
        ("drain --server {url}", "Error: give nodes by name, by labels or by zone"),
        (
            "loss --server {url} --demo",
            "Error: --demo is for a cluster that the command reads itself, not",
        ),
        ("loss --server {url} --kubernetes 1.34", "Error: --kubernetes is for a cluster that the command reads itself"),
        ("loss --demo --ca-file {dump}", "Error: --ca-file is for a running service: give --server, too."),
        ("loss --server http://127.0.0.1:9", "Error: no service at 127.0.0.1:9 (Connection refused)"),
    ],
)
def test_an_error_is_one_line(both: Both, words: str, error: str) -> None:
    result = kindred(*words.format(url=both.url, dump=both.dump).split())
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith(error.format(url=both.url))
