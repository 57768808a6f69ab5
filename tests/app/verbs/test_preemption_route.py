"""The verb `preempt` as an endpoint: bounded bodies, headers, stale mirrors, and faults of our own."""

import logging
from collections.abc import Callable

import pytest
from starlette.applications import Starlette

from app.limits import Limits
from app.main import create_service
from app.objects.limits import Body
from app.objects.resources import RESOURCES
from app.settings import Settings
from app.verbs.endpoint import Answer, StalePolicy
from app.verbs.request import VerbResponse
from app.watch.freshness import Freshness, ResourceState
from core.objects.pod import Pod
from tests.app.asgi import ask
from tests.app.questions import shop
from tests.app.verbs.receptions import reception, verb_route

EMPTY = b'{"NodeNameToMetaVictims":{}}'
QUESTION = b'{"Pod":{"metadata":{"name":"p"}},"NodeNameToMetaVictims":{}}'


def failing(body: Body) -> VerbResponse:
    raise KeyError(body)


def nobody(body: Body) -> VerbResponse:
    assert body == QUESTION
    return VerbResponse(EMPTY)


def app_of(verb: Callable[[Body], Answer], age: float = 0.0, counted: list[str] | None = None) -> Starlette:
    state = ResourceState(RESOURCES[Pod])
    state.synced, state.followed_at = True, 100.0 - age
    count = counted.append if counted is not None else lambda _: None
    policy = StalePolicy(Freshness([state], 10.0, lambda: 100.0), count)
    return Starlette(routes=[verb_route(verb, reception(policy))])


def test_a_fault_of_our_own_is_an_answer_that_preempts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    response = ask(app_of(failing), "POST", "/preempt", QUESTION)
    assert response.status_code == 200
    assert response.json() == {"NodeNameToMetaVictims": {}, "Error": "internal error: KeyError"}


def test_the_answer_has_the_headers_of_a_verb() -> None:
    response = ask(app_of(nobody), "POST", "/preempt", QUESTION)
    assert response.content == EMPTY
    assert dict(response.headers) == {"content-type": "application/json", "content-length": str(len(EMPTY))}


def test_a_stale_mirror_preempts_nobody() -> None:
    counted: list[str] = []
    response = ask(app_of(nobody, 11.0, counted), "POST", "/preempt", QUESTION)
    assert response.json() == {"NodeNameToMetaVictims": {}, "Error": "the mirror is stale: pods: stale for 11 s"}
    assert counted == ["preempt"]


def test_a_body_that_is_too_large_preempts_nobody() -> None:
    app = create_service(Settings(preempt="verb"), shop(), None, limits=Limits(max_body_bytes=1024)).app
    assert ask(app, "POST", "/preempt", QUESTION).json() == {"NodeNameToMetaVictims": {}}
    error = ask(app, "POST", "/preempt", QUESTION.ljust(1025)).json()["Error"]
    assert error == "body: larger than 1024 bytes"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_it_is_posted_and_nothing_else(method: str) -> None:
    assert ask(create_service(Settings(), shop(), None).app, method, "/preempt").status_code == 405
