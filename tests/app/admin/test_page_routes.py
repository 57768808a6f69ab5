"""The page of the admin port as it is served: files and headers, fields with labels, and no markup made of text."""

import re
from html.parser import HTMLParser
from importlib import resources

import pytest
from fastapi import FastAPI
from httpx import Response

from app.admin.page_routes import OPEN_PATHS, page_router
from tests.app.asgi import ask

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
    response = ask(page, "GET", path_of(name))
    assert (response.status_code, response.text) == (200, FILES[name])
    assert response.headers["content-type"].partition(";")[0] == types[name.rpartition(".")[2]]


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


def policy(response: Response) -> dict[str, str]:
    parts = response.headers["content-security-policy"].split(";")
    return {name: sources for name, _, sources in (part.strip().partition(" ") for part in parts)}


def test_the_policy_allows_the_own_origin_alone(page: FastAPI) -> None:
    assert (
        policy(ask(page, "GET", "/"))
        == policy(ask(page, "GET", "/page/page.js"))
        == {
            "default-src": "'none'",
            "script-src": "'self'",
            "style-src": "'self'",
            "connect-src": "'self'",
            "img-src": "'self' data:",
            "base-uri": "'none'",
            "form-action": "'self'",
            "frame-ancestors": "'none'",
        }
    )


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_no_script_makes_markup_or_code_of_text(name: str) -> None:
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function|srcdoc|javascript:"
    )
    assert re.findall(forbidden, SCRIPTS[name]) == []


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


def test_each_field_has_a_label_and_a_place_for_what_is_wrong() -> None:
    assert len(IDS) == len(set(IDS))
    labelled = {given.get("for") for tag, given in ELEMENTS if tag == "label"}
    fields = [
        given for tag, given in ELEMENTS if tag in {"input", "textarea"} and given.get("type") in {None, "password"}
    ]
    alerts = {given["id"] for _, given in ELEMENTS if given.get("role") == "alert"}
    assert len(fields) == 10
    for field in fields:
        described = (field["aria-describedby"] or "").split()
        assert field["id"] in labelled
        assert set(described) <= set(IDS)
        assert set(described) & alerts
