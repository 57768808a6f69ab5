"""What probes and people ask."""

import platform

import pytest

from app import __version__
from app.main import create_app
from app.settings import Settings
from app.watch.decode import decode_node
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from tests.app.asgi import ask
from tests.app.questions import mirror_of
from tests.builders import make_namespace, make_node, make_pod


def answer(mirror: ClusterMirror, path: str) -> object:
    response = ask(create_app(Settings(), mirror), "GET", path)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    return response.json()


def test_livez_is_ok_even_over_an_empty_mirror() -> None:
    assert answer(ClusterMirror(), "/livez") == "ok"


def test_version_says_which_program_and_which_python() -> None:
    assert answer(ClusterMirror(), "/version") == {"version": __version__, "python": platform.python_version()}


def test_readyz_counts_nodes_namespaces_and_the_pods_that_occupy_a_node() -> None:
    mirror = mirror_of(
        make_namespace("shop"),
        make_node("n1"),
        make_node("n2"),
        make_pod("placed").on("n1"),
        make_pod("terminating").on("n1").terminating(),
        make_pod("early").on("late"),
        make_pod("pending"),
        make_pod("done").on("n1").phase("Succeeded"),
    )
    assert answer(mirror, "/readyz") == {"ready": True, "nodes": 2, "pods": 3, "namespaces": 1}


def test_readyz_follows_the_mirror() -> None:
    mirror = mirror_of(make_node("n1"), make_node("n2"))
    app = create_app(Settings(), mirror)
    assert ask(app, "GET", "/readyz").json()["nodes"] == 2
    mirror.apply(ClusterEvent("Delete", decode_node(make_node("n2").json())))
    assert ask(app, "GET", "/readyz").json()["nodes"] == 1


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/version"])
def test_probes_only_read(path: str) -> None:
    assert ask(create_app(Settings(), ClusterMirror()), "POST", path).status_code == 405
