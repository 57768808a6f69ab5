"""What stands before and behind every verb: who is refused, turned away or let past, and what is told of it."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

import app.verbs.filter
from app.api_server.elector import Elector
from app.feeds.freshness import Freshness, ResourceState
from app.objects.decode import Body
from app.objects.resources import RESOURCES
from app.settings.settings import Settings
from app.verbs.admission import Admission, ServingState
from app.verbs.endpoint import ExtenderApp
from app.verbs.filter import Bypass, Extender
from app.verbs.request import Request, VerbOutcome, VerbResponse
from app.verbs.wire_in import ExtenderArgs, decode_args
from app.verbs.wire_out import filter_error
from app.wiring.engine import create_profile
from core.objects.pod import Pod
from tests.app.asgi import ask
from tests.app.questions import NEAR_WEB, by_name, shop
from tests.app.verbs.receptions import Reception, app_of, extender_app, reception
from tests.builders import make_pod

POD = make_pod("p").uid("u").required_affinity(NEAR_WEB)
QUESTION = by_name(POD, "a1", "a2", "c1")


class Follower(Elector):
    """Another replica leads."""

    leader = "other"

    def __init__(self) -> None:
        pass

    def leads(self) -> bool:
        return False

    def problem(self) -> str:
        return "other leads"


def stale() -> Freshness:
    state = ResourceState(RESOURCES[Pod])
    state.synced, state.followed_at = True, 0.0
    return Freshness([state], 10.0, lambda: 100.0)


def served(desk: Reception, bypass: Bypass | None = None) -> ExtenderApp:
    mirror = shop()
    return extender_app(Extender(create_profile(Settings()), mirror, bypass=bypass or Bypass()), mirror, desk)


def observed(question: bytes, verb: str = "filter", **desk: object) -> tuple[httpx.Response, Request]:
    """Ask once; give the answer and what was told of it."""
    reported: list[Request] = []
    response = ask(served(reception(observe=reported.append, **desk)), "POST", f"/{verb}", question)  # type: ignore[arg-type]  # by their names
    (request,) = reported
    assert request.verb == verb
    assert request.size == len(question)
    assert request.response.body == response.content
    assert 0 <= request.waited <= request.seconds < 10
    return response, request


def about(response: VerbResponse) -> tuple[str, str, int, int]:
    return response.pod, response.uid, response.nodes, response.passed


@pytest.mark.parametrize(
    ("nodes", "outcome", "passed"),
    [(["a1", "a2", "c1"], VerbOutcome.FIT, 2), (["c1"], VerbOutcome.NO_FIT, 0)],
    ids=["some-fit", "none-fits"],
)
def test_filter_tells_how_many_nodes_passed(nodes: list[str], outcome: VerbOutcome, passed: int) -> None:
    _, request = observed(by_name(POD, *nodes))
    assert outcome is request.response.outcome
    assert about(request.response) == ("default/p", "u", len(nodes), passed)
    assert request.response.error == ""


def test_prioritize_tells_how_many_nodes_it_scored() -> None:
    _, request = observed(QUESTION, "prioritize")
    assert (request.response.outcome, *about(request.response)) == (VerbOutcome.FIT, "default/p", "u", 3, 3)


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
def test_a_bad_request_is_told_with_its_error(verb: str) -> None:
    response, request = observed(b'{"Pod":{}}', verb)
    assert request.response.outcome is VerbOutcome.BAD_REQUEST
    assert request.response.error
    assert request.response.error == response.json()["Error"]


def test_a_fault_of_ours_is_told(caplog: pytest.LogCaptureFixture) -> None:
    def fails(body: object) -> VerbResponse:
        raise KeyError(body)

    reported: list[Request] = []
    ask(app_of(fails, reception(observe=reported.append)), "POST", "/preempt", b"{}")
    (response,) = (each.response for each in reported)
    assert (response.outcome, response.error) == (VerbOutcome.INTERNAL_ERROR, "internal error: KeyError")
    assert caplog.records


def test_a_refusal_over_a_stale_mirror_is_told() -> None:
    response, request = observed(QUESTION, freshness=stale())
    assert request.response.outcome is VerbOutcome.STALE
    assert request.response.error == response.json()["Error"] == "the mirror is stale: pods: stale for 100 s"


def test_who_does_not_lead_refuses_and_closes_the_connection() -> None:
    response, request = observed(QUESTION, state=ServingState(Follower()))
    assert request.response.outcome is VerbOutcome.NOT_LEADING
    assert request.response.error == response.json()["Error"] == "not leading: other leads"
    assert response.headers["connection"] == "close"


def test_who_drains_answers_and_closes_the_connection() -> None:
    state = ServingState()
    state.draining = True
    response, request = observed(QUESTION, state=state)
    assert request.response.outcome is VerbOutcome.FIT
    assert response.headers["connection"] == "close"


@pytest.mark.parametrize(
    "desk",
    [pytest.param({"freshness": stale()}, id="stale"), pytest.param({"state": ServingState(Follower())}, id="led")],
)
@pytest.mark.parametrize("verb", ["filter", "prioritize"])
def test_a_pod_that_passes_does_so_when_others_are_refused(desk: dict[str, object], verb: str) -> None:
    reported: list[Request] = []
    app = served(reception(observe=reported.append, **desk), Bypass(namespaces=("default",)))  # type: ignore[arg-type]  # by their names
    response = ask(app, "POST", f"/{verb}", QUESTION).json()
    assert (response["NodeNames"] if verb == "filter" else [each["Host"] for each in response]) == ["a1", "a2", "c1"]
    assert [each.response.outcome for each in reported] == [VerbOutcome.BYPASSED]


@pytest.mark.parametrize(
    "bypass", [Bypass(), Bypass(namespaces=("default",))], ids=["a pod that is refused", "a pod that passes"]
)
@pytest.mark.parametrize("verb", ["filter", "prioritize"])
def test_a_body_is_decoded_once_whether_its_pod_is_refused_or_passes(
    verb: str, bypass: Bypass, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[Body] = []

    def counted(body: Body, *rest: Any) -> ExtenderArgs:  # noqa: ANN401 - passed on
        decoded.append(body)
        return decode_args(body, *rest)

    monkeypatch.setattr(app.verbs.filter, "decode_args", counted)
    ask(served(reception(stale()), bypass), "POST", f"/{verb}", QUESTION)
    assert decoded == [QUESTION]


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("filter", filter_error),
        ("prioritize", lambda _: b"[]"),
    ],
)
@pytest.mark.parametrize(
    ("bounds", "reason", "message"),
    [
        ({"deadline": -1.0}, "deadline", "the request waited longer than the deadline (KINDRED_HTTP_TIMEOUT)"),
        ({"max_bytes": 10}, "bytes", "the bodies of requests take too many bytes (a quarter of the memory limit)"),
    ],
    ids=["deadline", "bytes"],
)
def test_who_is_turned_away_is_told_so_at_little_cost(
    bounds: dict[str, float], reason: str, message: str, verb: str, expected: Callable[[str], bytes]
) -> None:
    limits = {"deadline": 10.0, "queue_limit": 1, "max_bytes": 10_000, **bounds}
    admission = Admission(clock=lambda: 1.0, **limits)  # type: ignore[arg-type]  # by their names
    response, request = observed(QUESTION, verb, admission=admission)
    assert response.status_code == 200
    assert expected(f"shed: {message}") == response.content
    assert reason == response.headers["kindred-shed"]
    assert (VerbOutcome.SHED, f"shed: {message}") == (request.response.outcome, request.response.error)
    assert admission.shed[reason] == 1
    assert (admission.in_flight, admission.buffered_bytes, admission.waiting) == (0, 0, 0)


def test_who_comes_while_the_queue_is_full_is_turned_away() -> None:
    admission = Admission(deadline=10.0, queue_limit=1, max_bytes=10_000, clock=lambda: 1.0)
    app = served(reception(admission=admission))

    async def requested() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://kindred") as client:
            return await asyncio.gather(*(client.post("/filter", content=QUESTION) for _ in range(4)))

    responses = asyncio.run(requested())
    assert [each.headers.get("kindred-shed") for each in responses] == [None, None, "queue_full", "queue_full"]
    assert all(each.json()["NodeNames"] == ["a1", "a2"] for each in responses[:2])
    expected = "shed: too many requests are in the queue (1)"
    assert [each.json()["Error"] for each in responses[2:]] == [expected, expected]
    assert (admission.in_flight, admission.buffered_bytes, admission.waiting) == (0, 0, 0)
