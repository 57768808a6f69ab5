"""The page of the admin port as it is served: files, headers, and nothing in them that reaches outside."""

import json
import re
from html.parser import HTMLParser
from importlib import resources
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import Response

from app.admin.page_routes import OPEN_PATHS, page_router
from app.main import create_service
from app.settings.settings import Settings
from tests.app.asgi import ask
from tests.builders import make_node, make_pod
from tests.conformance.engine import load

FILES = {each.name: each.read_text() for each in (resources.files("app.admin") / "web").iterdir()}
SCRIPTS = {name: text for name, text in FILES.items() if name.endswith(".js")}


@pytest.fixture(scope="module")
def page() -> FastAPI:
    app = FastAPI()
    app.include_router(page_router())
    return app


def path_of(name: str) -> str:
    return "/" if name == "index.html" else f"/page/{name}"


@pytest.mark.parametrize("name", sorted(FILES))
def test_each_file_is_served_with_its_type(page: FastAPI, name: str) -> None:
    types = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    answer = ask(page, "GET", path_of(name))
    assert (answer.status_code, answer.text) == (200, FILES[name])
    assert answer.headers["content-type"].partition(";")[0] == types[name.rpartition(".")[2]]


def test_the_paths_that_need_no_token_are_those_of_the_files() -> None:
    assert {path_of(name) for name in FILES} == OPEN_PATHS


@pytest.mark.parametrize(
    "path",
    ["/page/", "/page/index.html", "/page/other.js", "/page/../main.py", "/page/%2e%2e%2fmain.py", "/page/x/page.js"],
)
def test_nothing_else_is_served(page: FastAPI, path: str) -> None:
    assert ask(page, "GET", path).status_code == 404


def test_a_file_has_a_head_of_its_own(page: FastAPI) -> None:
    head = ask(page, "HEAD", "/page/page.js")
    assert (head.status_code, head.content) == (200, b"")


def policy(answer: Response) -> dict[str, str]:
    parts = answer.headers["content-security-policy"].split(";")
    return {name: sources for name, _, sources in (part.strip().partition(" ") for part in parts)}


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_policy_allows_the_own_origin_alone(page: FastAPI, name: str) -> None:
    assert policy(ask(page, "GET", path_of(name))) == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "connect-src": "'self'",
        "img-src": "'self' data:",
        "base-uri": "'none'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
    }


@pytest.mark.parametrize("name", sorted(FILES))
def test_no_file_names_another_host(name: str) -> None:
    without_names = FILES[name].replace("http://www.w3.org/2000/svg", "")  # a name of a language, nobody's address
    assert re.findall(r"(?:https?:|wss?:)?//[a-z0-9-]+\.[a-z]+\S*", without_names) == []


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_no_script_makes_markup_or_code_of_text(name: str) -> None:
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function|srcdoc|javascript:"
    )
    assert re.findall(forbidden, SCRIPTS[name]) == []


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_each_import_is_a_file_of_the_page(name: str) -> None:
    imported = re.findall(r'from "\./([^"]+)"', SCRIPTS[name])
    assert set(imported) <= set(SCRIPTS)
    assert len(imported) == len(re.findall(r"^import ", SCRIPTS[name], re.MULTILINE))


