"""Who may do and learn what on the admin port, as docs/security.md has it, and how many namespaces are reviewed."""

import asyncio
import json
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

import pytest
from fastapi import FastAPI, HTTPException
from starlette.datastructures import Headers

from app.admin import access
from app.admin.access import CALLER_HEADER, MAX_REVIEWED, NotVisibleError, Viewer, caller_of
from app.api_server.access_reviews import TokenCaller
from app.api_server.client import ConnectionFailedError
from app.settings.settings import Settings, SettingsError
from app.wiring.main import create_service
from tests.app.admin.limited_callers import ALL, ReviewingServer, limited_service
from tests.app.asgi import ask
from tests.app.questions import mirror_of, shop
from tests.builders import make_node, make_pod

ANN = TokenCaller("ann")
MANY = [f"ns-{number:03}" for number in range(MAX_REVIEWED + 10)]
RULE = 'Add to a {}: - {{apiGroups: [""], resources: ["pods"], verbs: ["list"]}}'


def admin_app(server: ReviewingServer | None, **settings: object) -> FastAPI:
    mirror = mirror_of(make_node("n1"), make_pod("web").in_namespace("shop"), make_pod("db").in_namespace("bank"))
    return limited_service(mirror, server, **settings).admin


def status(app: FastAPI, method: str, path: str, headers: Mapping[str, str]) -> int:
    return ask(app, method, path, headers=headers).status_code


def test_an_admin_sees_everything_and_a_reader_is_a_caller_like_others(tmp_path: Path) -> None:
    for name in ("admin", "reader"):
        (tmp_path / name).write_text(name)
    server = ReviewingServer({"ann": ALL})
    app = admin_app(server, admin_token_file=tmp_path / "admin", admin_read_token_file=tmp_path / "reader")
    admin, reader = {"Kindred-Token": "admin"}, {"Kindred-Token": "reader"}
    assert ask(app, "GET", "/pending", headers=admin).json()["names_hidden"] == ""
    assert status(app, "GET", "/debug/mirror", admin) == 200
    assert server.requested == [], "nobody is asked about an admin"
    assert status(app, "GET", "/debug/mirror", reader) == 403
    assert status(app, "GET", "/debug/mirror", {**reader, CALLER_HEADER: "ann"}) == 200
    assert status(app, "GET", "/debug/mirror", {CALLER_HEADER: "ann"}) == 401


def test_without_reviews_any_pod_gets_the_page_alone_and_each_token_all_names(tmp_path: Path) -> None:
    tokens = {name: f"the-t0ken-of-the-{name}" for name in ("admin", "reader")}
    for name, token in tokens.items():
        (tmp_path / name).write_text(token)
    app = admin_app(None, admin_token_file=tmp_path / "admin", admin_read_token_file=tmp_path / "reader")
    assert status(app, "GET", "/", {}) == 200
    for path in ("/readyz", "/version", "/cluster", "/pending", "/names", "/debug/mirror", "/debug/config"):
        assert status(app, "GET", path, {}) == 401, path
    for token in tokens.values():
        bearer = {"Authorization": f"Bearer {token}"}
        for path in ("/debug/mirror", "/names?text=bank"):
            assert "bank/db" in ask(app, "GET", path, headers=bearer).text, path
        config = ask(app, "GET", "/debug/config", headers=bearer)
        assert config.status_code == 200
        assert not [each for each in tokens.values() if each in config.text]


@pytest.mark.parametrize(
    ("path", "headers", "broken", "expected"),
    [
        (
            "/pending?namespace=bank",
            {CALLER_HEADER: "ann"},
            False,
            (403, "namespace: this caller may not list pods in"),
        ),
        ("/pending?namespace=shop", {CALLER_HEADER: "ann"}, False, (200, None)),
        (
            "/pending?namespace=shop",
            {CALLER_HEADER: "ann"},
            True,
            (503, "namespace: names of pods are hidden: the API"),
        ),
        ("/debug/mirror", {CALLER_HEADER: "ann"}, False, (403, "GET /debug/mirror shows pods of all namespaces: this")),
        ("/debug/mirror", {CALLER_HEADER: "ann"}, True, (503, "GET /debug/mirror shows pods of all namespaces: names")),
        ("/debug/mirror", {}, False, (403, "GET /debug/mirror shows pods of all namespaces: no caller is known: send")),
        ("/names", {CALLER_HEADER: "a b"}, False, (400, f"{CALLER_HEADER}: not a token")),
    ],
)
def test_a_refusal_says_what_is_missing(
    path: str, headers: Mapping[str, str], expected: tuple[int, str | None], *, broken: bool
) -> None:
    server = ReviewingServer({"ann": ("shop",)})
    server.problem = ConnectionFailedError("refused") if broken else None
    response = ask(admin_app(server), "GET", path, headers=headers)
    assert response.status_code == expected[0]
    if expected[1] is not None:
        assert response.json()["detail"].startswith(expected[1])


def test_the_right_that_is_missing_is_named_as_a_rule() -> None:
    app = admin_app(ReviewingServer({"ann": ("shop",)}))
    rejection = ask(app, "POST", "/explain", b'{"pod": "bank/db"}', {CALLER_HEADER: "ann"})
    detail = f"pod: this caller may not list pods in namespace bank. {RULE.format('Role in namespace bank')}"
    assert (rejection.status_code, rejection.json()) == (403, {"detail": detail, "field": "pod"})


