"""`GET /cluster`, `GET /names` and `GET /samples`: what the page opens on."""

import msgspec
import pytest
from fastapi import FastAPI

from app.admin.explain_routes import Sample
from app.main import create_service
from app.process.json_text import encode
from app.settings.settings import Settings
from core.diagnosis.cluster_view import ClusterView
from tests.app.asgi import ask
from tests.builders import Object, make_node, make_pod
from tests.conformance.engine import load

SAMPLES = (Sample("web", msgspec.Raw(b'{"metadata":{"name":"web"}}')),)


@pytest.fixture(scope="module")
def admin() -> FastAPI:
    nodes = [
        make_node("n1").label("example.com/rack", "r1").label("row", "7").allocatable(cpu="4", memory="8Gi", pods=110),
        make_node("n2").label("example.com/rack", "r2").allocatable(cpu="4", memory="8Gi", pods=110),
    ]
    pods = [make_pod("web-0").in_namespace("shop").uid("u").on("n1").obj()]
    service = create_service(
        Settings(admin="127.0.0.1:0"), load([], [each.obj() for each in nodes], pods), None, samples=SAMPLES
    )
    assert service.admin is not None
    return service.admin


def told(app: FastAPI, path: str) -> Object:
    response = ask(app, "GET", path)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    answer: Object = response.json()
    return answer


def test_the_cluster_is_written_as_its_struct_is(admin: FastAPI) -> None:
    text = ask(admin, "GET", "/cluster").content
    view = msgspec.json.decode(text, type=ClusterView)
    assert view.names == ["n1", "n2"]
    assert [each.resource for each in view.resources] == ["cpu", "memory", "pods"]
    assert view.resources[2].requested == [1, 0]
    assert encode(view) == text


def test_racks_are_those_of_the_label_that_is_asked_for(admin: FastAPI) -> None:
    assert told(admin, "/cluster")["racks"] == ["", "r1", "r2"]
    assert told(admin, "/cluster?rack=row")["racks"] == ["", "7"]


@pytest.mark.parametrize(
    ("query", "status", "detail"),
    [
        pytest.param("rack=a%20b", 400, "rack: ", id="no-label-key"),
        pytest.param("rack=example.com/rak", 404, "rack: no node has the label example.com/rak", id="unknown"),
        pytest.param("rack=", 422, None, id="empty"),
        pytest.param("racks=row", 422, None, id="no-such-parameter"),
    ],
)
def test_a_label_of_racks_that_cannot_be_is_refused(
    admin: FastAPI, query: str, status: int, detail: str | None
) -> None:
    response = ask(admin, "GET", f"/cluster?{query}")
    assert status == response.status_code
    if detail is not None:
        assert response.json()["detail"].startswith(detail)
        assert response.json()["field"] == "rack"


def test_names_are_completed(admin: FastAPI) -> None:
    assert told(admin, "/names?text=n&limit=1") == {"nodes": ["n1"], "pods": [], "more": True, "names_hidden": ""}
    assert told(admin, "/names?text=web")["pods"] == [{"pod": "shop/web-0", "node": "n1"}]


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "text=" + "x" * 513, "prefix=a"])
def test_a_search_that_is_too_large_is_refused(admin: FastAPI, query: str) -> None:
    assert ask(admin, "GET", f"/names?{query}").status_code == 422


def test_samples_are_offered_as_manifests(admin: FastAPI) -> None:
    assert told(admin, "/samples") == {"samples": [{"name": "web", "pod": {"metadata": {"name": "web"}}}]}


def test_a_cluster_of_ones_own_has_no_samples() -> None:
    service = create_service(Settings(admin="127.0.0.1:0"), load([], [], []), None)
    assert service.admin is not None
    assert told(service.admin, "/samples") == {"samples": []}
