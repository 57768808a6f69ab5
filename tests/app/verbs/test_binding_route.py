"""The verb `bind` as an endpoint: bounded bodies, headers, and faults of our own."""

import logging
from typing import Any

import pytest

from app.feeds.freshness import Freshness, ResourceState
from app.objects.decode import Body
from app.objects.resources import RESOURCES
from app.settings.limits import Limits
from app.settings.settings import Settings
from app.verbs.bind import Binder, bind_verb
from app.verbs.endpoint import ExtenderApp
from app.verbs.request import VerbResponse
from app.wiring.main import create_service
from core.objects.pod import Pod
from tests.app.asgi import ask
from tests.app.questions import shop
from tests.app.verbs.receptions import app_with, reception

QUESTION = b'{"podName":"p","podNamespace":"default","podUID":"u","node":"a1"}'
OFF = "switched off, so that no pod is bound: set KINDRED_BIND=true, or take bindVerb away"


class Failing(Binder):
    """One with a fault."""

    def __init__(self) -> None:
        pass

    async def bind(self, body: Body, waited: float = 0.0) -> VerbResponse:
        raise KeyError(body, waited)


class Bound(Failing):
    """One that says yes."""

    async def bind(self, body: Body, waited: float = 0.0) -> VerbResponse:
        assert (body, waited) == (QUESTION, 0.0)
        return VerbResponse(b'{"Error":""}')


def app_of(binder: Binder | None, freshness: Freshness) -> ExtenderApp:
    return app_with(reception(freshness)(bind_verb(binder)))


def freshness(age: float) -> Freshness:
    state = ResourceState(RESOURCES[Pod])
    state.synced, state.followed_at = True, 100.0 - age
    return Freshness([state], 10.0, lambda: 100.0)


def test_a_fault_of_our_own_is_an_error_that_can_be_decoded(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    response = ask(app_of(Failing(), freshness(0.0)), "POST", "/bind", QUESTION)
    assert (response.status_code, response.json()) == (200, {"Error": "internal error: KeyError"})


def test_the_answer_has_the_headers_of_a_verb() -> None:
    response = ask(app_of(Bound(), freshness(0.0)), "POST", "/bind", QUESTION)
    assert response.content == b'{"Error":""}'
    assert dict(response.headers) == {"content-type": "application/json", "content-length": "12"}


def test_a_bad_request_is_answered_with_an_error() -> None:
    app = create_service(Settings(bind=True), shop(), None, limits=Limits(max_body_bytes=1024)).app
    error = ask(app, "POST", "/bind", QUESTION.replace(b"podUID", b"uid")).json()["Error"]
    assert error == "uid: unknown field; ExtenderBindingArgs has PodName, PodNamespace, PodUID, Node"
    error = ask(app, "POST", "/bind", QUESTION.ljust(1025)).json()["Error"]
    assert error == "body: larger than 1024 bytes"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_it_is_posted_and_nothing_else(method: str) -> None:
    assert ask(create_service(Settings(), shop(), None).app, method, "/bind").status_code == 405


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="score-offload"),
        pytest.param({"preempt": "evict"}, id="evict"),
        pytest.param({"decide": "listed-nodes", "profile": "full"}, id="decide"),
    ],
)
@pytest.mark.parametrize("body", [QUESTION, b"", b"{", QUESTION.ljust(100)], ids=["good", "none", "broken", "long"])
def test_without_the_setting_it_is_answered_with_the_setting_and_not_logged(
    settings: dict[str, Any], body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    app = create_service(Settings(**settings), shop(), None).app
    for headers in ({}, {"Kindred-Dry-Run": "true"}):
        response = ask(app, "POST", "/bind", body, headers)
        assert (response.status_code, response.json()) == (200, {"Error": OFF})
    samples = ask(app, "GET", "/metrics").text
    assert 'kindred_binds_total{result="off"} 1.0' in samples
    assert 'kindred_requests_total{outcome="no_fit",verb="bind"} 2.0' in samples
    assert [record for record in caplog.records if record.name.startswith(("kindred", "app.verbs"))] == []


def test_without_the_setting_a_stale_mirror_changes_nothing() -> None:
    assert ask(app_of(None, freshness(11.0)), "POST", "/bind", QUESTION).json() == {"Error": OFF}