class Elements(HTMLParser):
    """All start tags of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


ELEMENTS = Elements(FILES["index.html"]).found
IDS = [given["id"] for _, given in ELEMENTS if "id" in given]


def test_the_page_needs_no_inline_script_or_style() -> None:
    assert [tag for tag, _ in ELEMENTS if tag == "style"] == []
    assert [given for tag, given in ELEMENTS if tag == "script" and "src" not in given] == []
    assert [name for _, given in ELEMENTS for name in given if name == "style" or name.startswith("on")] == []


def test_each_field_has_a_label_and_a_place_for_what_is_wrong() -> None:
    assert len(IDS) == len(set(IDS))
    labelled = {given.get("for") for tag, given in ELEMENTS if tag == "label"}
    fields = [
        given for tag, given in ELEMENTS if tag in {"input", "textarea"} and given.get("type") in {None, "password"}
    ]
    alerts = {given["id"] for _, given in ELEMENTS if given.get("role") == "alert"}
    assert len(fields) == 6
    for field in fields:
        described = (field["aria-describedby"] or "").split()
        assert field["id"] in labelled
        assert set(described) <= set(IDS)
        assert set(described) & alerts


def test_the_scripts_look_up_elements_that_there_are() -> None:
    lookup = r'\b(?:byId|byIdAs|inputById)\("([^"]+)"'
    asked = {found for text in SCRIPTS.values() for found in re.findall(lookup, text)}
    assert {"token", "map", "question"} < asked <= set(IDS)


@pytest.fixture(scope="module")
def admin() -> FastAPI:
    service = create_service(
        Settings(admin="127.0.0.1:0"), load([], [make_node("n1").allocatable(pods=9).obj()], []), None
    )
    assert service.admin is not None
    return service.admin


def test_the_admin_port_has_the_page_and_what_it_asks(admin: FastAPI) -> None:
    assert ask(admin, "GET", "/").status_code == 200
    body = json.dumps({"pod": make_pod("p").obj()}).encode()
    drawn: dict[str, Any] = ask(admin, "POST", "/explain/nodes", body).json()
    of_taints, of_all = 3, 11  # the weights of the full profile; its other plugins have nothing to score here
    assert (drawn["names"], drawn["verdict"], drawn["score"]) == (["n1"], [0], [100 * of_taints // of_all])


@pytest.mark.parametrize(
    ("body", "query", "status", "field"),
    [
        (b"{", "", 400, ""),
        (b'{"pod": "a/b"}', "", 404, "pod"),
        (b'{"pod": {"metadata": {"name": "p"}}, "add_nodes": [{"metadata": {"name": "n1"}}]}', "", 409, "add_nodes[0]"),
        (b'{"pod": {"metadata": {"name": "p"}}}', "?rack=", 422, None),
        (b'{"pod": {"metadata": {"name": "p"}}}', "?rack=a%20b", 400, "rack"),
        (b'{"pod": {"metadata": {"name": "p"}}}', "?rack=x/y/z", 400, "rack"),
        (b'{"pod": {"metadata": {"name": "p"}}}', "?rack=example.com/rak", 404, "rack"),
        (b'{"pod": {"metadata": {"name": "p"}}}', "?score=best", 422, None),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_as_explain_tells_it(
    admin: FastAPI, body: bytes, query: str, status: int, field: str | None
) -> None:
    answer = ask(admin, "POST", f"/explain/nodes{query}", body)
    assert (answer.status_code, answer.json().get("field")) == (status, field)
    if status != 422 and field != "rack":
        assert answer.json() == ask(admin, "POST", "/explain", body).json()


def test_yaml_is_read_for_the_page(admin: FastAPI) -> None:
    told = ask(admin, "POST", "/explain/manifest", b"kind: Pod\nmetadata: {name: p}\n")
    assert (told.status_code, told.json()) == (200, {"kind": "Pod", "metadata": {"name": "p"}})


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        (b"", 400, "expected one manifest"),
        (b"- a\n", 400, "expected one manifest"),
        (b"a: 1\n---\nb: 2\n", 400, "expected one manifest"),
        (b' {"a": ', 400, "expected one manifest"),
        (b"a: [", 400, "neither JSON nor YAML"),
        (b"a: " + b"x" * 300_000, 413, "larger than 262144 bytes"),
    ],
)
def test_what_is_no_manifest_is_refused(admin: FastAPI, text: bytes, status: int, message: str) -> None:
    answer = ask(admin, "POST", "/explain/manifest", text)
    assert (answer.status_code, answer.json()["field"]) == (status, "pod")
    assert message in answer.json()["detail"]


def test_a_rack_can_be_any_label() -> None:
    nodes = [make_node("n1").label("row", "7").label("example.com/rack", "r").obj()]
    service = create_service(Settings(admin="127.0.0.1:0"), load([], nodes, []), None)
    assert service.admin is not None
    body = json.dumps({"pod": make_pod("p").obj()}).encode()
    racks = [ask(service.admin, "POST", f"/explain/nodes{query}", body).json()["racks"] for query in ("", "?rack=row")]
    assert racks == [["", "r"], ["", "7"]]


def test_a_rack_can_be_the_label_of_a_node_that_is_supposed_or_that_the_mirror_does_not_have(admin: FastAPI) -> None:
    pod, row = make_pod("p").obj(), make_node("n2").label("row", "8").obj()
    asked = {"pod": pod, "add_nodes": [row]}, {"Pod": pod, "Nodes": {"items": [row]}}
    drawn = [ask(admin, "POST", "/explain/nodes?rack=row", json.dumps(body).encode()).json() for body in asked]
    assert [each["racks"][each["rack"][-1]] for each in drawn] == ["8", "8"]
    gone = ask(admin, "POST", "/explain/nodes?rack=row", json.dumps({"pod": pod}).encode())
    assert (gone.status_code, gone.json()["detail"]) == (404, "rack: no node has the label row")