def test_a_uid_or_name_alone_is_unknown_with_a_hint_whether_hidden_or_nobodys_and_a_full_name_without_one() -> None:
    app = admin_app(ReviewingServer({"ann": ("shop",)}))
    unknown = "remove[0]: pod {}: neither in the mirror nor in a recent request"
    hint = (
        ", or in a namespace whose pods this caller may not list. The response to NAMESPACE/NAME names a missing right"
    )
    alone = ("u-1", "db", "nobody", "pod/db")
    for pod, detail in (*((each, unknown + hint) for each in alone), ("shop/nobody", unknown)):
        body = json.dumps({"pod": "shop/web", "remove": [pod]}).encode()
        response = ask(app, "POST", "/explain", body, {CALLER_HEADER: "ann"})
        assert (response.status_code, response.json()) == (404, {"detail": detail.format(pod), "field": "remove[0]"})
    seen = ask(app, "POST", "/explain", b'{"pod": "web"}', {CALLER_HEADER: "ann"})
    assert seen.json()["summary"]["pod"] == "shop/web"


def test_a_search_does_not_say_whether_a_hidden_name_contains_the_text() -> None:
    app = admin_app(ReviewingServer({"ann": ("shop",)}))
    hidden, nobody = (
        ask(app, "GET", f"/names?text={text}", headers={CALLER_HEADER: "ann"}).json() for text in ("bank/d", "bank/x")
    )
    assert hidden == nobody
    assert hidden["names_hidden"] == "names of pods in namespaces whose pods this caller may not list are hidden"


def test_pods_that_are_left_out_are_counted() -> None:
    reported = ask(
        admin_app(ReviewingServer({"ann": ("shop",)})), "GET", "/pending", headers={CALLER_HEADER: "ann"}
    ).json()
    assert ([each["pod"] for each in reported["pods"]], reported["left_out"]) == (["shop/web"], 1)
    assert reported["names_hidden"] == "names of pods in namespaces whose pods this caller may not list are hidden"


def test_so_many_namespaces_are_reviewed_for_one_request_and_more_for_the_next() -> None:
    server = ReviewingServer({"ann": MANY})
    viewer = Viewer(server.reviews(), ANN)
    first = asyncio.run(viewer.of(MANY))
    assert len(server.requested) == 1 + MAX_REVIEWED
    assert [namespace for namespace in MANY if first(namespace)] == MANY[:MAX_REVIEWED]
    assert "at most 64 namespaces" in first.why
    second = asyncio.run(viewer.of(MANY))
    assert all(map(second, MANY))
    assert second.why == ""


def test_what_is_known_before_the_api_server_fails_is_still_seen() -> None:
    server = ReviewingServer({"ann": ("shop", "bank")})
    viewer = Viewer(server.reviews(), ANN)
    asyncio.run(viewer.of(("shop",)))
    server.problem = ConnectionFailedError("refused")
    seen = asyncio.run(viewer.of(("bank", "shop")))
    assert (seen("shop"), seen("bank")) == (True, False)
    assert "refused" in seen.why
    with pytest.raises(NotVisibleError) as caught:
        asyncio.run(viewer.need(("bank",)))
    assert caught.value.status is HTTPStatus.SERVICE_UNAVAILABLE


def test_all_reviews_of_a_request_have_one_limit_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(ReviewingServer):
        async def post_as(self, token: str, path: str, body: bytes) -> bytes:  # noqa: ARG002  # it never answers
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr(access, "_PATIENCE", 0.01)
    seen = asyncio.run(Viewer(Hanging({}).reviews(), ANN).of(("shop",)))
    assert not seen("shop")
    assert seen.why == "names of pods are hidden: the API server did not respond within 0.01 s"
    assert seen.status is HTTPStatus.SERVICE_UNAVAILABLE


def test_a_dump_has_nobody_to_review_callers() -> None:
    with pytest.raises(SettingsError, match=r"^KINDRED_EXPLAIN_ACCESS: review needs an API server"):
        create_service(Settings(admin="127.0.0.1:0", explain_access="review"), shop(), None)


def headers(*values: bytes) -> Headers:
    return Headers(raw=[(b"kindred-caller-token", value) for value in values])


@pytest.mark.parametrize(
    ("given", "caller"), [((), None), ((b" t0ken ",), TokenCaller("t0ken")), ((b"",), None), ((b" ",), None)]
)
def test_the_caller_is_the_bearer_of_the_token(given: tuple[bytes, ...], caller: TokenCaller | None) -> None:
    assert caller_of(headers(*given)) == caller


@pytest.mark.parametrize(
    ("given", "detail"),
    [
        pytest.param((b"a", b"b"), "given 2 times", id="two"),
        pytest.param((b"two words",), "not a token", id="words"),
        pytest.param((b"\xff",), "not a token", id="not-ascii"),
    ],
)
def test_a_header_that_has_no_token_is_refused(given: tuple[bytes, ...], detail: str) -> None:
    with pytest.raises(HTTPException) as caught:
        caller_of(headers(*given))
    assert (caught.value.status_code, caught.value.detail) == (400, f"Kindred-Caller-Token: {detail}")
