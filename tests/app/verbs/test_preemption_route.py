"""The verb `preempt` as an endpoint: bounded bodies, headers, stale mirrors, and faults of our own."""

import logging

import pytest

from app.feeds.freshness import Freshness, ResourceState
from app.objects.decode import Body
from app.objects.resources import RESOURCES
from app.settings.limits import Limits
from app.settings.settings import Settings
from app.verbs.request import Request, VerbResponse
from app.wiring.main import create_service
from core.objects.pod import Pod
from tests.app.asgi import ask
from tests.app.questions import shop
from tests.app.verbs.receptions import app_of, reception

EMPTY = b'{"NodeNameToMetaVictims":{}}'
QUESTION = b'{"Pod":{"metadata":{"name":"p"}},"NodeNameToMetaVictims":{}}'


def failing(body: Body) -> VerbResponse:
    raise KeyError(body)


def nobody(body: Body) -> VerbResponse:
    assert body == QUESTION
    return VerbResponse(EMPTY)


def stale(seconds: float) -> Freshness:
    state = ResourceState(RESOURCES[Pod])
    state.synced, state.followed_at = True, 100.0 - seconds
    return Freshness([state], 10.0, lambda: 100.0)


def test_a_fault_of_our_own_is_an_answer_that_preempts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    response = ask(app_of(failing, reception()), "POST", "/preempt", QUESTION)
    assert response.status_code == 200
    assert response.json() == {"NodeNameToMetaVictims": {}, "Error": "internal error: KeyError"}


def test_the_answer_has_the_headers_of_a_verb() -> None:
    response = ask(app_of(nobody, reception()), "POST", "/preempt", QUESTION)
    assert response.content == EMPTY
    assert dict(response.headers) == {"content-type": "application/json", "content-length": str(len(EMPTY))}


def test_a_stale_mirror_preempts_nobody() -> None:
    seen: list[Request] = []
    response = ask(app_of(nobody, reception(stale(11.0), observe=seen.append)), "POST", "/preempt", QUESTION)
    assert response.json() == {"NodeNameToMetaVictims": {}, "Error": "the mirror is stale: pods: stale for 11 s"}
    assert [(each.verb, each.is_fresh) for each in seen] == [("preempt", False)]


def test_a_body_that_is_too_large_preempts_nobody() -> None:
    app = create_service(Settings(preempt="verb"), shop(), None, limits=Limits(max_body_bytes=1024)).app
    assert ask(app, "POST", "/preempt", QUESTION).json() == {"NodeNameToMetaVictims": {}}
    error = ask(app, "POST", "/preempt", QUESTION.ljust(1025)).json()["Error"]
    assert error == "body: larger than 1024 bytes"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_it_is_posted_and_nothing_else(method: str) -> None:
    assert ask(create_service(Settings(), shop(), None).app, method, "/preempt").status_code == 405
